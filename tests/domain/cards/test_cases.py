"""The 159 documents with known verdicts (cards §8), and the inputs JSON cannot hold (cards §8.1, §8.2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from canon_hermes_plugin.cards import MAX_CARD_BYTES, RUNTIME_CARD_LIMITS, validate_card

CASES = json.loads(Path(__file__).with_name("card-cases.json").read_text(encoding="utf-8"))


def matches(error: str, path: str) -> bool:
    head, _, key = path.rpartition(".")
    return error == path or error.startswith(f"{path} ") or (error.startswith(f"{head} ") and f'"{key}"' in error)


def assert_errors(card: object, *paths: str) -> None:
    verdict = validate_card(card)
    assert verdict["ok"] is (not paths)
    assert len(verdict["errors"]) == len(paths), verdict["errors"]
    for error, path in zip(verdict["errors"], paths, strict=True):
        assert matches(error, path), (error, path)
        assert "\n" not in error


def card(*blocks: object, **keys: object) -> dict[object, object]:
    return {"schema": "canon.card.v1", "title": "Berth", "fallbackText": "Berth 4", "blocks": list(blocks), **keys}


def chart(y: object) -> dict[str, object]:
    return {"kind": "chart", "chart": "line", "series": [{"points": [{"x": "Mon", "y": y}]}]}


def field(**keys: object) -> dict[str, object]:
    return {"kind": "actions", "actions": [{"id": "a", "label": "A", "fields": [{"id": "f", "label": "F", **keys}]}]}


FIELD = "card.blocks[0].actions[0].fields[0]"
SUMMARY = {"kind": "summary", "text": "Two vessels."}


def test_there_are_159_cases():
    assert len(CASES) == 159
    assert len({case["name"] for case in CASES}) == 159


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_shared_case_gets_its_verdict_and_paths_in_order(case):
    verdict = validate_card(case["card"])
    assert verdict["ok"] == case["ok"]
    assert verdict["ok"] is (not verdict["errors"])
    assert_errors(case["card"], *case["error_paths"])


def test_limits_are_the_fifteen_of_the_contract():
    assert RUNTIME_CARD_LIMITS == {
        "blocks": 24, "metrics": 12, "series": 6, "points": 24, "rows": 24, "columns": 8, "listItems": 24,
        "actions": 12, "totalActions": 12, "fields": 8, "choices": 12, "detailsRows": 32, "lineItemRows": 50,
        "lineItemColumns": 8,
        "searchSelectChoices": 100,
    }  # fmt: skip
    assert MAX_CARD_BYTES == 32768


@pytest.mark.parametrize("y", [float("nan"), float("inf"), float("-inf"), 10**400, -(10**400), True])
def test_numbers_that_are_not_finite_doubles_fail_at_their_path(y):
    assert_errors(card(chart(y)), "card.blocks[0].series[0].points[0].y")


def test_an_integer_that_still_rounds_to_a_double_is_finite():
    assert_errors(card(chart(2**1024 - 2**970 - 1)))
    assert_errors(card(chart(2**1024 - 2**970)), "card.blocks[0].series[0].points[0].y")


def test_an_integer_without_text_form_is_also_unserialisable():
    assert_errors(card(chart(10**5000)), "card", "card.blocks[0].series[0].points[0].y")


def test_bytes_are_unserialisable_and_no_text():
    assert_errors(card({"kind": "summary", "text": b"x"}), "card", "card.blocks[0].text")


def test_a_card_containing_itself_is_reported_once_and_its_key_once():
    loop = card(SUMMARY)
    loop["x"] = loop
    assert_errors(loop, "card", "card.x")


def test_a_tuple_is_no_array():
    assert_errors({**card(), "blocks": (SUMMARY,)}, "card.blocks")


def test_an_integer_key_is_unknown_but_serialisable():
    assert_errors({**card(SUMMARY), 5: 1}, "card.5")


def test_a_tuple_key_is_unknown_and_unserialisable():
    assert_errors({**card(SUMMARY), (1,): 1}, "card", "card.(1,)")


def test_a_set_is_unserialisable_and_no_tone():
    assert_errors(card(SUMMARY, tone={"positive"}), "card", "card.tone")


@pytest.mark.parametrize("root", [(), ("a",), b"", 1.5, True, None, "card", [], object()])
def test_a_root_that_is_no_object_gives_exactly_one_error(root):
    assert_errors(root, "card")


@pytest.mark.parametrize("ident", ["confirm\n", "\nconfirm", "con firm", "", "é", "a" * 81, "\u0661"])
def test_ids_match_the_pattern_as_a_whole(ident):
    columns = [{"id": ident, "label": "C", "type": "text"}]
    lines = {"id": "f", "label": "F", "type": "lineItems", "columns": columns}
    assert_errors(card(SUMMARY, cardId=ident), "card.cardId")
    assert_errors(card({"kind": "actions", "actions": [{"id": ident, "label": "A"}]}), "card.blocks[0].actions[0].id")
    assert_errors(card(field(type="text", id=ident)), f"{FIELD}.id")
    assert_errors(card(field(**{**lines, "id": "f"})), f"{FIELD}.columns[0].id")


@pytest.mark.parametrize("date", ["2031-01-01\n", "٢٠٣١-٠١-٠١", "2031-1-1", "20310101", 20310101])  # noqa: RUF001
def test_date_bounds_have_ascii_digits_and_nothing_after_them(date):
    assert_errors(card(field(type="date", min=date)), f"{FIELD}.min")
    column = {"id": "c", "label": "C", "type": "date", "max": date}
    assert_errors(card(field(type="lineItems", columns=[column])), f"{FIELD}.columns[0].max")


def test_a_lone_surrogate_makes_one_unserialisable_error():
    assert_errors(card(SUMMARY, title=json.loads('"\\ud800"')), "card")
    assert_errors(card({"kind": "summary", "text": "\udc00" * 2000}), "card")
    assert_errors(card({"kind": "summary", "text": "\udc00" * 2001}), "card", "card.blocks[0].text")


@pytest.mark.parametrize("depth", [1_000, 5_000, 100_000])
def test_endless_nesting_is_one_error_and_the_first_levels_are_examined(depth):
    deep: object = 1
    for _ in range(depth):
        deep = [deep]
    assert_errors(card(SUMMARY, x=deep), "card", "card.x")
    assert_errors(card({"kind": "summary", "text": deep}), "card", "card.blocks[0].text")
    assert_errors(deep, "card")
    assert_errors({"x": deep}, "card", "card.schema", "card.x", "card.title", "card.fallbackText", "card.blocks")


def test_whitespace_follows_python():
    assert_errors(card(SUMMARY, title="\ufeff"))
    assert_errors(card(SUMMARY, title="\x1c"), "card.title")


@pytest.mark.parametrize("url", ["javascript:alert(1)", "x", "../y"])
def test_media_addresses_are_only_measured(url):
    media = {"kind": "file", "url": url, "mimeType": "anything"}
    assert_errors(card({"kind": "mediaPreview", "media": media}))


def test_a_type_that_cannot_be_hashed_is_just_a_wrong_type():
    assert_errors(card(field(type=["text"], choices=[])), f"{FIELD}.type", f"{FIELD}.choices")


def test_a_select_column_without_an_array_of_choices_reports_twice():
    column = {"id": "c", "label": "C", "type": "select", "choices": {}}
    path = f"{FIELD}.columns[0].choices"
    assert_errors(card(field(type="lineItems", columns=[column])), path, path)


def test_row_bounds_are_ordered_even_above_the_ceiling():
    lines = {"type": "lineItems", "columns": [{"id": "c", "label": "C", "type": "text"}]}
    assert_errors(card(field(**lines, minRows=60, maxRows=51)), f"{FIELD}.maxRows", f"{FIELD}.minRows")
    assert_errors(card(field(**lines, minRows="a", maxRows=3)), f"{FIELD}.minRows")


def test_the_input_is_left_alone():
    original = json.dumps([case["card"] for case in CASES])
    for case in CASES:
        validate_card(case["card"])
    assert json.dumps([case["card"] for case in CASES]) == original
