"""The splitter's guarantees (turns §5, §13 invariants 28 to 31, §14 H13, H14, H32)."""

from __future__ import annotations

import pytest
import regex
from canon_hermes_plugin.domain.chunker import PART_BYTES, replace_lone_surrogates, split, utf8_len
from canon_hermes_plugin.domain.graphemes import is_boundary
from hypothesis import example, given
from hypothesis import strategies as st

SEPARATORS = ("\r\n\r\n", "\r\n\n", "\n\n", "\r\n", "\n", " ", "")
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
CLUSTERS = [
    "a", "e\u0301", "\u05e9\u05bc\u05c1", "\u65e5", FAMILY, "\u00e9",
    "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "\u2764\ufe0f",
    "\u1112\u1161\u11ab", "\ud55c\u11ab", "\u0e19\u0e49", "\u0b95\u0bcd\u0bb7", "\u0915\u094d\u0937",
    "\r\n", "\n", " ", "\t", "1\ufe0f\u20e3", "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\u0600\u0661", "\u200b",
]  # fmt: skip
clusters = st.lists(st.sampled_from(CLUSTERS), max_size=400).map("".join)
prose = st.lists(
    st.one_of(st.text(max_size=30), st.sampled_from(["\n\n", "\n", " ", "\r\n", "word ", "x" * 300, " " * 90, FAMILY])),
    max_size=120,
).map("".join)
budgets = st.one_of(st.integers(4, 60), st.integers(61, 5000))


def rebuilds(text: str, parts: list[str]) -> bool:
    """Whether ``text`` is the parts with one separator, or blank text, between them."""
    position = 0
    for index, part in enumerate(parts):
        if index == 0:
            found = text.find(part) if not text.startswith(part) else 0
            gap = text[:found]
        else:
            found = next((position + len(s) for s in SEPARATORS if text.startswith(s + part, position)), -1)
            if found < 0:  # blank parts were dropped
                found = text.find(part, position)
            gap = text[position:found]
        if found < 0 or (gap not in SEPARATORS and gap.strip("\u200b\ufeff\u2060 \n\r\t").strip()):
            return False
        position = found + len(part)
    return not text[position:].strip().strip("\u200b\ufeff\u2060")


EDGES = {
    "exactly the budget": ("a" * 3800, [3800]),
    "one byte more": ("a" * 3801, [3800, 1]),
    "two-byte letters": ("\u05e9" * 3900, [3800, 3800, 200]),
    "paragraph break": ("a" * 3700 + "\n\n" + "b" * 500, [3700, 500]),
    "line break at the window's edge": ("a" * 3400 + "\n" + "b" * 5000, [3400, 3800, 1200]),
    "line break outside the window": ("a" * 3399 + "\n" + "b" * 5000, [3800, 3800, 800]),
    "paragraph beats a later line break": (
        "a" * 3500 + "\n\n" + "b" * 200 + "\n" + "c" * 5000, [3500, 201 + 3599, 1401],
    ),
    "a space at the very start": ("a " + "b" * 7600, [3800, 3800, 2]),
    "H14: a trailing newline is dropped": ("a" * 3800 + "\n", [3800]),
    "H14: blank text has no parts": (" " * 4000, []),
    "H14: empty text has no parts": ("", []),
    "H13: a lone surrogate becomes a replacement": ("a" * 3800 + "\ud83d" + "b" * 10, [3800, 13]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "sizes"), EDGES.values(), ids=EDGES.keys())
def test_edge_table(text: str, sizes: list[int]) -> None:
    assert [utf8_len(part) for part in split(text)] == sizes


def test_budget_is_capped_at_what_the_server_accepts() -> None:
    assert [len(p) for p in split("a" * 4596, 10_000)] == [4096, 500]


def test_smallest_budget() -> None:
    assert split("a b c d e f", 4) == ["a b", "c d", "e f"]
    with pytest.raises(ValueError, match="at least 4"):
        split("a", 3)


