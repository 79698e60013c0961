"""Cards made from the schema table: valid ones, and every way to break one rule of a valid one."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from canon_hermes_plugin.domain.cards.schema import (
    BLOCK,
    CARD,
    Bound,
    Count,
    Flag,
    Identifier,
    Key,
    ListOf,
    Number,
    OneOf,
    Record,
    Rule,
    Text,
    Variants,
)
from hypothesis import strategies as st

ABSENT = object()
_IDS = st.text("abcXYZ019_.:-", min_size=1, max_size=6)
_WORDS = st.text(st.characters(categories=["L", "N", "P", "So"]), min_size=1, max_size=8)
_NUMBERS = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
_DATES = st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", fullmatch=True)


@dataclass(frozen=True)
class Break:
    """One change that breaks one rule: where, to what (`ABSENT` removes), and the paths of the errors it causes."""

    steps: tuple[Any, ...]
    value: Any
    errors: tuple[str, ...]
    key: str = ""  # an unknown key the error must quote
    cascades: bool = False  # a wrong type makes the keys that depend on it wrong too

    @property
    def removes(self) -> bool:
        """Whether the change takes a key away instead of giving it another value."""
        return self.value is ABSENT

    def of(self, card: dict[str, Any]) -> dict[str, Any]:
        broken = copy.deepcopy(card)
        node: Any = broken
        for step in self.steps[:-1]:
            node = node[step]
        if self.value is ABSENT:
            del node[self.steps[-1]]
        else:
            node[self.steps[-1]] = self.value
        return broken


def allowed_for(key: Key, tag: str) -> bool:
    return not key.only_for or tag in key.only_for


def needed_for(key: Key, tag: str) -> bool:
    return allowed_for(key, tag) and (key.required or tag in key.needed_for)


@st.composite
def values(draw: Callable[..., Any], rule: Rule, tag: str = "", mark: str = "") -> Any:  # noqa: C901 - one case a rule
    """Draw a value the rule allows; ``mark`` goes into ids, labels and choice values to keep them apart."""
    match rule:
        case Text(limit):
            text = (
                draw(_WORDS | st.just("x" * limit if limit <= 200 else "x")) if not mark else f"{mark} {draw(_WORDS)}"
            )
            return text[:limit] if text.isascii() else text[: limit // 2]
        case OneOf(_, members):
            return draw(st.sampled_from(members))
        case Identifier():
            return f"{draw(_IDS)}{mark}"
        case Flag():
            return draw(st.booleans())
        case Number(low, high):
            return draw(_NUMBERS if low is None else st.floats(low, high))
        case Count(ceiling):
            return draw(st.integers(0, ceiling or 10**6) | st.integers(0, ceiling or 1000).map(float))
        case Bound():
            return draw(_DATES if tag == "date" else _NUMBERS)
        case ListOf():
            count = draw(st.integers(1, 3))
            return [draw(values(rule.item, tag, f"{mark}{index}")) for index in range(count)]
        case Variants(_, variants):
            return draw(values(draw(st.sampled_from(variants)), "", ""))
        case Record():
            return draw(objects(rule, mark))


@st.composite
def objects(draw: Callable[..., Any], record: Record, mark: str) -> dict[str, Any]:
    types = next((key.rule for key in record.keys if key.name == "type"), None)
    tag = draw(st.sampled_from(types.members)) if isinstance(types, OneOf) else ""
    value: dict[str, Any] = {}
    for key in record.keys:
        if not (needed_for(key, tag) or (allowed_for(key, tag) and draw(st.booleans()))):
            continue
        own = mark if record.unique and key.name in {"id", "label", "value"} else ""
        value[key.name] = tag if key.name == "type" else draw(values(key.rule, tag, own))
        if key.lower in value and value[key.lower] > value[key.name]:
            value[key.lower], value[key.name] = value[key.name], value[key.lower]
            if isinstance(key.rule, Count) and key.rule.ceiling:
                value[key.name] = min(value[key.name], key.rule.ceiling)
                value[key.lower] = min(value[key.lower], value[key.name])
    names = draw(st.permutations(list(value)))
    return {name: value[name] for name in names}


@st.composite
def valid_cards(draw: Callable[..., Any]) -> dict[str, Any]:
    """Draw a valid card: any blocks, at most one of them with actions."""
    card = draw(objects(CARD, ""))
    once = [record.name for record in BLOCK.records if record.once]
    seen: set[str] = set()
    blocks = []
    for block in card["blocks"]:
        if block["kind"] not in seen:
            blocks.append(block)
        if block["kind"] in once:
            seen.add(block["kind"])
    card["blocks"] = blocks
    return card


def breaks(card: dict[str, Any]) -> Iterator[Break]:
    """Yield every change to a valid card that breaks exactly one rule."""
    yield from _breaks_of_object(CARD, card, "card", ())
    block = next((block for block in card["blocks"] if block["kind"] == "actions"), None)
    if block and len(card["blocks"]) < 24 and len(block["actions"]) <= 6:
        again = copy.deepcopy(block)
        for index, action in enumerate(again["actions"]):
            action["id"] = f"again{index}"
        count = len(card["blocks"])
        yield Break(("blocks",), [*card["blocks"], again], (f"card.blocks[{count}]",))


def _breaks_of_object(record: Record, value: dict[str, Any], path: str, steps: tuple[Any, ...]) -> Iterator[Break]:
    tag = value.get("type", "")
    yield Break((*steps, "zeta"), None, (path,), key="zeta")
    for key in record.keys:
        here, there = f"{path}.{key.name}", (*steps, key.name)
        twice = (here, here) if tag in key.needed_for else (here,)
        if not allowed_for(key, tag):
            yield Break(there, 1, (here,))
        elif key.name not in value:
            continue
        else:
            if needed_for(key, tag):
                yield Break(there, ABSENT, (here,), cascades=key.name == "type")
            for bad in _bad(key.rule, tag):
                no_array = tag in key.needed_for and not isinstance(bad, list)
                yield Break(there, bad, twice if no_array else (here,), cascades=key.name == "type")
            yield from _breaks_inside(key.rule, value[key.name], here, there, tag)
        if key.lower in value and key.name in value:
            yield from _breaks_of_order(key, value, path, steps, tag)


def _breaks_of_order(key: Key, value: dict[str, Any], path: str, steps: tuple[Any, ...], tag: str) -> Iterator[Break]:
    high = value[key.name]
    if tag == "date":
        if high < "9999-99-99":
            yield Break((*steps, key.lower), "9999-99-99", (f"{path}.{key.lower}",))
    elif math.floor(high) + 1 > high:
        yield Break((*steps, key.lower), math.floor(high) + 1, (f"{path}.{key.lower}",))


def _breaks_inside(rule: Rule, value: Any, path: str, steps: tuple[Any, ...], tag: str) -> Iterator[Break]:
    match rule:
        case ListOf(item=item):
            for index, entry in enumerate(value):
                here, there = f"{path}[{index}]", (*steps, index)
                for bad in _bad(item, tag):
                    yield Break(there, bad, (here,))
                yield from _breaks_inside(item, entry, here, there, tag)
                if isinstance(item, Record) and item.unique and index:
                    yield from _repeats(item, value, index, here, there)
        case Variants(records=variants):
            record = next(record for record in variants if record.name == value["kind"])
            yield from _breaks_of_object(record, value, path, steps)
        case Record():
            yield from _breaks_of_object(rule, value, path, steps)
        case _:
            return


def _repeats(record: Record, entries: list[Any], index: int, path: str, steps: tuple[Any, ...]) -> Iterator[Break]:
    first = entries[0]
    if record.unique == "choice":
        name = first.get("value", first["label"])
        yield Break((*steps, "value"), f" {name} ", (path,))
    else:
        yield Break((*steps, "id"), first["id"], (f"{path}.id",))


def _bad(rule: Rule, tag: str) -> list[Any]:
    match rule:
        case Text(limit):
            return [None, 5, True, "", " \n", ["x"], "x" * (limit + 1), "\U0001f600" * (limit // 2 + 1)]
        case OneOf(_, members):
            return [None, 7, "nope", f"{members[0]} ", members[0].upper(), [members[0]]]
        case Identifier():
            return [None, 5, "", "a b", "ab\n", "é", "x" * 81]
        case Flag():
            return [None, 0, 1, "true"]
        case Number(low, high):
            beyond = [] if low is None or high is None else [low - 0.01, high + 0.01]
            return [None, "1", True, math.nan, math.inf, 10**400, *beyond]
        case Count(ceiling):
            return [None, "1", True, -1, 1.5, math.nan, 10**400, *([ceiling + 1] if ceiling else [])]
        case Bound():
            return [5, None, "2031-1-1", "2031-01-01\n"] if tag == "date" else [None, True, "2031-01-01", math.nan]
        case ListOf():
            return [None, {}, "x", (), []]
        case Record() | Variants():
            return [None, 5, "x", []]


def optional(record: Record, value: dict[str, Any], steps: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the steps to every key of a valid card that it could do without."""
    tag = value.get("type", "")
    for key in record.keys:
        if key.name in value:
            there = (*steps, key.name)
            if not needed_for(key, tag):
                yield there
            yield from _optional_inside(key.rule, value[key.name], there)


