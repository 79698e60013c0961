"""Decides what ``CANON_AGENTS_JSON_BOOTSTRAP`` adds to the profile file (canon-wire §4.4). Reads and writes nothing."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, cast

from canon_hermes_plugin.ports.errors import ConfigurationError

_WHAT = "CANON_AGENTS_JSON_BOOTSTRAP"

Entries = dict[str, dict[str, Any]]


def parse_bootstrap(value: str) -> Entries:
    """Return the profiles in ``value``: JSON text or base64 of it; only blanks mean none.

    Raises:
        ConfigurationError: neither, not an object of objects, or a blank profile name. Quotes nothing of the value.
    """
    if not value.strip():
        return {}
    decoded = _decode(value)
    if not isinstance(decoded, Mapping):
        raise ConfigurationError(f"{_WHAT} must hold one JSON object")
    for name, entry in cast("Mapping[str, object]", decoded).items():
        if not name.strip():
            raise ConfigurationError(f"{_WHAT} holds a profile with a blank name")
        if not isinstance(entry, Mapping):
            raise ConfigurationError(f"profile {name!r} of {_WHAT} is not a JSON object")
    return cast("Entries", decoded)


def merge_bootstrap(stored: Entries | None, bootstrap: Entries) -> Entries | None:
    """Return the new content of the profile file, or ``None`` when it needs no write.

    Only absent names are added; stored profiles are never overwritten. A missing file is written even when empty.
    """
    if stored is None:
        return dict(bootstrap)
    absent = {name: entry for name, entry in bootstrap.items() if name not in stored}
    return {**stored, **absent} if absent else None


def _decode(value: str) -> object:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(base64.b64decode("".join(value.split()), validate=True).decode("utf-8"))
    except (ValueError, binascii.Error, RecursionError):
        raise ConfigurationError(f"{_WHAT} is neither JSON nor base64 of JSON") from None
