"""Decides whether a value can be written as JSON and whether it fits the byte cap (cards §5 rule 6).

Looks at no more of a value than the cap leaves room for, so cycles, shared parts and endless nesting cost no more than
a full-sized card. Knows nothing of the schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, cast

from canon_hermes_plugin.domain.cards.leaves import is_object
from canon_hermes_plugin.domain.cards.limits import MAX_CARD_BYTES, MAX_CARD_DEPTH, MAX_INTEGER_BITS

_TOO_LARGE: Final = f"must not exceed {MAX_CARD_BYTES} bytes as compact UTF-8 JSON"
_TOO_DEEP: Final = f"cannot be written as JSON: it contains itself or nests deeper than {MAX_CARD_DEPTH} levels"
_ALIEN: Final = (
    "cannot be written as JSON: only objects with plain keys, arrays, strings, numbers, booleans and null can"
)
_SURROGATE: Final = "cannot be written as JSON: a string holds a surrogate without its other half"

_encoder: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))


def size_fault(value: object) -> str:
    """Return what is wrong with the value's JSON form, or an empty string: the first fault met, no others."""
    return _survey(value) or exact_size_fault(value)


def exact_size_fault(value: object) -> str:
    """Like `size_fault` for a value known to hold JSON types only and to nest no deeper than a card."""
    try:
        size = len(_encoder.encode(value).encode("utf-8"))
    except UnicodeEncodeError:
        return _SURROGATE
    except RecursionError:
        return _TOO_DEEP
    except (TypeError, ValueError):
        return _ALIEN
    return _TOO_LARGE if size > MAX_CARD_BYTES else ""


def _survey(root: object) -> str:
    """Walk without recursion, adding up a lower bound of the size, until the cap, a fault or the end is reached.

    Every value is charged its shortest text plus the comma or bracket that follows it.
    """
    total = 0
    pending: list[tuple[Iterable[object], int]] = [((root,), 0)]
    while pending:
        values, depth = pending.pop()
        if depth > MAX_CARD_DEPTH:
            return _TOO_DEEP
        for value in values:
            total += 2
            if isinstance(value, str):
                total += len(value) + 1
            elif is_object(value):
                keys = _keys_size(value)
                if keys is None:
                    return _ALIEN
                total += keys
                pending.append((value.values(), depth + 1))
            elif isinstance(value, (list, tuple)):  # JSON writes both as arrays
                pending.append((cast("Iterable[object]", value), depth + 1))
            elif not _is_json_scalar(value):
                return _ALIEN
            if total > MAX_CARD_BYTES + 1:
                return _TOO_LARGE
    return ""


def _keys_size(members: dict[object, object]) -> int | None:
    """Return a lower bound of the bytes the keys and colons take, None when some key has no JSON form."""
    total = 0
    for key in members:
        if isinstance(key, str):
            total += len(key) + 3
        elif _is_json_scalar(key):
            total += 4
        else:
            return None
        if total > MAX_CARD_BYTES + 1:
            break
    return total


def _is_json_scalar(value: object) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= MAX_INTEGER_BITS
    return value is None or isinstance(value, float)
