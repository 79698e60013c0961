"""Silence: state of one turn, stronger than everything the model says in it (turns §7)."""

import asyncio

import pytest
from canon_hermes_plugin.domain.turns.model import ToolStart
from canon_hermes_plugin.domain.turns.silence import Silence, is_silence_marker
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import settle


@pytest.mark.parametrize(
    "text", ["NO_REPLY", "no reply", "Silent.", "[SILENT]", " **NO_REPLY** ", "`silent`", "No  Reply!"]
)
def test_the_hosts_markers_are_recognised(text):
    assert is_silence_marker(text)


@pytest.mark.parametrize("text", ["", "silence", "NO_REPLY because it is late", "SILENT" + " " * 80, "I stay silent"])
def test_other_texts_are_no_markers(text):
    assert not is_silence_marker(text)


def test_a_marker_counts_for_its_run_only():
    silence = Silence()
    silence.mark("NO_REPLY")
    assert silence.active
    silence.mark("An answer.")
    assert not silence.active


def test_a_request_outlasts_the_final_text():
    silence = Silence()
    silence.request()
    silence.mark("An answer.")
    assert silence.active


async def test_field_73_silence_beats_text_before_and_after_it(bench):
    turn = await bench.open()
    await bench.stream(turn, "Early", "Early text")
    assert bench.coordinator.silence(turn)
    await bench.stream(turn, "Late", "Late text")
    await bench.say(turn, "Late answer", notify=True)
    await bench.complete(turn)
    await bench.clock.advance(2)
    assert bench.texts == []


async def test_h6_the_node_goes_blank_at_once_and_stays_blank(bench):
    turn = await bench.open()
    await bench.stream(turn, "Early", "Early text")
    await bench.clock.advance(1)
    assert bench.canon.nodes[turn.conversation_id].text == "Early text"
    bench.coordinator.silence(turn)
    await settle()
    assert bench.canon.nodes[turn.conversation_id].text == ""
    await bench.stream(turn, "Late", "Late text")
    await bench.clock.advance(1)
    assert bench.canon.nodes[turn.conversation_id].text == ""


async def test_h6_silence_blanks_a_node_whose_text_is_still_on_the_wire(bench):
    turn = await bench.open()
    gate = bench.canon.faults.hold_next("write_node")
    await bench.stream(turn, "Early", "Early text")
    await bench.clock.advance(1)
    bench.coordinator.silence(turn)
    gate.set()
    await settle()
    assert bench.canon.nodes[turn.conversation_id].text == ""


@pytest.mark.parametrize("outcome", ["success", "failure", "cancelled"])
async def test_h6_invariant_42_a_silent_turn_leaves_nothing_to_salvage_on_any_outcome(bench, outcome):
    turn = await bench.open()
    await bench.stream(turn, "Early", "Early text")
    await bench.clock.advance(1)
    gate = bench.canon.faults.hold_next("write_node")  # the blanking is still on the wire when the turn ends
    bench.coordinator.silence(turn)
    await settle()
    await bench.complete(turn, outcome)
    gate.set()
    await bench.clock.advance(2)
    assert bench.texts == []
    assert turn.conversation_id not in bench.canon.nodes


@pytest.mark.parametrize("outcome", ["success", "failure", "cancelled"])
async def test_h6_a_failed_blanking_is_repeated_before_the_clear(bench, outcome):
    turn = await bench.open()
    await bench.stream(turn, "Early", "Early text")
    await bench.clock.advance(1)
    bench.canon.faults.fail_next("write_node", Fault.ambiguous())
    bench.coordinator.silence(turn)
    await settle()
    await bench.complete(turn, outcome)
    await bench.clock.advance(2)
    assert bench.texts == []
    assert turn.conversation_id not in bench.canon.nodes


async def test_h6_the_hosts_own_marker_blanks_the_node(bench):
    turn = await bench.open()
    await bench.stream(turn, "Thinking", "Thinking about it")
    bench.coordinator.tool_started(turn, ToolStart("list_files", "call_1"))
    await bench.clock.advance(1)
    bench.coordinator.answer_confirmed(turn, "NO_REPLY")
    await bench.complete(turn)
    await bench.clock.advance(2)
    assert bench.texts == []


async def test_field_74_a_silent_turn_ends_as_a_success_and_posts_nothing(bench):
    turn = await bench.open()
    bench.coordinator.silence(turn)
    await bench.complete(turn)
    await bench.clock.advance(2)
    assert bench.states == ["thinking", "completed"]
    assert bench.texts == []


async def test_silence_of_another_coordinators_turn_is_refused(bench, other_bench):
    stranger = await other_bench.open()
    await bench.open()
    assert not bench.coordinator.silence(stranger)
    assert not stranger.silenced


async def test_silence_is_idempotent_and_refused_after_the_end(bench):
    turn = await bench.open()
    assert bench.coordinator.silence(turn)
    assert bench.coordinator.silence(turn)
    await bench.complete(turn)
    assert not bench.coordinator.silence(turn)


