"""When to connect again."""

from __future__ import annotations

import itertools

import pytest
from canon_hermes_plugin.domain.reconnect import BASE, CAP, Backoff, ConnectionEnd
from hypothesis import given, settings
from hypothesis import strategies as st

CLEAN, FAILED = ConnectionEnd("clean"), ConnectionEnd("failed")


def pauses(ends, jitter=0.999999):
    memory, seconds = Backoff(), []
    for end in ends:
        memory, pause = memory.after(end, jitter)
        seconds.append(pause)
    return seconds


def test_field_78_the_pause_grows_to_its_cap_on_failures_and_clean_ends_alike():
    for end in (CLEAN, FAILED):
        assert [round(pause) for pause in pauses([end] * 7)] == [2, 4, 8, 16, 30, 30, 30]


def test_field_77_a_clean_end_never_reconnects_at_once_even_without_luck():
    assert pauses([CLEAN] * 100, jitter=0.0) == [BASE] * 100


@pytest.mark.parametrize("ends", list(itertools.product([CLEAN, FAILED], repeat=6)))
def test_the_kind_of_end_does_not_matter_only_whether_the_connection_lived(ends):
    assert pauses(ends) == pauses([FAILED] * 6)


def test_defect_2_a_connection_that_lived_resets_the_growth_even_when_it_failed_later():
    for way in ("clean", "failed"):
        grown = [FAILED] * 5
        assert pauses([*grown, ConnectionEnd(way, lived=True), FAILED])[-2:] == pauses([FAILED, FAILED])


def test_defect_3_a_refused_key_stops_whatever_came_before():
    for before in itertools.product([CLEAN, FAILED, ConnectionEnd("clean", lived=True)], repeat=3):
        assert pauses([*before, ConnectionEnd("refused")])[-1] is None


def test_the_server_may_ask_for_a_longer_floor_within_bounds():
    assert Backoff().hinted(5000).after(CLEAN, 0.0)[1] == 5.0
    assert Backoff().hinted(10).after(CLEAN, 0.0)[1] == BASE
    assert Backoff().hinted(-5).after(CLEAN, 0.0)[1] == BASE
    assert Backoff().hinted(10**12).after(CLEAN, 0.5)[1] == CAP


def test_a_refusal_that_asks_to_wait_is_honoured_within_the_cap():
    assert Backoff().after(ConnectionEnd("failed", retry_after=12.0), 0.0)[1] == 12.0
    assert Backoff().after(ConnectionEnd("failed", retry_after=900.0), 0.0)[1] == CAP
    assert Backoff().after(ConnectionEnd("failed", retry_after=0.0), 0.0)[1] == BASE


ENDS = st.builds(
    ConnectionEnd,
    st.sampled_from(["clean", "failed"]),
    st.booleans(),
    st.none() | st.floats(0, 1000, allow_nan=False),
)


@settings(max_examples=100)
@given(st.lists(st.tuples(ENDS, st.floats(0, 1, exclude_max=True), st.none() | st.integers(-(10**6), 10**9))))
def test_every_pause_lies_between_one_and_thirty_seconds(steps):
    memory = Backoff()
    for end, jitter, hint in steps:
        if hint is not None:
            memory = memory.hinted(hint)
        memory, pause = memory.after(end, jitter)
        assert BASE <= pause <= CAP


@settings(max_examples=100)
@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=30, max_size=30), st.booleans())
def test_h38_a_server_that_closes_at_once_sees_at_most_twenty_connections_in_twenty_seconds(draws, lives):
    memory, now, connections = Backoff(), 0.0, 0
    for jitter in draws:
        if now >= 20:
            break
        connections += 1
        memory, pause = memory.after(ConnectionEnd("clean", lived=lives), jitter)
        now += pause
    assert connections <= 20


@settings(max_examples=50)
@given(st.integers(0, 40), st.floats(0, 1, exclude_max=True))
def test_the_pause_spreads_over_the_whole_range(failures, jitter):
    memory = Backoff(failures=failures)
    low, high = memory.after(FAILED, 0.0)[1], memory.after(FAILED, 0.9999999)[1]
    assert low == BASE
    assert low <= memory.after(FAILED, jitter)[1] <= high + 0.01
    assert high == pytest.approx(min(CAP, 2.0 ** (failures + 1)), abs=0.01)
