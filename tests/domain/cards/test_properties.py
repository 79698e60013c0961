"""What holds for every card and for every value that is none (cards §9)."""

from __future__ import annotations

import copy
import json
import math
import sys

import pytest
from canon_hermes_plugin.cards import MAX_CARD_BYTES, interactive, validate_card
from canon_hermes_plugin.domain.cards.limits import MAX_CARD_ERRORS, MAX_QUOTED_KEY
from canon_hermes_plugin.domain.cards.plan import arrays, records
from canon_hermes_plugin.domain.cards.schema import CARD, Count, Text
from hypothesis import given, settings
from hypothesis import strategies as st

VALID = {"ok": True, "errors": []}
ARRAYS = [
    pytest.param(array, tag, limit, id=f"{index}-{tag or 'any'}")
    for index, array in enumerate(dict.fromkeys(arrays()))
    for tag, limit in (("", array.limit), *array.limit_for)
]
KEYS = sorted({key.name for record in records() for key in record.keys})
JUNK = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.just(5000).map(lambda digits: 10**digits)
    | st.sampled_from(
        ["canon.card.v1", "summary", "actions", "select", "\ud800", "a\x00\u2028b", 10**400, b"x", {1}, ()]
    )
)
ODD_KEYS = st.sampled_from(KEYS) | st.text(max_size=4) | st.integers() | st.none() | st.just((1,)) | st.just("\ud800\n")
ANYTHING = st.recursive(
    JUNK, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ODD_KEYS, inner, max_size=6), max_leaves=40
)


def card(*blocks, **keys):
    return {"schema": "canon.card.v1", "title": "T", "fallbackText": "F", "blocks": list(blocks), **keys}


def assert_verdict(value) -> None:
    """Whatever the value: a verdict, bounded in number and length, one line each, every line under the root's path."""
    verdict = validate_card(value)
    assert set(verdict) == {"ok", "errors"}
    assert verdict["ok"] is (not verdict["errors"])
    assert len(verdict["errors"]) <= MAX_CARD_ERRORS + 2
    for error in verdict["errors"]:
        path, _, explanation = error.partition(" ")
        assert path == "card" or path.startswith("card.")
        assert explanation
        assert error.isprintable()
        assert len(error) <= MAX_QUOTED_KEY * 10 + 300


@given(data=st.data())
def test_every_card_the_table_allows_is_accepted(maker, data):
    made = data.draw(maker.valid())
    before = copy.deepcopy(made)
    assert validate_card(made) == VALID
    assert made == before


def calls(value) -> int:
    """Count the function calls a verdict takes, which no machine's speed can blur."""
    count = 0

    def tally(_frame, event, _argument):
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(tally)
    try:
        validate_card(value)
    finally:
        sys.setprofile(None)
    return count


def assert_breaks(maker, made) -> None:
    for change in maker.breaks(made):
        errors = validate_card(change.of(made))["errors"]
        paths = tuple(error.split(" ")[0] for error in errors)
        if change.cascades:
            assert change.errors[0] in paths, (change, errors)
        else:
            assert paths == change.errors, (change, errors)
        assert not change.key or f'"{change.key}"' in errors[0]


@settings(max_examples=60)
@given(data=st.data())
def test_every_single_change_that_breaks_a_rule_is_rejected_at_its_path(maker, data):
    assert_breaks(maker, data.draw(maker.valid()))


def test_every_rule_of_the_whole_table_is_enforced(maker):
    """The same changes, applied to cards that together hold every key of every kind and type."""
    cards = maker.complete()
    for made in cards:
        assert validate_card(made) == VALID
    seen = {tuple(step for step in steps if isinstance(step, str)) for made in cards for steps in maker.optional(made)}
    assert {steps[-1] for steps in seen} >= {
        key.name for record in records() for key in record.keys if not key.required
    }
    for made in cards[:90]:
        assert_breaks(maker, made)


def test_removing_any_optional_key_keeps_a_card_valid(maker):
    for made in maker.complete()[:90]:
        for *steps, last in maker.optional(made):
            slim = copy.deepcopy(made)
            node = slim
            for step in steps:
                node = node[step]
            del node[last]
            assert validate_card(slim) == VALID


