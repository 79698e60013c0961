"""Waiting for a person, and the typing indicator (turns §2.2, §2.7; H7; field faults 18, 19, 21)."""

import pytest
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import settle


def typing_calls(bench):
    return [call.subject[1] for call in bench.canon.calls if call.operation == "set_typing"]


async def refresh(bench, turn=None, on=True):
    await bench.coordinator.typing(turn, "conv_81", on)
    await settle()


async def test_h7_a_denial_returns_to_work_and_the_turn_lives_on(bench):
    turn = await bench.open()
    bubble = await bench.say(turn, "The ans ▉", expect_edits=True)
    await bench.coordinator.waiting(turn, True)
    await bench.coordinator.waiting(turn, False)
    await bench.say(turn, "The answer.", finalize=True, bubble=bubble)
    await bench.complete(turn)
    assert bench.states == ["thinking", "streaming", "waiting_input", "tool", "streaming", "completed"]
    assert {publication.turn_id for publication in bench.canon.turns} == {turn.id}
    assert bench.finals == ["The answer."]


async def test_requests_nest_and_the_last_answer_ends_the_wait(bench):
    turn = await bench.open()
    for waiting in (True, True, False):
        await bench.coordinator.waiting(turn, waiting)
    await settle()
    assert turn.state == "waiting_input"
    await bench.coordinator.waiting(turn, False)
    await settle()
    assert bench.states == ["thinking", "waiting_input", "tool"]


async def test_invariant_19_typing_is_paused_exactly_while_waiting(bench):
    turn = await bench.open()
    await bench.coordinator.waiting(turn, True)
    assert bench.lanes.paused == {"conv_81"}
    await bench.coordinator.waiting(turn, False)
    assert bench.lanes.paused == set()


@pytest.mark.parametrize("outcome", ["success", "failure", "cancelled"])
async def test_invariant_19_typing_is_never_paused_after_the_end(bench, outcome):
    turn = await bench.open()
    await bench.coordinator.waiting(turn, True)
    await bench.complete(turn, outcome)
    assert bench.lanes.paused == set()


async def test_a_working_turn_keeps_typing_beside_a_waiting_one(bench):
    waiting, working = await bench.open(session_key="a"), await bench.open(session_key="b")
    await bench.coordinator.waiting(waiting, True)
    assert bench.lanes.paused == set()
    await bench.complete(working)
    assert bench.lanes.paused == {"conv_81"}


async def test_the_hosts_refresh_shows_typing_while_a_turn_is_open(bench):
    turn = await bench.open()
    await refresh(bench, turn)
    await refresh(bench)
    assert typing_calls(bench) == [True, True]


async def test_a_refresh_just_before_its_turn_is_not_lost(bench):
    await refresh(bench)
    assert typing_calls(bench) == []
    await bench.open()
    assert typing_calls(bench) == [True]


async def test_a_refresh_long_before_a_turn_is_forgotten(bench):
    await refresh(bench)
    await bench.clock.advance(10)
    await bench.open()
    assert typing_calls(bench) == []


async def test_field_21_a_closed_turn_shows_no_typing(bench):
    turn = await bench.open()
    await refresh(bench, turn)
    await bench.complete(turn)
    await refresh(bench, turn)
    await refresh(bench)
    assert typing_calls(bench) == [True, False]


async def test_field_19_a_refresh_that_carries_the_turn_before_shows_the_next_one(bench):
    before = await bench.open()
    await bench.complete(before)
    await refresh(bench, before)
    await bench.open()
    await refresh(bench, before)
    assert typing_calls(bench) == [True, True]


async def test_field_18_a_failed_stop_is_repeated_a_bounded_number_of_times(bench):
    turn = await bench.open()
    await refresh(bench, turn)
    bench.canon.faults.fail_next("set_typing", Fault.ambiguous(502), times=2)
    await refresh(bench, on=False)
    await bench.clock.advance(10)
    assert typing_calls(bench) == [True, False, False, False]
    assert bench.canon.typing["conv_81"] is False

    bench.canon.faults.fail_next("set_typing", Fault.ambiguous(502), times=99)
    await refresh(bench, turn)
    await refresh(bench, on=False)
    await bench.clock.advance(100)
    assert typing_calls(bench)[4:] == [True] + [False] * 4


async def test_field_18_a_newer_wish_supersedes_a_stop_that_is_being_repeated(bench):
    turn = await bench.open()
    await refresh(bench, turn)
    bench.canon.faults.fail_next("set_typing", Fault.ambiguous(502))
    await refresh(bench, on=False)
    await refresh(bench, turn)
    await bench.clock.advance(10)
    assert typing_calls(bench) == [True, False, True]


async def test_field_18_the_end_of_a_turn_stops_typing_without_the_host(bench):
    turn = await bench.open()
    await refresh(bench, turn)
    await bench.complete(turn)
    assert bench.canon.typing["conv_81"] is False


async def test_field_19_the_next_turn_shows_typing_again(bench):
    for _ in range(2):
        turn = await bench.open()
        await refresh(bench, turn)
        assert bench.canon.typing["conv_81"] is True
        await bench.complete(turn)
        await refresh(bench, on=False)
    assert typing_calls(bench) == [True, False, True, False]


async def test_stops_in_a_row_are_one_request(bench):
    turn = await bench.open()
    await refresh(bench, turn)
    for _ in range(4):
        await refresh(bench, on=False)
    assert typing_calls(bench) == [True, False]


async def test_a_slow_indicator_delays_nobody_and_never_overtakes(bench):
    gate = bench.canon.faults.hold_next("set_typing")
    turn = await bench.open()
    await refresh(bench, turn)
    await refresh(bench, on=False)
    await refresh(bench, turn)
    await refresh(bench, on=False)
    gate.set()
    await settle()
    assert typing_calls(bench) == [True, False]
    assert bench.canon.typing["conv_81"] is False


async def test_a_waiting_turn_shows_no_typing(bench):
    turn = await bench.open()
    await bench.coordinator.waiting(turn, True)
    await refresh(bench, turn)
    assert typing_calls(bench) == []
