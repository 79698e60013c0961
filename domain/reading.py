"""Type-checked reads of remote JSON: a value of the wrong type counts as absent, nothing raises (turns §14 H16).

It decides what a well-formed field is. It refuses to know what fields mean.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard, cast

_EMPTY: Final[Mapping[str, Any]] = {}
_LARGEST_ID: Final = 2**64
_CONTROL: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether ``value`` is a JSON object."""
    return isinstance(value, dict)


def mapping(value: object) -> Mapping[str, Any]:
    """Return ``value`` when it is a JSON object, else an empty one."""
    # Read a dozen times per message: no cast, no second call.
    return value if isinstance(value, dict) else _EMPTY  # pyright: ignore[reportUnknownVariableType]


def is_sequence(value: object) -> bool:
    """Tell whether ``value`` is a JSON array."""
    return isinstance(value, list)


def sequence(value: object) -> Sequence[Any]:
    """Return ``value`` when it is a JSON array, else an empty one."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def string(value: object) -> str | None:
    """Return ``value`` when it is a string with a non-blank character, unchanged."""
    return value if isinstance(value, str) and value and not value.isspace() else None


def identifier(value: object) -> str | None:
    """Return an id in its one spelling: trimmed text, or the digits of an integer (field fault 26).

    Text that cannot be written down (lone surrogates) or shown is no id.
    """
    if isinstance(value, str):
        return value.strip() or None if value.isascii() or value.isprintable() else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST_ID else None


def integer(value: object) -> int | None:
    """Return ``value`` when it is an integer; booleans are not."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def word(value: object) -> str | None:
    """Return a string trimmed and case-folded, or ``None``."""
    return value.strip().casefold() or None if isinstance(value, str) else None


def inert(value: object, limit: int) -> str:
    """Return untrusted text as one line of at most ``limit`` characters without control characters.

    Longer text ends in three dots. Anything but a string is empty.
    """
    if not isinstance(value, str):
        return ""
    plain = value if value.isprintable() else "".join(" " if _is_control(char) else char for char in value)
    return shorten(" ".join(plain.split()), limit)


def shorten(text: str, limit: int) -> str:
    """Return ``text`` of at most ``limit`` characters; longer text ends in three dots."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in _CONTROL