def test_h14_blank_middle_is_dropped() -> None:
    parts = split("answer" + " " * 8000 + "end")
    assert all(part.strip() for part in parts)
    assert [part.strip() for part in parts] == ["answer", "end"]


@given(prose, budgets)
@example("\u0600 " * 40, 7)
@example(" \u0301" * 40, 7)
@example("\r\n" * 40 + "x", 5)
@example("```py\n" + "x = 1\n" * 40 + "```", 48)
def test_every_part_fits_and_shows_something(text: str, budget: int) -> None:
    parts = split(text, budget)
    assert all(len(part.encode()) <= min(budget, 4096) for part in parts)
    assert all(part.strip() for part in parts)


@given(prose.filter(lambda t: "```" not in t and "~~~" not in t), budgets)
@example("a  b\n\n\n\nc" * 9, 5)
@example("line\r\n\r\nline\r\n" * 9, 8)
def test_nothing_is_lost_but_separators_and_blanks(text: str, budget: int) -> None:
    assert rebuilds(replace_lone_surrogates(text).rstrip(), split(text, budget))


@given(prose, budgets)
def test_a_part_is_not_split_again(text: str, budget: int) -> None:
    for part in split(text, budget):
        assert split(part, budget) == [part.rstrip()]


@given(st.text(max_size=900))
def test_text_within_the_budget_is_one_part(text: str) -> None:
    assert split(text) in ([replace_lone_surrogates(text.rstrip())], [])


@given(clusters, st.integers(40, 400))
@example(FAMILY * 400, 100)
@example("\U0001f1e9\U0001f1ea" * 400, 44)
@example("\r\n" * 300 + "x", 41)
@example("ab \u0301" * 200, 100)
@example("\u0600 x" * 200, 101)
@example("x" + "\U0001f1e9\U0001f1ea" * 400, 3800)
def test_h32_no_cut_inside_a_grapheme_cluster(text: str, budget: int) -> None:
    boundaries, at = {0}, 0
    for cluster in regex.findall(r"\X", text):
        at += len(cluster)
        boundaries.add(at)
    position = 0
    for part in split(text, budget):
        start = text.find(part, position)
        position = start + len(part)
        assert {start, position} <= boundaries, (part[:3], part[-3:])


@given(st.text(max_size=40) | clusters)
def test_h32_boundaries_are_a_subset_of_unicode_ones(text: str) -> None:
    ends, at = {0}, 0
    for cluster in regex.findall(r"\X", text):
        at += len(cluster)
        ends.add(at)
    assert {i for i in range(len(text) + 1) if is_boundary(text, i)} <= ends


def test_a_cluster_larger_than_the_budget_is_cut_at_code_points() -> None:
    parts = split("a" + "\u0301" * 4000)
    assert "".join(parts) == "a" + "\u0301" * 4000
    assert [len(p.encode()) for p in parts] == [3799, 3800, 402]


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_field_12_never_cut_inside_a_code_point(width: int) -> None:
    char = {1: "x", 2: "\u05e9", 3: "\u65e5", 4: "\U0001f600"}[width]
    parts = split(char * 4000)
    assert "".join(parts) == char * 4000
    assert max(len(p.encode()) for p in parts) <= PART_BYTES


def test_field_12_lone_surrogates_are_replaced_before_sizing() -> None:
    text = "\ud83c" * 5000
    parts = split(text)
    assert "".join(parts) == "\ufffd" * 5000
    assert all(len(p.encode()) <= PART_BYTES for p in parts)
    assert replace_lone_surrogates("\ud83d\ude00 \ude00 \ud83d") == "\U0001f600 \ufffd \ufffd"
    assert utf8_len("\ud83c\u00e9a") == 6


def test_field_13_the_budget_is_bytes_not_characters() -> None:
    assert [len(p.encode()) for p in split("\u00e9" * 5000)] == [3800, 3800, 2400]


