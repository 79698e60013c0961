"""What viewers see while a turn runs, and at which pace (turns §3; H26, H27, H33, H35)."""

import asyncio

import pytest
from canon_hermes_plugin.domain.turns.limiter import MIN_GAP
from canon_hermes_plugin.domain.turns.model import ToolEnd, ToolStart
from canon_hermes_plugin.infrastructure.memory.canon import Node
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import settle
from canon_hermes_plugin.ports.host import InboundMessage


def writes(bench):
    return [call.subject for call in bench.canon.calls if call.operation == "write_node"]


async def test_h27_a_hundred_deltas_in_two_seconds_are_few_writes_and_the_last_one_wins(bench):
    turn = await bench.open()
    bubble = await bench.say(turn, "0 ▉", expect_edits=True)
    for number in range(1, 101):
        await bench.say(turn, f"{number} ▉", finalize=False, bubble=bubble)
        await bench.clock.advance(0.02)
    await bench.clock.advance(MIN_GAP)
    assert len(writes(bench)) <= 10  # at least 250 ms lie between two
    assert bench.canon.nodes[turn.conversation_id].text == "100"
    assert bench.states == ["thinking", "streaming"]


async def test_h35_the_cursor_never_reaches_the_node(bench):
    turn = await bench.open()
    await bench.say(turn, "Let me ▉", expect_edits=True)
    await bench.clock.advance(1)
    assert all("▉" not in write.text for write in writes(bench))


@pytest.mark.parametrize("verbosity", ["verbose", "quiet"])
async def test_h26_a_new_turn_retires_what_a_dead_one_left(bench, verbosity):
    bench.canon.nodes["conv_81"] = Node("hermes-dead", "old text", "streaming", ({"id": "old"},))
    turn = await bench.open(verbosity=verbosity)
    node = bench.canon.nodes["conv_81"]
    assert (node.turn_id, node.text, node.status, node.blocks) == (turn.id, "", "thinking", ())
    await bench.complete(turn)
    await bench.clock.advance(1)
    assert bench.texts == []


async def test_a_quiet_turn_shows_nothing_but_publishes_and_answers_alike(bench):
    turn = await bench.open(verbosity="quiet")
    await bench.stream(turn, "The", "The answer")
    bench.coordinator.tool_started(turn, ToolStart("shell", "1"))
    await bench.clock.advance(1)
    assert [write.text for write in writes(bench)] == [""]
    await bench.stream(turn, "The answer.")
    await bench.complete(turn)
    (final,) = bench.canon.messages
    assert "turnTrail" not in final.metadata
    assert bench.states == ["thinking", "streaming", "completed"]


async def test_h27_tool_activity_alone_is_shown(bench):
    turn = await bench.open()
    bench.coordinator.tool_started(turn, ToolStart("shell", "1", {"cmd": "ls"}))
    await bench.clock.advance(1)
    (block,) = bench.canon.nodes[turn.conversation_id].blocks
    assert block["status"] == "running"
    bench.coordinator.tool_finished(turn, ToolEnd("shell", "1", result="a b"))
    await bench.clock.advance(1)
    (block,) = bench.canon.nodes[turn.conversation_id].blocks
    assert (block["status"], block["text"]) == ("completed", "a b")
    await bench.say(turn, "Two files.", notify=True)
    await bench.complete(turn)
    (final,) = bench.canon.messages
    assert [b["id"] for b in final.metadata["turnTrail"]] == ["tool:1"]


async def test_commentary_stays_visible_while_its_tool_runs(bench):
    turn = await bench.open()
    await bench.stream(turn, "I will look.")
    bench.coordinator.tool_started(turn, ToolStart("shell", "1"))
    await bench.clock.advance(1)
    assert bench.canon.nodes[turn.conversation_id].text == "I will look."


async def test_h27_the_state_is_published_even_when_the_node_cannot_be_written(bench):
    bench.canon.faults.fail_next("write_node", Fault.ambiguous(), times=9)
    turn = await bench.open()
    await bench.stream(turn, "Hi")
    await settle()
    assert bench.states == ["thinking", "streaming"]


async def test_the_last_text_is_shown_even_if_the_turn_ends_within_the_gap(bench):
    turn = await bench.open()
    await bench.stream(turn, "The answer.")
    await bench.complete(turn)
    assert bench.canon.nodes[turn.conversation_id].text == "The answer."