async def test_invariant_43_silence_does_not_reach_the_next_turn_or_a_turn_beside_it(bench):
    silent = await bench.open(kind="group", session_key="a")
    talking = await bench.open(kind="group", session_key="b")
    bench.coordinator.silence(silent)
    await bench.say(talking, "B answers", notify=True)
    await bench.complete(talking)
    await bench.complete(silent)
    following = await bench.open(kind="group", session_key="a")
    await bench.say(following, "A answers", notify=True)
    await bench.complete(following)
    assert bench.finals == ["B answers", "A answers"]


async def test_an_interleaved_person_lifts_silence_but_not_what_was_said_under_it(bench):
    turn = await bench.open()
    bench.coordinator.silence(turn)
    await bench.stream(turn, "Hidden", "Hidden text")
    bench.coordinator.lift_silence(turn)
    await bench.clock.advance(1)
    await bench.stream(turn, "The answer", "The answer to the person.")
    await bench.clock.advance(1)
    assert bench.canon.nodes[turn.conversation_id].text == "The answer to the person."
    await bench.complete(turn)
    assert bench.finals == ["The answer to the person."]


async def test_lifting_without_silence_keeps_the_answer(bench):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    bench.coordinator.lift_silence(turn)
    await bench.complete(turn)
    assert bench.finals == ["The answer."]


@pytest.mark.parametrize("fault", [Fault.ambiguous(502), Fault.unreachable()])
async def test_h6_a_node_is_not_cleared_before_it_is_known_to_be_blank(bench, fault):
    """Canon makes a message of what a cleared node shows: silenced words would be said after all."""
    turn = await bench.open()
    await bench.stream(turn, "Early", "Early text")
    await bench.clock.advance(1)
    bench.canon.faults.fail_next("write_node", fault, times=3)
    bench.coordinator.silence(turn)
    await bench.complete(turn)
    await bench.clock.advance(60)
    assert bench.texts == []
    assert turn.conversation_id not in bench.canon.nodes


async def test_h6_a_node_that_cannot_be_blanked_is_left_to_the_next_turn(bench):
    turn = await bench.open()
    await bench.stream(turn, "Early", "Early text")
    await bench.clock.advance(1)
    bench.canon.faults.fail_next("write_node", Fault.ambiguous(502), times=20)
    bench.coordinator.silence(turn)
    await bench.complete(turn)
    await bench.clock.advance(300)
    assert "clear_node" not in bench.canon.operations()
    assert bench.texts == []


async def test_h6_a_node_that_could_not_be_blanked_before_a_disconnect_is_blanked_after_the_reconnect(bench):
    turn = await bench.open()
    await bench.stream(turn, "Early", "Early text")
    await bench.clock.advance(1)
    bench.canon.faults.fail_next("write_node", Fault.unreachable(), times=2)
    bench.coordinator.silence(turn)
    await bench.complete(turn)
    closing = asyncio.ensure_future(bench.coordinator.close())
    await bench.clock.advance(0)
    await closing
    assert "Early text" in str(bench.canon.nodes)
    bench.coordinator.recover()
    await bench.clock.advance(1)
    assert turn.conversation_id not in bench.canon.nodes
    assert bench.texts == []


async def test_h6_a_node_that_could_not_be_blanked_for_long_is_blanked_after_the_next_reconnect(bench):
    turn = await bench.open()
    await bench.stream(turn, "Early", "Early text")
    await bench.clock.advance(1)
    bench.canon.faults.fail_next("write_node", Fault.unreachable(), times=6)
    bench.coordinator.silence(turn)
    await bench.complete(turn)
    await bench.clock.advance(300)
    assert "Early text" in str(bench.canon.nodes)
    bench.coordinator.recover()
    await bench.clock.advance(1)
    assert turn.conversation_id not in bench.canon.nodes


async def test_h6_a_turn_that_ends_in_silence_after_a_reconnect_has_all_its_time_to_blank_its_node(bench):
    turn = await bench.open()
    await bench.stream(turn, "Early", "Early text")
    await bench.clock.advance(1)
    await bench.coordinator.close()
    bench.coordinator.recover()
    bench.canon.faults.fail_next("write_node", Fault.unreachable(), times=3)
    bench.coordinator.silence(turn)
    await bench.complete(turn)
    await bench.clock.advance(60)
    assert turn.conversation_id not in bench.canon.nodes


async def test_h6_a_write_whose_answer_was_lost_counts_as_shown(bench):
    turn = await bench.open()
    await bench.clock.advance(1)
    bench.canon.faults.fail_next("write_node", Fault.lost_response())
    await bench.stream(turn, "Early", "Early text")
    await bench.clock.advance(0)
    bench.coordinator.silence(turn)
    await bench.complete(turn)
    await bench.clock.advance(60)
    assert bench.texts == []


async def test_h6_the_next_turn_does_not_say_what_fell_silent_when_its_own_writes_fail(bench):
    first = await bench.open()
    await bench.stream(first, "Early", "Early text")
    await bench.clock.advance(1)
    bench.canon.faults.fail_next("write_node", Fault.unreachable(), times=3)  # both blankings, and the next turn's view
    bench.coordinator.silence(first)
    await settle()
    await bench.complete(first)
    second = await bench.open(message_id="msg_78")
    await bench.complete(second)
    await bench.clock.advance(120)
    assert bench.texts == []
    assert first.conversation_id not in bench.canon.nodes
