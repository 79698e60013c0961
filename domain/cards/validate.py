"""The validator: walks a value along the schema table and explains every departure from it (cards §5).

Decides the verdict, the paths and the order of errors. Refuses to know the shape itself (`schema`), how single values
are tested (`leaves`) and what the JSON form costs (`size`).
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Final, TypedDict, cast

from canon_hermes_plugin.domain.cards.leaves import accept_for, allowed, is_array, is_id, is_object, limit_of
from canon_hermes_plugin.domain.cards.limits import (
    MAX_CARD_BYTES,
    MAX_CARD_ERRORS,
    MAX_QUOTED_KEY,
    RUNTIME_CARD_LIMITS,
)
from canon_hermes_plugin.domain.cards.plan import ARRAYS, DIRTY, PLANS, SETTLED, RecordPlan
from canon_hermes_plugin.domain.cards.schema import (
    ACTION,
    BLOCK,
    CARD,
    Bound,
    Count,
    Key,
    ListOf,
    Record,
    Rule,
    Variants,
)
from canon_hermes_plugin.domain.cards.size import exact_size_fault, size_fault

_MISSING: Final = object()
_TOTAL_ACTIONS: Final = RUNTIME_CARD_LIMITS["totalActions"]
UNKNOWN_KEY: Final = "must not have the key"
_CUT: Final = "card has more errors than are listed here: repair these first"

# Entries are charged the fewest bytes a valid one takes. A document with more than this to visit exceeds the byte cap
# or, where its entries are shorter than valid ones, has more errors than are listed: the rest need not be visited.
_MAX_WEIGHT: Final = MAX_CARD_BYTES + MAX_CARD_ERRORS * 100

_BLOCK_PLANS: Final = {record.name: PLANS[record] for record in BLOCK.records}
_KIND_WANTED: Final = f"must be {allowed(BLOCK.records[0].keys[0].rule)}"
_REPEATED_ID: Final = {
    "card id": "must be an identifier no other action of the card has",
    "sibling id": "must be an identifier no other entry of this array has",
}


class CardVerdict(TypedDict):
    """The answer of `validate_card`: ``ok`` is true exactly when ``errors`` is empty."""

    ok: bool
    errors: list[str]


class _Enough(Exception):  # noqa: N818 - a way out of the walk, not an error
    """The list of errors is full, or more of the document was visited than a card can hold."""


def validate_card(value: object) -> CardVerdict:
    """Judge whether a value is a valid ``canon.card.v1`` document (cards §1, §5).

    Args:
        value: Anything, JSON or not. It is neither changed nor kept.

    Returns:
        ``{"ok": bool, "errors": [str, ...]}``. Each error is one line: the path of the offending node (``card``,
        ``card.blocks[0].text``), a space, and what is allowed there. Errors come in the order of cards §5.2, at most
        `MAX_CARD_ERRORS` of them and one line that says the list was cut.

    Never raises.
    """
    try:
        errors = _errors(value)
    except Exception:  # noqa: BLE001 - cards §5 rule 7: objects whose own methods raise must still get a verdict
        errors = ["card cannot be inspected: it must be a plain JSON object"]
    return {"ok": not errors, "errors": errors}


def _errors(value: object) -> list[str]:
    if not is_object(value):
        return ["card must be an object"]
    walk = _Walk()
    cut: list[str] = []
    try:
        walk.card(value)
    except _Enough:
        cut.append(_CUT)
    # A value without any fault holds only what the schema names, so its depth and types need no survey of their own.
    fault = size_fault(value) if walk.errors or cut else exact_size_fault(value)
    return [f"card {fault}", *walk.errors, *cut] if fault else [*walk.errors, *cut]


@dataclass(frozen=True, slots=True)
class _Node:
    """An object under a closer look: its keys, its path, its ``type``, and whether its id was used before."""

    plan: RecordPlan
    value: dict[object, object]
    path: str
    tag: str
    repeated: bool = False


class _Walk:
    """One pass over one document."""

    __slots__ = ("action_ids", "actions", "errors", "seen_once", "weight")

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.weight = 0
        self.actions = 0
        self.action_ids: set[object] = set()
        self.seen_once: set[str] = set()

    def add(self, path: str, explanation: str) -> None:
        if len(self.errors) >= MAX_CARD_ERRORS:
            raise _Enough
        self.errors.append(f"{path} {explanation}")

    def card(self, value: dict[object, object]) -> None:
        self.lone(PLANS[CARD], value, "card")
        if self.actions > _TOTAL_ACTIONS:
            self.add("card", f"must have at most {_TOTAL_ACTIONS} actions in all blocks together")

    def lone(self, plan: RecordPlan, value: dict[object, object], path: str) -> None:
        """Examine an object that is not an entry of an array."""
        look = plan.look(value)
        if look is not SETTLED:
            self.examine(_Node(plan, value, path, ""), dirty=look is DIRTY)

    def array(self, rule: ListOf, value: object, path: str, tag: str) -> None:
        """Examine an array and its entries, those beyond the limit too (cards §5 rule 3)."""
        entries = value if is_array(value) else []
        if not 0 < len(entries) <= limit_of(rule, tag):
            self.add(path, f"must be {allowed(rule, tag)}")
        plan = ARRAYS[rule]
        room = (_MAX_WEIGHT - self.weight) // plan.least
        self.weight += plan.least * len(entries)
        seen = entries if len(entries) <= room else entries[:room]
        if plan.accept_all is None or not plan.accept_all(seen):
            self.entries(rule.item, seen, path, tag)
        if len(entries) > room:
            raise _Enough

    def entries(self, item: Rule, entries: list[object], path: str, tag: str) -> None:
        if isinstance(item, Record):
            self.siblings(item, entries, path)
        elif isinstance(item, Variants):
            for index, entry in enumerate(entries):
                self.block(entry, f"{path}[{index}]")
        elif isinstance(item, ListOf):
            for index, entry in enumerate(entries):
                self.array(item, entry, f"{path}[{index}]", tag)
        else:
            accept = accept_for(item)
            for index, entry in enumerate(entries):
                if not accept(entry):
                    self.add(f"{path}[{index}]", f"must be {allowed(item)}")

    def siblings(self, record: Record, entries: list[object], path: str) -> None:
        """Examine objects that share an array, among which an id or a choice may not repeat."""
        plan = base = PLANS[record]
        unique, by_type = record.unique, base.by_type
        by_id = unique not in {"", "choice"}
        names: set[object] = self.action_ids if unique == "card id" else set()
        for index, entry in enumerate(entries):
            if not is_object(entry):
                self.add(f"{path}[{index}]", "must be an object")
                continue
            if by_type:
                kind = entry.get("type")
                plan = by_type.get(kind, base) if isinstance(kind, str) else base
            look = plan.look(entry)
            name = entry["id"] if by_id and look is not DIRTY else _name(unique, entry) if unique else None
            repeated = name in names
            if look is not SETTLED or repeated:
                node = _Node(plan, entry, f"{path}[{index}]", _tag(entry), repeated)
                self.examine(node, dirty=repeated or look is DIRTY)
            if name is not None:
                names.add(name)
        if record is ACTION:
            self.actions += sum(isinstance(entry, dict) for entry in entries)

    def block(self, value: object, path: str) -> None:
        if not is_object(value):
            self.add(path, "must be an object")
            return
        kind = value.get("kind")
        plan = _BLOCK_PLANS.get(kind) if isinstance(kind, str) else None
        if plan is None:
            self.add(f"{path}.kind", _KIND_WANTED)
        else:
            self.lone(plan, value, path)

    def examine(self, node: _Node, *, dirty: bool) -> None:
        """Examine the keys in the order of the table: all of a dirty object, else arrays and objects only."""
        record = node.plan.record
        if dirty:
            for key in record.keys[: record.lead]:
                self.key(node, key)
            self.unknown(node)
        if record.once:
            if record.name in self.seen_once:
                self.add(node.path, f'must not be a second block of kind "{record.name}"')
            self.seen_once.add(record.name)
        for key in record.keys[record.lead :] if dirty else node.plan.open_keys:
            if dirty or key.name in node.value:
                self.key(node, key)
        if node.repeated and record.unique == "choice":
            self.add(node.path, "must differ from the choices before it in its value, or in its label if it has none")

    def unknown(self, node: _Node) -> None:
        for name in node.value:
            if name not in node.plan.names:
                self.add(node.path, f'{UNKNOWN_KEY} "{quotable(name)}": allowed are {_names(node.plan.record)}')

    def key(self, node: _Node, key: Key) -> None:
        """Examine one key of an object, present or not."""
        item = node.value.get(key.name, _MISSING)
        path = f"{node.path}.{key.name}"
        if key.only_for and node.tag not in key.only_for:
            if item is not _MISSING:
                self.add(path, f"is only allowed when type is {_any_of(key.only_for)}")
            return
        if node.tag in key.needed_for and not is_array(item):
            self.add(path, f"is required when type is {_any_of(key.needed_for)}: {allowed(key.rule, node.tag)}")
        if item is not _MISSING:
            self.present(node, key, item, path)
        elif key.required:
            self.add(path, f"is required: {allowed(key.rule, node.tag)}")

    def present(self, node: _Node, key: Key, item: object, path: str) -> None:
        """Examine the value of a key that is there and may be."""
        rule = key.rule
        if isinstance(rule, ListOf):
            self.array(rule, item, path, node.tag)
        elif isinstance(rule, (Record, Variants)):
            self.only_child(rule, item, path)
        elif not accept_for(rule, node.tag)(item):
            self.add(path, f"must be {allowed(rule, node.tag)}")
        elif node.repeated and key.name == "id":
            self.add(path, _REPEATED_ID[node.plan.record.unique])
        if key.lower:
            self.ordered(node, key, item)

    def only_child(self, rule: Record | Variants, item: object, path: str) -> None:
        if isinstance(rule, Record) and is_object(item):
            self.lone(PLANS[rule], item, path)
        else:
            self.add(path, f"must be {allowed(rule)}")

    def ordered(self, node: _Node, key: Key, high: object) -> None:
        """Compare a lower with an upper bound when both have the right type, whatever their ceilings."""
        low = node.value.get(key.lower, _MISSING)
        accept = accept_for(Count() if isinstance(key.rule, Count) else Bound(), node.tag)
        if accept(low) and accept(high) and cast("float", low) > cast("float", high):
            self.add(f"{node.path}.{key.lower}", f"must not exceed {key.name}")


def _tag(value: dict[object, object]) -> str:
    """Return the ``type`` of an object, empty when it has none that could decide anything."""
    tag = value.get("type")
    return tag if isinstance(tag, str) else ""


def _name(unique: str, value: dict[object, object]) -> str | None:
    """Return what tells an object from its siblings, None when it has nothing of the kind (cards §4.6, §5.2)."""
    if unique != "choice":
        name = value.get("id")
        return name if isinstance(name, str) and is_id(name) else None
    name = value.get("value")
    if isinstance(name, str) and name and not name.isspace():
        return name.strip()
    label = value.get("label")
    return label.strip() if isinstance(label, str) else None


def _names(record: Record) -> str:
    return ", ".join(key.name for key in record.keys)


def _any_of(tags: frozenset[str]) -> str:
    return " or ".join(sorted(tags))


def quotable(name: object) -> str:
    """Return a key as bounded text on one line."""
    if not isinstance(name, str):
        try:
            name = reprlib.repr(name)
        except ValueError:  # an integer without a text form
            name = type(name).__name__
    text = name if len(name) <= MAX_QUOTED_KEY else f"{name[:MAX_QUOTED_KEY]}…"
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
