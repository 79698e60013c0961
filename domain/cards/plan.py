"""The schema table made ready for a fast pass: which keys settle with one test, and which need a closer look.

Decides only how the table is walked cheaply. An object whose keys all pass their own tests and that
holds neither an array nor an object is finished after one loop over its keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, cast

from canon_hermes_plugin.domain.cards.leaves import Accept, AcceptAll, accept_all_for, accept_for
from canon_hermes_plugin.domain.cards.schema import (
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


class Look(Enum):
    """What one loop over an object's keys found out."""

    DIRTY = auto()
    """Some key is unknown, missing or wrong: go through all keys in order."""
    OPEN = auto()
    """Nothing wrong so far, but arrays or nested objects remain."""
    SETTLED = auto()
    """Nothing wrong, nothing left to examine."""


DIRTY: Final = Look.DIRTY
OPEN: Final = Look.OPEN
SETTLED: Final = Look.SETTLED


def _anything(_value: object) -> bool:
    return True


@dataclass(frozen=True, slots=True, eq=False)
class RecordPlan:
    """One record of the table, for one value of its ``type`` if it has that key, with all the walk looks up often."""

    record: Record
    names: frozenset[str]
    accepts: dict[object, Accept]
    needed: tuple[str, ...]
    open_keys: tuple[Key, ...]
    open_names: frozenset[str]
    pairs: tuple[tuple[str, str], ...]
    by_type: dict[str, RecordPlan]

    def look(self, value: dict[object, object]) -> Look:
        """Test every key of an object once, in whatever order the document has them."""
        accepts = self.accepts
        try:
            for name, item in value.items():
                if not accepts[name](item):
                    return DIRTY
        except (KeyError, TypeError):  # a key the table does not have; a value that is no word, nor anything hashable
            return DIRTY
        for name in self.needed:
            if name not in value:
                return DIRTY
        for low, high in self.pairs:
            if low in value and high in value and cast("float", value[low]) > cast("float", value[high]):
                return DIRTY
        return SETTLED if self.open_names.isdisjoint(value) else OPEN


@dataclass(frozen=True, slots=True, eq=False)
class ArrayPlan:
    """One array of the table: the fewest bytes a valid entry takes, and a test of all entries at once."""

    least: int
    accept_all: AcceptAll | None


def _plan(record: Record, tag: str = "") -> RecordPlan:
    keys = [key for key in record.keys if not key.only_for or tag in key.only_for]
    types = [key.rule for key in record.keys if key.name == "type"]
    open_keys = tuple(key for key in keys if isinstance(key.rule, (ListOf, Record, Variants)))
    return RecordPlan(
        record=record,
        names=frozenset(key.name for key in record.keys),
        accepts={key.name: _accept(key.rule, tag) for key in keys},
        needed=tuple(key.name for key in keys if key.required or tag in key.needed_for),
        open_keys=open_keys,
        open_names=frozenset(key.name for key in open_keys),
        pairs=tuple((key.lower, key.name) for key in keys if key.lower),
        by_type={
            name: _plan(record, name) for rule in types if isinstance(rule, OneOf) and not tag for name in rule.members
        },
    )


def _accept(rule: Rule, tag: str) -> Accept:
    """Return a test for the quick look only: unlike `accept_for`, it may raise TypeError on unhashable values."""
    if isinstance(rule, OneOf):
        return frozenset[object](rule.members).__contains__
    return _anything if isinstance(rule, (ListOf, Record, Variants)) else accept_for(rule, tag)


def records(rule: Rule = CARD) -> Iterator[Record]:
    """Yield every record reachable from a rule, parents before children."""
    match rule:
        case Record(keys=keys):
            yield rule
            for key in keys:
                yield from records(key.rule)
        case Variants(records=variants):
            for variant in variants:
                yield from records(variant)
        case ListOf(item=item):
            yield from records(item)
        case _:
            return


def least_bytes(rule: Rule) -> int:
    """Return the fewest bytes a valid value takes in compact JSON, the entries of arrays not counted."""
    match rule:
        case Record(keys=keys):
            return 1 + sum(
                len(key.name) + 4 + least_bytes(key.rule) for key in keys if key.required and not key.only_for
            )
        case Variants(records=variants):
            return min(least_bytes(variant) for variant in variants)
        case OneOf(members=members):
            return 2 + min(map(len, members))
        case Text() | Identifier():
            return 3
        case ListOf():
            return 2
        case Flag() | Number() | Count() | Bound():
            return 1


def arrays(rule: Rule = CARD) -> Iterator[ListOf]:
    """Yield every array reachable from a rule."""
    match rule:
        case ListOf(item=item):
            yield rule
            yield from arrays(item)
        case Record(keys=keys):
            for key in keys:
                yield from arrays(key.rule)
        case Variants(records=variants):
            for variant in variants:
                yield from arrays(variant)
        case _:
            return


PLANS: Final = {record: _plan(record) for record in records()}
"""The plan of every record of the table."""

ARRAYS: Final = {
    array: ArrayPlan(
        least=least_bytes(array.item) + 1,
        accept_all=None if isinstance(array.item, (ListOf, Record, Variants)) else accept_all_for(array.item),
    )
    for array in arrays()
}
"""The plan of every array of the table."""
