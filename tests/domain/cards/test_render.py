"""How a card reads in a plain terminal."""

from __future__ import annotations

import pytest
from canon_hermes_plugin.domain.cards.columns import table, width_of, wrap
from canon_hermes_plugin.domain.cards.examples import EXAMPLES
from canon_hermes_plugin.domain.cards.render import ASCII, MIN_WIDTH, UNICODE, render
from hypothesis import given
from hypothesis import strategies as st


def drawn(*blocks, width=60, marks=ASCII):
    card = {"schema": "canon.card.v1", "title": "T", "fallbackText": "F", "blocks": list(blocks)}
    return render(card, width, marks)[2:]


@given(data=st.data(), width=st.integers(0, 120), marks=st.sampled_from([ASCII, UNICODE]))
def test_every_valid_card_fits_the_width(maker, data, width, marks):
    for line in render(data.draw(maker.valid()), width, marks):
        assert width_of(line) <= max(width, MIN_WIDTH)
        assert "\n" not in line


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_ascii_drawing_of_ascii_text_is_ascii(name):
    assert all(line.isascii() for line in render(EXAMPLES[name].card, 80, ASCII))


def test_every_answer_of_a_decision_is_readable():
    text = "\n".join(render(EXAMPLES["decision"].card, 80, ASCII))
    for words in ("[ Release ] [positive]  id release", "Release from (date, required, from 2031-01-01)",
                  "( ) Weather - Wind above the limit", "[ Keep closed ]", "other answers allowed"):  # fmt: skip
        assert words in text


def test_columns_line_up_even_with_wide_characters():
    assert table([["a", "bc"], ["日本", "d"], ["e"]]) == ["a     bc", "日本  d", "e"]
    assert drawn({"kind": "table", "columns": ["A", "B"], "rows": [["1", "2"], ["long", "3"]]}) == [
        "", "A     B", "-------", "1     2", "long  3",
    ]  # fmt: skip


def test_a_table_too_wide_for_a_grid_becomes_one_line_per_cell():
    lines = drawn({"kind": "table", "columns": ["A", "B"], "rows": [["x" * 30, "y" * 30, "z"]]}, width=40)
    assert lines == ["", "A: " + "x" * 30, "B: " + "y" * 30, "z", "---"]


def test_bars_are_proportional_and_numbers_exact():
    lines = drawn({"kind": "chart", "chart": "bar", "series": [{"points": [{"x": "a", "y": -4}, {"x": "b", "y": 2}]}]})
    assert [line.count("#") for line in lines[1:]] == [20, 10]
    assert lines[1].endswith("# -4")
    flat = drawn({"kind": "chart", "chart": "bar", "series": [{"points": [{"x": "a", "y": 0}]}]})
    assert flat[1] == "  a  0"


def test_paragraphs_keep_their_breaks_and_long_words_are_cut():
    assert wrap("one two\n\nthree", 7) == ["one two", "", "three"]
    assert wrap("abcdefgh", 3) == ["abc", "def", "gh"]
    assert wrap("日本語", 4) == ["日本", "語"]


def test_a_list_shows_what_is_done_pending_and_blocked():
    lines = render(EXAMPLES["checklist"].card, 60, ASCII)
    assert "[x] Papers checked" in lines
    assert "[ ] Pilot on board" in lines
    assert "[-] Fuel - The barge is late" in lines