@given(value=ANYTHING, data=st.data())
def test_the_verdict_does_not_depend_on_the_order_of_keys(value, data):
    def shuffled(node):
        if isinstance(node, dict):
            return {key: shuffled(node[key]) for key in data.draw(st.permutations(list(node)))}
        return [shuffled(entry) for entry in node] if isinstance(node, list) else node

    made = card(value, {"kind": "actions", "actions": [value]})
    assert sorted(validate_card(made)["errors"]) == sorted(validate_card(shuffled(made))["errors"])


@pytest.mark.parametrize(("array", "tag", "limit"), ARRAYS)
def test_every_array_limit_is_tight(maker, array, tag, limit):
    full, over = maker.filled(array, limit, tag), maker.filled(array, limit + 1, tag)
    assert full
    for made in full:
        assert validate_card(made) == VALID
    for made in over:
        assert not validate_card(made)["ok"]


@pytest.mark.parametrize("text", ["x", "\U0001f600x", "é"])
@pytest.mark.parametrize("key", [key for key in CARD.keys if isinstance(key.rule, Text)], ids=lambda key: key.name)
def test_every_text_limit_is_tight_in_utf16_units(key, text):
    def units(string):
        return len(string.encode("utf-16-le")) // 2

    full = (text * key.rule.limit)[: key.rule.limit]
    while units(full) > key.rule.limit:
        full = full[:-1]
    full += "x" * (key.rule.limit - units(full))
    assert validate_card(card({"kind": "summary", "text": "x"}, **{key.name: full})) == VALID
    assert not validate_card(card({"kind": "summary", "text": "x"}, **{key.name: full + "x"}))["ok"]


def test_submitted_rows_are_limited_through_max_rows():
    ceilings = {key.rule.ceiling for record in records() for key in record.keys if isinstance(key.rule, Count)} - {None}
    assert ceilings == {50}


def test_the_byte_cap_is_tight():
    text = "é" * 1000
    blocks = [{"kind": "summary", "text": text} for _ in range(16)]
    size = len(json.dumps(card(*blocks), ensure_ascii=False, separators=(",", ":")).encode())
    assert size < MAX_CARD_BYTES
    blocks.append({"kind": "summary", "text": "x"})
    blocks[-1]["text"] = "x"
    while True:
        size = len(json.dumps(card(*blocks), ensure_ascii=False, separators=(",", ":")).encode())
        room = MAX_CARD_BYTES - size
        if room <= 0:
            break
        blocks[-1]["text"] += "x" * min(room, 2000 - len(blocks[-1]["text"]))
        if room > 2000:
            blocks.append({"kind": "summary", "text": "x"})
    assert size == MAX_CARD_BYTES
    assert validate_card(card(*blocks)) == VALID
    blocks[-1]["text"] += "x"
    (error,) = validate_card(card(*blocks))["errors"]
    assert error.startswith("card must not exceed 32768 bytes")


@settings(max_examples=300)
@given(value=ANYTHING)
def test_any_value_gets_a_verdict(value):
    assert_verdict(value)
    assert_verdict(card(value, value))
    assert_verdict(card({"kind": "actions", "actions": [{"id": "a", "label": "b", "fields": [value]}]}))
    interactive(value)


@settings(max_examples=100)
@given(data=st.data(), junk=ANYTHING)
def test_any_value_anywhere_in_a_card_gets_a_verdict(maker, data, junk):
    made = data.draw(maker.valid())
    change = data.draw(st.sampled_from(list(maker.breaks(made))))
    broken = change.of(made)
    node = broken
    for step in change.steps[:-1]:
        node = node[step]
    if isinstance(node, dict) or change.steps[-1] < len(node):
        node[change.steps[-1]] = junk
    assert_verdict(broken)


def test_cycles_of_every_kind_get_a_verdict():
    ring: list[object] = []
    ring.append(ring)
    loop: dict[str, object] = {"kind": "actions"}
    loop["actions"] = [loop, {"id": "a", "label": "b", "fields": [loop]}]
    for value in (ring, loop, card(loop), card(*ring), card({"kind": "list", "items": ring}), {"blocks": ring}):
        assert_verdict(value)
        interactive(value)
    assert validate_card(card({"kind": "summary", "text": "x"}, title=ring))["errors"][0].startswith("card cannot")