def _optional_inside(rule: Rule, value: Any, steps: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    match rule:
        case ListOf(item=item):
            for index, entry in enumerate(value):
                yield from _optional_inside(item, entry, (*steps, index))
        case Variants(records=variants):
            record = next(record for record in variants if record.name == value["kind"])
            yield from optional(record, value, steps)
        case Record():
            yield from optional(rule, value, steps)
        case _:
            return


def complete(rule: Rule, pick: int, tag: str = "") -> Any:
    """Return a value with every key the table allows; ``pick`` chooses among kinds and types."""
    match rule:
        case ListOf(item=item):
            return [complete(item, pick)]
        case Variants(records=variants):
            return complete(variants[pick % len(variants)], pick)
        case Record():
            types = next((key.rule for key in rule.keys if key.name == "type"), None)
            turn = pick if rule.name == "field" else pick // 10
            own = types.members[turn % len(types.members)] if isinstance(types, OneOf) else ""
            value = {key.name: complete(key.rule, pick, own) for key in rule.keys if allowed_for(key, own)}
            return {**value, "type": own} if own else value
        case Bound():
            return "2031-01-01" if tag == "date" else 1
        case Flag():
            return True
        case _:
            return least(rule, tag)


def least(rule: Rule, tag: str = "", mark: int = 0) -> Any:
    """Return the smallest value a rule allows; ``mark`` tells siblings apart."""
    match rule:
        case Text():
            return str(mark)
        case OneOf(_, members):
            return members[0]
        case Identifier():
            return f"i{mark}"
        case ListOf(item=item):
            return [least(item)]
        case Variants(records=variants):
            return least(variants[0])
        case Record():
            return {key.name: least(key.rule, tag, mark) for key in rule.keys if needed_for(key, tag)}
        case _:
            return 1


def filled(rule: Rule, target: ListOf, count: int, only: str) -> Iterator[Any]:
    """Yield values in which the given array of the table has ``count`` entries, for every ``type`` that may own it.

    ``only`` is a type with a limit of its own; when empty, those types are left out.
    """
    match rule:
        case ListOf(item=item):
            if rule is target:
                yield [least(item, mark=index) for index in range(count)]
            else:
                yield from ([inner] for inner in filled(item, target, count, only))
        case Variants(records=variants):
            for variant in variants:
                yield from filled(variant, target, count, only)
        case Record():
            types = next((key.rule for key in rule.keys if key.name == "type"), None)
            for own in types.members if isinstance(types, OneOf) else ("",):
                for key in rule.keys:
                    if allowed_for(key, own) and (key.rule is not target or _owns(target, own, only)):
                        for inner in filled(key.rule, target, count, only):
                            yield {**least(rule, own), **({"type": own} if own else {}), key.name: inner}
        case _:
            return


def _owns(target: ListOf, own: str, only: str) -> bool:
    return own == only if only else own not in dict(target.limit_for)


@dataclass(frozen=True)
class CardMaker:
    """What the tests of this folder draw their cards from."""

    valid = staticmethod(valid_cards)
    breaks = staticmethod(breaks)
    filled = staticmethod(lambda *which: list(filled(CARD, *which)))
    complete = staticmethod(lambda: [complete(CARD, pick) for pick in range(450)])
    optional = staticmethod(lambda card: list(optional(CARD, card)))


@pytest.fixture(scope="session")
def maker() -> CardMaker:
    return CardMaker()
