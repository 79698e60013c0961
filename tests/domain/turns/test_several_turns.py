"""Turns side by side and one after another (turns §11.3; H2 to H4, H33; field faults 4, 68)."""

from canon_hermes_plugin.domain.turns.model import ToolStart
from canon_hermes_plugin.infrastructure.memory.time import settle


async def test_h2_h3_the_unmarked_answer_of_a_run_is_its_own_turns_answer(bench):
    turn = await bench.open()
    bench.coordinator.answer_confirmed(turn, "First answer.")
    await bench.say(turn, "First answer.")
    await bench.complete(turn)
    following = await bench.open(message_id="msg_78")
    await bench.say(following, "Second answer.", notify=True)
    await bench.complete(following)
    first, second = bench.canon.notifications
    assert [first.text, second.text] == ["First answer.", "Second answer."]
    assert [first.reply_to, second.reply_to] == ["msg_77", "msg_78"]
    assert [first.metadata["turnId"], second.metadata["turnId"]] == [turn.id, following.id]


async def test_h4_h6_neither_an_interrupted_runs_text_nor_silence_reaches_the_next_turn(bench):
    turn = await bench.open()
    await bench.say(turn, "Partial answer that was inter ▉", expect_edits=True)
    bench.coordinator.silence(turn)
    await bench.complete(turn, "cancelled")
    following = await bench.open(message_id="msg_78")
    await bench.stream(following, "New answer after interrupt.")
    await bench.complete(following)
    await bench.clock.advance(2)
    assert bench.texts == ["New answer after interrupt."]


async def test_invariant_27_two_turns_of_a_group_do_not_touch_each_other(bench):
    alice = await bench.open(kind="group", session_key="alice", message_id="msg_a")
    bob = await bench.open(kind="group", session_key="bob", message_id="msg_b")
    await bench.stream(alice, "For Alice.")
    bench.coordinator.tool_started(bob, ToolStart("shell", "1"))
    await bench.stream(bob, "Commentary for Bob.")
    await bench.complete(bob, "cancelled")
    await bench.complete(alice)
    (final,) = bench.canon.notifications
    assert (final.text, final.reply_to, final.metadata["turnId"]) == ("For Alice.", "msg_a", alice.id)
    assert "turnTrail" not in final.metadata


async def test_h39_the_answer_without_streaming_finds_its_turn_among_several(bench):
    turns = [await bench.open(kind="group", session_key=key, message_id=f"msg_{key}") for key in "ab"]
    for turn in turns:
        await bench.say(turn, f"Answer to {turn.start.session_key}", notify=True)
    for turn in reversed(turns):
        await bench.complete(turn)
    assert [(m.text, m.reply_to) for m in bench.canon.messages] == [("Answer to b", "msg_b"), ("Answer to a", "msg_a")]


async def test_invariant_16_turn_ids_are_never_reused(bench):
    ids = set()
    for number in range(20):
        turn = await bench.open(session_key=f"k{number % 3}")
        ids.add(turn.id)
        await bench.complete(turn)
    assert len(ids) == 20


async def test_open_turns_are_listed_oldest_first_and_only_while_open(bench):
    first, second = await bench.open(session_key="a"), await bench.open(session_key="b")
    assert bench.coordinator.open_turns("conv_81") == (first, second)
    await bench.complete(first)
    assert bench.coordinator.open_turns("conv_81") == (second,)
    assert bench.coordinator.open_turns("elsewhere") == ()


async def test_events_of_a_closed_turn_are_ignored(bench):
    turn = await bench.open()
    await bench.complete(turn)
    published = len(bench.canon.turns)
    bench.coordinator.tool_started(turn, ToolStart("shell", "1"))
    bench.coordinator.answer_confirmed(turn, "late")
    bench.coordinator.lift_silence(turn)
    await bench.coordinator.waiting(turn, True)
    await settle()
    assert len(bench.canon.turns) == published
    assert bench.lanes.paused == set()


async def test_a_changed_queue_is_published_at_once_and_a_burst_only_once(bench):
    turn = await bench.open()
    before = len(bench.canon.turns)
    for _ in range(30):
        bench.coordinator.queue_changed(turn)
    await settle()
    assert len(bench.canon.turns) == before + 1
    await bench.complete(turn)
    bench.coordinator.queue_changed(turn)
    await settle()
    assert bench.states[-1] == "completed"
