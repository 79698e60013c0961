"""A live write carries the newest end of a long text, never more than its bound."""

from __future__ import annotations

import pytest
from canon_hermes_plugin.domain.turns.preview import PREVIEW_BYTES, preview
from hypothesis import given
from hypothesis import strategies as st

UNIT = st.sampled_from(["word ", "x", "é", "שלום ", "🚚", "\n"])


@pytest.mark.parametrize("text", ["", "short", "x" * PREVIEW_BYTES, "é" * (PREVIEW_BYTES // 2)])
def test_what_fits_is_shown_as_it_is(text: str) -> None:
    assert preview(text) == text


@given(st.lists(UNIT, min_size=1, max_size=6), st.integers(1, 12_000))
def test_a_longer_text_shows_as_much_of_its_end_as_fits(units: list[str], times: int) -> None:
    text = "".join(units) * times
    shown = preview(text)
    assert len(shown.encode()) <= PREVIEW_BYTES
    if len(text.encode()) > PREVIEW_BYTES:
        assert shown[0] == "…"
        assert text.endswith(shown[1:])
        assert len(shown.encode()) > PREVIEW_BYTES - 2000
    else:
        assert shown == text


def test_a_cut_text_begins_with_a_whole_word() -> None:
    shown = preview("alpha beta " * 10_000)
    assert shown.startswith(("…alpha ", "…beta "))


async def test_h27_a_long_answer_is_shown_bounded_and_delivered_whole(bench) -> None:
    turn = await bench.open()
    text = "A line of the report.\n" * 3_000
    await bench.stream(turn, "A line", text)
    await bench.clock.advance(1)
    await bench.complete(turn)
    writes = [call.subject for call in bench.canon.calls if call.operation == "write_node"]
    assert max(len(write.text.encode()) for write in writes) <= PREVIEW_BYTES
    assert "".join(bench.texts).replace("\n", "") == text.replace("\n", "")
