"""What a verdict costs, in multiples of one ``json.dumps`` of the same document, both measured in one run."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable

import pytest
from canon_hermes_plugin.cards import MAX_CARD_BYTES, validate_card
from canon_hermes_plugin.domain.cards.limits import MAX_CARD_ERRORS

pytestmark = pytest.mark.bench
log = logging.getLogger("benchmarks.cards")  # shown with --log-cli-level=INFO
MEGABYTE = 1_000_000


def card(*blocks):
    return {"schema": "canon.card.v1", "title": "T", "fallbackText": "F", "blocks": list(blocks)}


def actions(*fields):
    """Spread fields over as few actions as hold them, eight each."""
    grouped = [fields[start : start + 8] for start in range(0, len(fields), 8)]
    made = [{"id": f"a{index}", "label": "A", "fields": list(group)} for index, group in enumerate(grouped)]
    return card({"kind": "actions", "actions": made})


def choices(index):
    entries = [{"label": str(number)} for number in range(100)]
    return {"id": f"f{index}", "label": "F", "type": "searchSelect", "choices": entries}


def columns(index):
    entries = [{"id": f"c{number}", "label": "C", "type": "text"} for number in range(8)]
    return {"id": f"f{index}", "label": "F", "type": "lineItems", "columns": entries}


def bounded(index):
    entries = [{"id": f"c{number}", "label": "C", "type": "number", "min": 1, "max": 2} for number in range(8)]
    return {"id": f"f{index}", "label": "F", "type": "lineItems", "columns": entries, "minRows": 1, "maxRows": 2}


SERIES = [{"points": [{"x": "M", "y": 1.5}] * 24}] * 6
LEGAL: dict[str, Callable[[int], dict[str, object]]] = {
    "texts": lambda size: card(*[{"kind": "summary", "text": "x" * 2000}] * size),
    "wide texts": lambda size: card(*[{"kind": "summary", "text": "é" * 2000}] * size),
    "tables": lambda size: card(*[{"kind": "table", "columns": ["a"] * 8, "rows": [["a"] * 8] * 24}] * size),
    "charts": lambda size: card(*[{"kind": "chart", "chart": "bar", "series": SERIES}] * size),
    "details": lambda size: card(*[{"kind": "details", "rows": [{"label": "a", "value": "b"}] * 32}] * size),
    "lists": lambda size: card(*[{"kind": "list", "items": [{"label": "a"}] * 24}] * size),
    "choices": lambda size: actions(*map(choices, range(size))),
    "columns": lambda size: actions(*map(columns, range(size))),
    "bounded columns": lambda size: actions(*map(bounded, range(size))),
}


def nested(levels: int) -> object:
    deep: object = 1
    for _ in range(levels):
        deep = [deep]
    return deep


HOSTILE: dict[str, Callable[[], object]] = {
    "one long string": lambda: {**card({"kind": "summary", "text": "x"}), "title": "x" * MEGABYTE},
    "one long blank": lambda: {**card({"kind": "summary", "text": "x"}), "title": " " * MEGABYTE},
    "unknown keys": lambda: {f"key {index}": 1 for index in range(MEGABYTE // 14)},
    "numbers for blocks": lambda: card(*[1] * (MEGABYTE // 3)),
    "empty blocks": lambda: card(*[{}] * (MEGABYTE // 4)),
    "valid blocks": lambda: card(*[{"kind": "summary", "text": "x"}] * (MEGABYTE // 35)),
    "cells": lambda: card({"kind": "table", "columns": ["a"], "rows": [["a"] * (MEGABYTE // 5)]}),
    "rows": lambda: card({"kind": "table", "columns": ["a"], "rows": [["a"]] * (MEGABYTE // 7)}),
    "points": lambda: card({"kind": "chart", "chart": "bar", "series": SERIES * (MEGABYTE // 3000)}),
    "choices": lambda: actions({**choices(0), "choices": [{"label": str(n)} for n in range(MEGABYTE // 18)]}),
    "wrong columns": lambda: actions({**columns(0), "columns": [{"id": "", "type": 1, "x": 0}] * (MEGABYTE // 30)}),
    "right columns": lambda: actions(
        {**columns(0), "columns": [{"id": f"c{n}", "label": "C", "type": "text", "min": 1} for n in range(16_000)]}
    ),
    "nested root": lambda: nested(100_000),
    "nested key": lambda: {"x": nested(100_000)},
    "nested text": lambda: card({"kind": "summary", "text": nested(100_000)}),
    "nested blocks": lambda: card(nested(100_000)),
    "nested inside a megabyte": lambda: card({"kind": "summary", "text": "x" * MEGABYTE, "x": nested(100_000)}),
}


def largest_legal(make: Callable[[int], dict[str, object]]) -> dict[str, object]:
    size = 1
    while validate_card(make(size + 1))["ok"]:
        size += 1
    return make(size)


def dump(value: object) -> None:
    try:
        json.dumps(value)
    except RecursionError:  # how the standard encoder answers endless nesting; that is the price to compare with
        return


def ratio(value: object, rounds: int) -> float:
    """Return the best time of a verdict over the best time of a dump, taken in turns."""
    verdicts, dumps = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        dump(value)
        middle = time.perf_counter()
        validate_card(value)
        dumps.append(middle - start)
        verdicts.append(time.perf_counter() - middle)
    return min(verdicts) / min(dumps)


@pytest.mark.parametrize("name", LEGAL)
def test_the_largest_legal_card_costs_at_most_five_dumps(name):
    made = largest_legal(LEGAL[name])
    assert validate_card(made)["ok"]
    assert len(json.dumps(made, ensure_ascii=False).encode()) <= MAX_CARD_BYTES * 1.5
    measured = ratio(made, 100)
    log.info("%s: %.2f dumps", name, measured)
    assert measured <= 5


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_costs_at_most_three_dumps_and_its_errors_stay_bounded(name):
    made = HOSTILE[name]()
    errors = validate_card(made)["errors"]
    assert 1 <= len(errors) <= MAX_CARD_ERRORS + 2
    assert max(map(len, errors)) <= 600
    measured = ratio(made, 15)
    log.info("%s: %.2f dumps", name, measured)
    assert measured <= 3