async def test_field_21_nothing_is_written_after_the_node_was_cleared(bench):
    turn = await bench.open()
    bubble = await bench.stream(turn, "The answer.")
    await bench.complete(turn)
    await bench.say(turn, "late", finalize=False, bubble=bubble)
    bench.coordinator.tool_started(turn, ToolStart("late", "9"))
    await bench.clock.advance(5)
    assert bench.canon.operations()[-1] == "clear_node"


async def test_a_younger_turn_keeps_its_node_when_the_older_one_hands_over(bench):
    first = await bench.open()
    await bench.stream(first, "First.")
    await bench.complete(first)
    second = await bench.open()
    await bench.stream(second, "Second is being written")
    await bench.clock.advance(2)
    assert bench.canon.nodes[second.conversation_id].text == "Second is being written"
    assert bench.texts == ["First."]


async def test_h33_turns_side_by_side_do_not_wipe_each_others_view(bench):
    one = await bench.open(session_key="a")
    await bench.stream(one, "One writes")
    await bench.clock.advance(1)
    two = await bench.open(session_key="b")
    await bench.clock.advance(1)
    assert bench.canon.nodes["conv_81"].text == "One writes"
    bench.coordinator.tool_started(two, ToolStart("shell", "2"))
    await bench.stream(two, "Two writes")
    await bench.clock.advance(1)
    await bench.complete(one)
    await bench.clock.advance(1)
    node = bench.canon.nodes["conv_81"]
    assert (node.turn_id, [block["id"] for block in node.blocks]) == (two.id, ["tool:2"])
    assert "turnTrail" not in bench.canon.messages[0].metadata


async def test_h33_a_write_that_waited_for_its_place_is_dropped_when_its_turn_ended(bench):
    one, two = await bench.open(session_key="a"), await bench.open(session_key="b")
    await bench.clock.advance(1)
    gate = bench.canon.faults.hold_next("write_node")
    await bench.stream(one, "One writes")
    await settle()
    await bench.stream(two, "Two writes")
    await settle()
    await bench.complete(two, "cancelled")
    gate.set()
    await bench.clock.advance(1)
    assert bench.canon.nodes["conv_81"].text == "One writes"


async def test_a_quiet_turn_shows_nothing_even_if_it_speaks_before_its_opening_was_published(bench):
    gate = bench.canon.faults.hold_next("publish_turn")
    turn = await bench.open(verbosity="quiet")
    await bench.stream(turn, "The answer")
    gate.set()
    await bench.clock.advance(1)
    assert [write.text for write in writes(bench)] == [""]


async def test_the_close_is_published_after_the_answer_whatever_happens_meanwhile(bench):
    turn = await bench.open()
    await bench.coordinator.waiting(turn, True)
    await bench.say(turn, "The answer.", notify=True)
    gate = bench.canon.faults.hold_next("send")
    ending = asyncio.ensure_future(bench.coordinator.complete(turn, "success"))
    await settle()
    await bench.coordinator.waiting(turn, False)
    await settle()
    assert "completed" not in bench.states
    gate.set()
    await ending
    await settle()
    assert bench.states.count("completed") == 1


async def test_open_turns_are_published_again_with_a_fresh_queue_depth_until_they_end(bench):
    turn = await bench.open()
    for number in range(3):  # one runs, two wait
        await bench.lanes.hand_over(InboundMessage(turn.conversation_id, f"text {number}"))
    await bench.clock.advance(25)
    assert bench.states == ["thinking"] * 3
    assert [publication.queue_depth for publication in bench.canon.turns] == [0, 2, 2]
    await bench.lanes.stop()
    await bench.complete(turn)
    published = len(bench.canon.turns)
    await bench.clock.advance(60)
    assert len(bench.canon.turns) == published
    assert bench.clock.sleepers == 0


async def test_the_capabilities_follow_the_state_and_the_lanes(bench):
    bench.lanes.interleave = False
    turn = await bench.open()
    await bench.coordinator.waiting(turn, True)
    await settle()
    opening, waiting = bench.canon.turns
    assert opening.capabilities == {
        "supportsInterrupt": True,
        "supportsQueue": True,
        "supportsInterleave": False,
        "supportsInputInterrupt": True,
        "supportsNonFinalPermanentMessages": False,
    }
    assert waiting.capabilities["supportsInputInterrupt"] is False
    assert opening.opened_at == waiting.opened_at == turn.opened_at