def test_shared_parts_cannot_blow_up_the_work():
    shared: object = ["x"]
    for _ in range(200):
        shared = [shared, shared]
    assert_verdict(card(shared, {"kind": "list", "items": [{"label": "a", "detail": shared}]}))
    choices = [{"label": "x", "value": " " * 30_000 + "y"}] * 20_000
    field = {"id": "f", "label": "F", "type": "select", "choices": choices}
    assert_verdict(
        card({"kind": "actions", "actions": [{"id": "a", "label": "A", "fields": [field] * 20_000}] * 20_000})
    )


def test_objects_that_raise_get_a_verdict():
    class Wicked(dict):
        def items(self):
            raise RuntimeError("no")

        def __iter__(self):
            raise RuntimeError("no")

        def get(self, *_):
            raise RuntimeError("no")

    class Unequal(str):
        __slots__ = ()

        def __eq__(self, _other):
            raise RuntimeError("no")

        __hash__ = str.__hash__

    assert_verdict(Wicked(schema=1))
    assert_verdict(card(Wicked(kind="summary")))
    assert_verdict(card({"kind": Unequal("summary"), "text": "x"}, title=Unequal("x"), tone=Unequal("primary")))
    assert not validate_card(card(Wicked(kind="summary")))["ok"]


def test_a_long_list_of_errors_is_cut_and_says_so():
    made = card(*[1] * 10_000)
    errors = validate_card(made)["errors"]
    assert len(errors) == MAX_CARD_ERRORS + 1
    assert errors[0].startswith("card.blocks ")
    assert errors[MAX_CARD_ERRORS - 1].startswith(f"card.blocks[{MAX_CARD_ERRORS - 2}] ")
    assert errors[-1] == "card has more errors than are listed here: repair these first"


def test_long_and_unprintable_keys_are_quoted_bounded_on_one_line():
    (error,) = validate_card(card({"kind": "summary", "text": "x"}, **{"k" * 5000: 1}))["errors"]
    assert f'"{"k" * MAX_QUOTED_KEY}…"' in error
    (error,) = validate_card(card({"kind": "summary", "text": "x"}, **{"a\n\x1b[31m\u202e": 1}))["errors"]
    assert '"a\\n\\x1b[31m\\u202e"' in error


@pytest.mark.parametrize(
    "grow",
    [
        lambda size: card(*[1] * size),
        lambda size: card(*[{"kind": "summary", "text": "x"}] * size),
        lambda size: {str(index): 1 for index in range(size)},
        lambda size: card({"kind": "table", "columns": ["a"], "rows": [["a"] * 8] * size}),
        lambda size: card({"kind": "table", "columns": ["a"], "rows": [["a", 1] * size]}),
        lambda size: card({"kind": "list", "items": [{"label": "x", "x": [[]] * 9}] * size}),
        lambda size: card({"kind": "summary", "text": [[1] * size] * 3}),
    ],
)
def test_work_stays_linear_in_the_size_of_the_document(grow):
    small, large = calls(grow(1_000)), calls(grow(4_000))
    assert large <= 4 * small + 200
    assert calls(grow(400_000)) <= 60 * small + 200_000


def test_a_document_far_too_large_costs_no_more_than_a_few_full_cards():
    points = [{"x": "a", "y": 1}] * 24
    chart = {"kind": "chart", "chart": "bar", "series": [{"points": points}] * 6}
    full, over = card(*[chart] * 11), card(*[chart] * 5_000)
    assert validate_card(full) == VALID
    assert calls(over) <= 5 * calls(full)


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (card({"kind": "actions", "actions": [{}]}), True),
        (card({"kind": "summary"}, {"kind": "actions", "actions": [None]}), True),
        ({"blocks": [{"kind": "actions", "actions": [1]}]}, True),
        (card({"kind": "actions", "actions": []}), False),
        (card({"kind": "actions", "actions": {"id": "a"}}), False),
        (card({"kind": "actions"}), False),
        (card({"kind": "Actions", "actions": [1]}), False),
        (card({"kind": ["actions"], "actions": [1]}), False),
        (card({"kind": "list", "actions": [1]}), False),
        (card("actions", None, ["actions"]), False),
        ({"blocks": {"kind": "actions", "actions": [1]}}, False),
        ([{"kind": "actions", "actions": [1]}], False),
        (None, False),
        ("actions", False),
        (math.nan, False),
    ],
)
def test_a_card_is_interactive_exactly_when_a_block_asks(value, answer):
    assert interactive(value) is answer
