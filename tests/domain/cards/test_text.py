"""The lines of a card file's errors, and files that are no cards at all."""

from __future__ import annotations

import json
import re

import pytest
from canon_hermes_plugin.domain.cards.text import read_card
from canon_hermes_plugin.domain.cards.validate import validate_card
from hypothesis import given, settings
from hypothesis import strategies as st


def found(text: str) -> list[tuple[str, int]]:
    return [(finding.path, finding.line) for finding in read_card(text.encode()).findings]


WRONG = """{
  "schema": "canon.card.v1",
  "zeta": {"title": 1},
  "fallbackText":
     5,
  "blocks": [
    {"kind": "summary",
     "text": "x"}, 7,
    {"kind": "list", "items": [
      {"label": "ok"},
      {
        "label": "",
        "a \\" , : { b": 1
      }]}
  ]
}
"""


def test_each_error_names_its_line_and_a_missing_key_that_of_its_object():
    assert found("\ufeff\n" + WRONG) == [
        ("card", 4),
        ("card.title", 2),
        ("card.fallbackText", 5),
        ("card.blocks[1]", 9),
        ("card.blocks[2].items[1]", 14),
        ("card.blocks[2].items[1].label", 13),
    ]


def test_of_a_key_given_twice_the_last_counts():
    text = '{"schema": "canon.card.v1",\n"title": 1,\n"title": 2,\n"fallbackText": "f", "blocks": [\n{"kind": "x"}]}'
    assert found(text) == [("card.title", 3), ("card.blocks[0].kind", 5)]


def test_a_key_that_looks_like_a_path_misleads_nobody():
    text = '{"schema": "canon.card.v1", "title": "t", "fallbackText": "f",\n"blocks": [\n5],\n"blocks[0]": 1}'
    assert found(text) == [("card", 4), ("card.blocks[0]", 3)]


@settings(max_examples=60)
@given(data=st.data())
def test_the_line_of_every_error_is_the_one_that_holds_its_node(maker, data):
    made = data.draw(maker.valid())
    change = data.draw(st.sampled_from(list(maker.breaks(made))))
    broken = change.of(made)
    text = json.dumps(broken, indent=1, ensure_ascii=data.draw(st.booleans()))
    reading = read_card(text.encode())
    assert [f"{finding.path} {finding.message}" for finding in reading.findings] == validate_card(broken)["errors"]
    for finding in reading.findings:
        line = text.split("\n")[finding.line - 1]
        name = re.search(r"(\w+)$", finding.path)
        if change.key:
            assert f'"{change.key}"' in line
        elif change.removes and name and name[1] == change.steps[-1]:
            assert line.rstrip(",").endswith(("{", "{}")), "a missing key has the line of its object"
        elif name and not finding.message.startswith(("is required", "must not")):
            assert line.lstrip().startswith(f'"{name[1]}"'), (finding, line)


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"", 1, "JSON"),
        (b'{"a": 1,\n "b" 2}', 2, "column 6"),
        (b'{\n"a": "\xff"}', 2, "UTF-8"),
        (b"\n\n[1,", 3, "JSON"),
        (b"[" * 200_000, 1, "nests too deeply"),
        (b'{"x":' * 200_000, 1, "nests too deeply"),
        (b"7", 1, "object"),
    ],
)
def test_a_file_that_is_no_card_has_one_finding(data, line, words):
    (finding,) = read_card(data).findings
    assert (finding.path, finding.line) == ("card", line)
    assert words in finding.message


def test_an_integer_python_refuses_to_read_fails_at_its_path():
    chart = {"kind": "chart", "chart": "bar", "series": [{"points": [{"y": 12345, "x": "a"}]}]}
    card = {"schema": "canon.card.v1", "title": "t", "fallbackText": "f", "blocks": [chart]}
    text = json.dumps(card).replace("12345", "\n" + "9" * 5000).replace('"y"', '\n"y"')
    assert found(text) == [("card.blocks[0].series[0].points[0].y", 2)]


@given(st.binary(max_size=40) | st.text(st.sampled_from('{}[]:,"\\ab1 \n'), max_size=30).map(str.encode))
def test_any_bytes_get_a_verdict(data):
    reading = read_card(data)
    assert all(finding.line >= 1 and finding.path.startswith("card") for finding in reading.findings)
    assert not reading.ok
