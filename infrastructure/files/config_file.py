"""The host's ``config.yaml`` on disk: read as the host reads it, changed by splicing, replaced atomically."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from canon_hermes_plugin.infrastructure.files.atomic import PRIVATE, write_atomic
from canon_hermes_plugin.infrastructure.files.yaml_nodes import BrokenYamlError, is_dict, load
from canon_hermes_plugin.ports.errors import ConfigurationError

_TRIES = 5


class ConfigFile:
    """One YAML file of the host. A broken one is never replaced."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def data(self) -> dict[str, Any]:
        """Return the file's settings; a missing or empty file has none.

        Raises:
            ConfigurationError: unreadable, broken (with line and column), or not a mapping.
        """
        data = self._checked(self._read() or b"")
        if data is not None and not is_dict(data):
            raise ConfigurationError(f"{self.path} does not hold a mapping at its top")
        return data or {}

    def edit(self, change: Callable[[str], str]) -> bool:
        """Replace the text by ``change(text)`` and tell whether it differs. An existing file keeps its mode.

        A file that somebody else changed in between is read again, so that their change is not lost.

        Raises:
            ConfigurationError: as :meth:`data`, or the file cannot be written. Nothing was changed.
        """
        for _ in range(_TRIES):
            before = self._read()
            self._checked(before or b"")
            text = (before or b"").decode("utf-8")
            try:
                after = change(text)
            except ConfigurationError as error:
                raise ConfigurationError(f"{self.path}: {error}") from error
            if after == text:
                return False
            if self._read() == before:
                self._write(after)
                return True
        raise ConfigurationError(f"{self.path} keeps being changed by another program; stop it and try again")

    def _write(self, text: str) -> None:
        try:
            mode = stat.S_IMODE(self.path.stat().st_mode) if self.path.exists() else PRIVATE
            write_atomic(self.path, text.encode("utf-8"), mode=mode)
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be written: {error.strerror or error}") from error

    def _read(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be read: {error.strerror or error}") from error

    def _checked(self, raw: bytes) -> Any:  # noqa: ANN401 - decoded YAML
        try:
            return load(raw.decode("utf-8").removeprefix("\ufeff"))
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
            raise ConfigurationError(f"{self.path} is broken at line {line}, column {column}: not UTF-8") from None
        except BrokenYamlError as error:
            raise ConfigurationError(f"{self.path} is broken at {error}") from error