def test_field_15_no_markers_and_a_cut_before_a_block_that_fits() -> None:
    script = "```sh\n" + "echo one two three\n" * 60 + "```"
    text = "word " * 600 + "\n\n" + script + "\n\nafter"
    first, second = split(text)
    assert first == ("word " * 600)
    assert second == script + "\n\nafter"


def test_h32_a_long_block_is_closed_and_opened_again() -> None:
    code = [f"line_{i} = {i}" for i in range(900)]
    text = "Look:\n\n```python\n" + "\n".join(code) + "\n```\nDone."
    parts = split(text)
    assert len(parts) > 2
    for part in parts:
        fences = [line for line in part.split("\n") if line.startswith("```")]
        assert fences[::2] == ["```python"] * (len(fences) // 2)
        assert fences[1::2] == ["```"] * (len(fences) // 2)
        assert len(fences) % 2 == 0
    lines = [line for part in parts for line in part.split("\n") if line and not line.startswith("```")]
    assert lines == ["Look:", *code, "Done."]


def test_h32_a_cut_right_before_the_closing_line_opens_nothing() -> None:
    text = "~~~~\n" + "x" * 3780 + "\n~~~~\n\n" + "after " * 400
    first, second = split(text)
    assert first == "~~~~\n" + "x" * 3780 + "\n~~~~"
    assert second == ("after " * 400).rstrip()


@given(
    st.lists(
        st.sampled_from(["```", "```py", "~~~", "  ```", "`` ` ``", "text", "x" * 70, "", "a b c", "````"]), max_size=60
    ).map("\n".join),
    st.integers(4, 300),
)
def test_h32_fences_keep_every_other_line_in_order(text: str, budget: int) -> None:
    def words(lines: str) -> str:
        return "".join(line.strip() for line in lines.split("\n") if not line.strip().startswith(("```", "~~~")))

    parts = split(text, budget)
    assert all(len(p.encode()) <= budget for p in parts)
    if budget >= 80:
        assert "".join(words(p) for p in parts).replace(" ", "") == words(text).replace(" ", "")


def test_reopened_parts_are_balanced_where_the_text_is() -> None:
    text = ("```js\n" + "let value = 1;\n" * 30 + "```\n" + "prose " * 20 + "\n\n") * 40
    for part in split(text, 500):
        assert part.count("```") % 2 == 0


def by_the_book(text: str, budget: int) -> list[str]:
    """The algorithm of turns §5.2 as it is written, one character at a time; blank parts dropped (H14)."""
    parts, rest = [], text.rstrip()
    while len(rest.encode()) > budget:
        cut = len(rest.encode()[:budget].decode(errors="ignore"))
        first = max(1, cut - 400)
        for separator in ("\n\n", "\n", " "):
            at = rest[:cut].rfind(separator)
            if at >= first:
                parts.append(rest[:at])
                rest = rest[at + len(separator) :]
                break
        else:
            parts.append(rest[:cut])
            rest = rest[cut:]
    return [part for part in (*parts, rest) if part.strip()]


plain = st.lists(
    st.sampled_from(
        ["\n\n", "\n", " ", "word ", "x" * 350, "\u05e9" * 60, "\u65e5" * 500, "\U0001f600" * 90, "a b", "\n\n\n"]
    ),
    max_size=60,
).map("".join)


@given(plain, st.one_of(st.integers(4, 30), st.integers(1000, 4096)))
@example("\u65e5" * 1000 + " " + "\u65e5" * 262 + "\n" + "x" * 4000, 3800)
@example("a" * 3400 + "\n" + "b" * 5000, 3800)
@example("a" * 3399 + "\n\n" + "b" * 5000, 3800)
@example("a " + "b" * 401 + "c" * 5000, 403)
def test_plain_text_is_split_by_the_book(text: str, budget: int) -> None:
    assert split(text, budget) == by_the_book(text, budget)
