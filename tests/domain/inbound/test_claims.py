"""Claim, handle, commit, and the low-water cursor."""

from __future__ import annotations

import pytest
from canon_hermes_plugin.domain.inbound.claims import WINDOW, Claims
from canon_hermes_plugin.domain.inbound.cursor import MAX_FAILURES, CursorMark, dictated_cursor
from hypothesis import given, settings
from hypothesis import strategies as st


def test_field_63_a_failed_handling_releases_the_claim_so_the_redelivery_is_new():
    claims = Claims()
    assert claims.claim("m1")
    claims.release("m1")
    assert claims.claim("m1")


def test_an_id_in_work_and_a_committed_id_are_duplicates():
    claims = Claims()
    assert claims.claim("m1")
    assert not claims.claim("m1")
    claims.commit("m1")
    assert not claims.claim("m1")
    claims.release("m1")
    assert claims.committed("m1"), "a late release must not undo a commit"


def test_the_window_remembers_1024_ids_first_in_first_out_without_refreshing():
    claims = Claims()
    for number in range(WINDOW):
        assert claims.claim(str(number))
        claims.commit(str(number))
    claims.commit("0")  # a repeat does not refresh
    assert not claims.claim("0")
    claims.claim("new")
    claims.commit("new")
    assert not claims.committed("0")
    assert claims.committed("1")
    assert claims.claim("0")


def test_a_window_needs_room():
    with pytest.raises(ValueError, match="capacity"):
        Claims(0)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from(["claim", "commit", "release"])), max_size=40))
def test_claims_agree_with_a_plain_model(steps):
    claims, working, done = Claims(3), set(), []
    for key, step in steps:
        if step == "claim":
            assert claims.claim(key) == (key not in working and key not in done)
            if key not in done:
                working.add(key)
        elif step == "release":
            claims.release(key)
            working.discard(key)
        else:
            claims.commit(key)
            working.discard(key)
            if key not in done:
                done = [*done, key][-3:]
        assert claims.working == len(working)
        assert [known for known in "abcde" if claims.committed(known)] == sorted(done)


def test_the_cursor_moves_only_over_events_before_which_everything_is_finished():
    mark = CursorMark()
    one, two, three = (mark.open(event_id) for event_id in ("e1", "e2", "e3"))
    mark.finish(three)
    assert mark.value is None
    mark.finish(one)
    assert mark.value == "e1"
    mark.finish(two)
    assert mark.value == "e3"
    assert mark.waiting == 0


def test_an_event_after_the_cursor_is_a_duplicate_while_in_work_and_when_finished_but_not_after_a_failure():
    mark = CursorMark()
    mark.open("e1")
    second = mark.open("e2")
    assert mark.open("e2") is None
    mark.finish(second)
    assert mark.open("e2") is None
    third = mark.open("e3")
    assert not mark.fail(third)
    assert mark.open("e3") is third


def test_a_failed_event_holds_the_cursor_until_its_redelivery_succeeds():
    mark = CursorMark()
    first, second = mark.open("e1"), mark.open("e2")
    assert not mark.fail(first)
    mark.finish(second)
    assert mark.value is None
    mark.finish(mark.open("e1"))
    assert mark.value == "e2"


def test_an_event_that_always_fails_is_given_up_and_no_longer_holds_the_cursor():
    mark = CursorMark()
    for delivery in range(1, MAX_FAILURES + 1):
        assert mark.fail(mark.open("bad")) is (delivery == MAX_FAILURES)
    assert mark.value == "bad"


def test_too_many_events_behind_an_unfinished_one_pass_it_over():
    mark = CursorMark(capacity=3)
    stuck = mark.open("e0")
    for number in range(1, 4):
        mark.finish(mark.open(f"e{number}"))
    assert mark.value == "e3"
    mark.finish(stuck)
    assert mark.value == "e3", "late work must not move the cursor back"


def test_a_dictated_cursor_replaces_everything_before_it_and_late_work_does_not_undo_it():
    mark = CursorMark()
    old = mark.open("e1")
    mark.adopt("e900")
    mark.finish(old)
    assert mark.value == "e900"
    new = mark.open("e901")
    mark.confirm("e900")  # the handler repeats what the reader did
    mark.finish(new)
    assert mark.value == "e901"
    mark.confirm("e950")  # nobody adopted this one yet
    assert mark.value == "e950"
    mark.adopt(None)
    after = mark.open("e1000")
    mark.confirm(None)
    mark.finish(after)
    assert mark.value == "e1000"


@pytest.mark.parametrize(
    ("payload", "cursor"),
    [
        ({"lastAvailableId": "evt_0900"}, "evt_0900"),
        ({"lastAvailableId": 7}, "7"),
        ({"lastAvailableId": ""}, None),
        ({"lastAvailableId": None}, None),
        ({"lastAvailableId": True}, None),
        ({"lastAvailableId": ["x"]}, None),
        ({}, None),
        ("text", None),
        (None, None),
        ([], None),
    ],
)
def test_replay_expired_dictates_its_last_available_id_or_clears_the_cursor(payload, cursor):
    assert dictated_cursor(payload) == cursor


@settings(max_examples=60)
@given(st.permutations(range(7)), st.integers(0, 7))
def test_nothing_unfinished_is_ever_at_or_before_the_cursor(order, finished):
    mark = CursorMark()
    positions = [mark.open(str(number)) for number in range(7)]
    for number in order[:finished]:
        mark.finish(positions[number])
    done = set(order[:finished])
    expected = next((number for number in range(7) if number not in done), 7) - 1
    assert mark.value == (None if expected < 0 else str(expected))
