"""A JSON file that is one object of objects, changed only under its lock.

It decides how such a file is read, refused and rewritten; what the entries mean, its callers know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from canon_hermes_plugin.infrastructure.files.atomic import clean_strays, write_atomic
from canon_hermes_plugin.infrastructure.files.locks import locked
from canon_hermes_plugin.ports.errors import ConfigurationError

Entries = dict[str, dict[str, Any]]


class JsonObjectFile:
    """One file of named JSON objects: 2-space indent, sorted keys, UTF-8, private, replaced atomically."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = path.with_name(f"{path.name}.lock")

    def read(self) -> Entries | None:
        """Return the entries, or ``None`` when the file does not exist.

        Raises:
            ConfigurationError: unreadable, not JSON, or not an object of objects. The file stays as it is.
        """
        try:
            text = self.path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{self.path} cannot be read: {_reason(error)}") from error
        return object_of_objects(text, str(self.path))

    def change(self, decide: Callable[[Entries | None], Entries | None]) -> None:
        """Read, let ``decide`` answer with the new content (``None``: leave the file alone), and write, all locked."""
        with locked(self._lock):
            clean_strays(self.path)
            entries = decide(self.read())
            if entries is not None:
                text = json.dumps(entries, indent=2, sort_keys=True, ensure_ascii=False)
                write_atomic(self.path, f"{text}\n".encode())


def object_of_objects(text: str, what: str) -> Entries:
    """Decode ``text`` as a JSON object of objects; ``what`` names it in errors, which quote none of it."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ConfigurationError(f"{what} is not valid JSON{where}") from None
    return checked_entries(value, what)


def checked_entries(value: object, what: str) -> Entries:
    """Return ``value`` when it is an object of objects without blank names, else raise ConfigurationError."""
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{what} must hold one JSON object")
    for name, entry in cast("Mapping[str, object]", value).items():
        if not name.strip():
            raise ConfigurationError(f"{what} holds an entry with a blank name")
        if not isinstance(entry, Mapping):
            raise ConfigurationError(f"entry {name!r} of {what} is not a JSON object")
    return cast("Entries", value)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return "not UTF-8" if isinstance(error, UnicodeDecodeError) else (error.strerror or type(error).__name__)
