"""Tests for single values, and the words that say what a rule allows. Knows no paths and no containers' insides."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias, TypeGuard, cast

from canon_hermes_plugin.domain.cards.schema import (
    BLOCK_KINDS,
    DATE_PATTERN,
    ID_PATTERN,
    Bound,
    Count,
    Flag,
    Identifier,
    Leaf,
    ListOf,
    Number,
    OneOf,
    Record,
    Rule,
    Text,
    Variants,
)

Accept: TypeAlias = Callable[[object], bool]
AcceptAll: TypeAlias = Callable[[list[object]], bool]

# An integer below this bound still rounds to a finite double; comparing with an int is exact and never overflows.
_LARGEST: Final = 2**1024 - 2**970 - 1
_id_match: Final = re.compile(ID_PATTERN).fullmatch
_date_match: Final = re.compile(DATE_PATTERN).fullmatch


def is_object(value: object) -> TypeGuard[dict[object, object]]:
    """Tell whether JSON calls this an object; a guard function because plain ``isinstance`` loses the element types."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[object]]:
    """Tell whether JSON parsers would call this an array; a tuple is none (cards §8.1)."""
    return isinstance(value, list)


def utf16_length(text: str) -> int:
    """Return the length in UTF-16 code units; a lone surrogate counts 1 (cards, reading guide)."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def accept_for(rule: Leaf, tag: str = "") -> Accept:
    """Return the test of a leaf rule; ``tag`` is the ``type`` of the surrounding object, which decides about bounds."""
    match rule:
        case Text(limit):
            return _text(limit)
        case OneOf(_, members):
            return _one_of(frozenset(members))
        case Identifier():
            return is_id
        case Flag():
            return _is_flag
        case Number(low, high):
            return _number(-_LARGEST if low is None else low, _LARGEST if high is None else high)
        case Count(ceiling):
            return _number_count(_LARGEST if ceiling is None else ceiling)
        case Bound():
            return _is_date if tag == "date" else _number(-_LARGEST, _LARGEST)


def _text(limit: int) -> Accept:
    safe = limit // 2  # so short that even surrogate pairs fit

    def accept(value: object) -> bool:
        if not isinstance(value, str):
            return False
        size = len(value)
        if size > safe and (size > limit or utf16_length(value) > limit):
            return False
        return size > 0 and not value.isspace()

    return accept


def accept_all_for(rule: Leaf) -> AcceptAll:
    """Return a test of many values at once. For texts it is quick where nothing needs counting in UTF-16."""
    accept = accept_for(rule)
    if not isinstance(rule, Text):
        return lambda values: all(map(accept, values))
    safe = rule.limit // 2

    def accept_all(values: list[object]) -> bool:
        texts = cast("list[str]", values)  # joining tells
        try:
            short = len("".join(texts)) <= safe or max(map(len, texts)) <= safe
        except TypeError:  # some value is no string
            return False
        return all(map(str.strip, texts)) if short else all(map(accept, values))

    return accept_all


def _one_of(members: frozenset[str]) -> Accept:
    return lambda value: isinstance(value, str) and value in members


def _number(low: float, high: float) -> Accept:
    # NaN fails every comparison, the infinities fail the outer bounds.
    return lambda value: (
        isinstance(value, (int, float)) and value is not True and value is not False and low <= value <= high
    )


def _number_count(ceiling: float) -> Accept:
    within = _number(0, ceiling)
    return lambda value: within(value) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))


def is_id(value: object) -> bool:
    """Tell whether a value is a string matching `ID_PATTERN` as a whole (a trailing newline does not pass)."""
    return isinstance(value, str) and _id_match(value) is not None


def _is_date(value: object) -> bool:
    return isinstance(value, str) and _date_match(value) is not None


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def allowed(rule: Rule, tag: str = "") -> str:
    """Say what a rule allows, as the words after "must be" (cards §5.1)."""
    match rule:
        case ListOf():
            return f"a non-empty array of at most {limit_of(rule, tag)} entries"
        case Record() | Variants():
            return "an object"
        case Text(limit):
            return f"a non-blank string of at most {limit} UTF-16 code units"
        case OneOf("block kind", _):
            return _words(BLOCK_KINDS)
        case OneOf(_, members):
            return _words(members)
        case Identifier():
            return f"an identifier matching ^{ID_PATTERN}$"
        case _:
            return _allowed_scalar(rule, tag)


def _allowed_scalar(rule: Flag | Number | Count | Bound, tag: str) -> str:
    match rule:
        case Flag():
            return "true or false"
        case Number(low, high):
            return "a finite number" if low is None else f"a finite number from {low} to {high}"
        case Count(ceiling):
            return "a non-negative integer" if ceiling is None else f"a non-negative integer of at most {ceiling}"
        case Bound():
            return "a date written YYYY-MM-DD" if tag == "date" else "a finite number"


def _words(members: tuple[str, ...]) -> str:
    quoted = ", ".join(f'"{member}"' for member in members)
    return quoted if len(members) == 1 else f"one of {quoted}"


def limit_of(rule: ListOf, tag: str) -> int:
    """Return how many entries the array may have inside an object of this ``type``."""
    for name, limit in rule.limit_for:
        if name == tag:
            return limit
    return rule.limit
