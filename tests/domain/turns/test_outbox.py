"""What is begun outlives the process: kept first, forgotten when over, said after a restart (turns §4.3; field row 90).

A second bench over the first one's Canon, disk and time is the process after the crash.
"""

from __future__ import annotations

import asyncio
import logging

import pytest
from canon_hermes_plugin.domain.turns import dispatch
from canon_hermes_plugin.domain.turns.ending import HAND_OVER
from canon_hermes_plugin.domain.turns.model import HostText
from canon_hermes_plugin.domain.turns.notice import NOTICE
from canon_hermes_plugin.domain.turns.settling import AGAIN, LIFETIME_MS, PAUSES
from canon_hermes_plugin.infrastructure.memory.canon import Node
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import settle

CONVERSATION = "conv_81"
DAY = LIFETIME_MS / 1000
OUTAGE = Fault.ambiguous(None)


@pytest.fixture
async def reborn(bench, bench_type):
    """Ends the process and starts the next one, connected to Canon."""
    made = []

    async def next_process(*, connected=True):
        await (made[-1] if made else bench).die()
        made.append(bench_type(earlier=bench, seed=100 + len(made)))
        if connected:
            made[-1].coordinator.recover()
            await settle()
        return made[-1]

    yield next_process
    for one in made:
        one.canon.faults.outage = None
        await one.clock.advance(300)
        await one.coordinator.close()
        assert one.tasks.failures == []


def long_text(parts="abc"):
    return "\n\n".join(letter * 3600 for letter in parts)


async def begin(bench, text="The answer.", *, stored=0, **facts):
    """Let a turn begin to deliver ``text``: ``stored`` parts arrive, then Canon stalls."""
    turn = await bench.open(**facts)
    await bench.say(turn, text, notify=True)
    gates = [bench.canon.faults.hold_next("send") for _ in range(stored + 1)]
    for gate in gates[:-1]:
        gate.set()
    ending = asyncio.ensure_future(bench.coordinator.complete(turn, "success"))
    await settle()
    return turn, ending, gates[-1]


def ends_of(bench, turn):
    return [made.state for made in bench.canon.turns if made.turn_id == turn.id][-1]


# --- keeping and forgetting ----------------------------------------------------------------------------------------


async def test_field_90_nothing_is_sent_before_it_is_kept(bench, monkeypatch):
    gate, keep = asyncio.Event(), bench.outbox.keep

    async def slow(entry):
        await gate.wait()
        await keep(entry)

    monkeypatch.setattr(bench.outbox, "keep", slow, raising=False)
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    ending = asyncio.ensure_future(bench.coordinator.complete(turn, "success"))
    saying = asyncio.ensure_future(bench.say(None, "Backup finished."))
    await settle()
    assert "send" not in bench.canon.operations()
    gate.set()
    await asyncio.gather(ending, saying)
    assert sorted(bench.texts) == ["Backup finished.", "The answer."]


async def test_field_90_the_plan_is_kept_byte_for_byte_and_forgotten_once_it_is_stored(bench):
    turn, ending, gate = await begin(bench, long_text(), stored=1)
    (entry,) = await bench.outbox.leftover()
    gate.set()
    await ending
    await settle()
    assert list(entry.messages) == bench.canon.messages
    assert (entry.turn_id, entry.opened_at) == (turn.id, turn.opened_at)
    assert entry.kept_at == bench.clock.now_ms()
    assert bench.outbox.documents == {}
    assert bench.outbox.kept == bench.outbox.forgotten == [entry.operation_id]


@pytest.mark.parametrize("end", ["silence", "cancelled", "failure", "nothing"])
async def test_field_90_what_delivers_nothing_is_never_kept(bench, end):
    turn = await bench.open()
    if end != "nothing":
        await bench.say(turn, "The answer.", notify=True)
    if end == "silence":
        bench.coordinator.silence(turn)
    await bench.complete(turn, end if end in {"cancelled", "failure"} else "success")
    assert bench.outbox.kept == []


@pytest.mark.parametrize("parts", ["a", "abc"])
async def test_field_90_a_refused_answer_is_forgotten(bench, parts):
    turn = await bench.open()
    await bench.say(turn, long_text(parts), notify=True)
    bench.canon.faults.fail_next("send", Fault.definitive())
    await bench.complete(turn)
    assert bench.finals == [NOTICE]
    assert bench.outbox.documents == {}


@pytest.mark.parametrize(("fault", "kept"), [(Fault.definitive(), 0), (Fault.unreachable(), 0), (OUTAGE, 1)])
async def test_field_90_an_out_of_turn_text_is_kept_only_while_it_is_unsettled(bench, fault, kept):
    bench.canon.faults.fail_next("send", fault)
    ack = await bench.coordinator.text(None, HostText(CONVERSATION, "Report"))
    assert ack.ok is bool(kept)
    await settle()
    assert len(bench.outbox.documents) == kept
    await bench.clock.advance(PAUSES[0])
    assert bench.outbox.documents == {}
    assert bench.texts == ["Report"] * kept


async def test_field_90_a_text_of_a_name_that_failed_is_kept_again_when_it_is_said_again(bench):
    text = HostText(CONVERSATION, "Report", bubble="hermes-x.1", finalize=True)
    bench.canon.faults.fail_next("send", Fault.unreachable())
    assert not (await bench.coordinator.text(None, text)).ok
    gate = bench.canon.faults.hold_next("send")
    saying = asyncio.ensure_future(bench.coordinator.text(None, text))
    await settle()
    assert len(bench.outbox.documents) == 1
    gate.set()
    await saying


async def test_field_90_a_text_whose_caller_gave_up_is_brought_to_its_end_here(bench):
    gate = bench.canon.faults.hold_next("send")
    saying = asyncio.ensure_future(bench.coordinator.text(None, HostText(CONVERSATION, "Report")))
    await settle()
    saying.cancel()
    await asyncio.gather(saying, return_exceptions=True)
    gate.set()
    await bench.clock.advance(PAUSES[0])
    assert bench.texts == ["Report"]
    assert bench.outbox.documents == {}


async def test_field_90_a_full_disk_costs_the_insurance_and_not_the_answer(bench, caplog):
    bench.outbox.full = True
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    await bench.complete(turn)
    assert bench.finals == ["The answer."]
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "sent without being kept" in record.getMessage()
    assert "The answer." not in caplog.text


@pytest.mark.parametrize("call", ["keep", "leftover"])
async def test_field_90_a_disk_that_hangs_delays_an_answer_for_a_bounded_time(bench, monkeypatch, call, caplog):
    monkeypatch.setattr(dispatch, "DISK_PATIENCE", 0.01)

    async def hang(*_):
        await asyncio.Event().wait()

    monkeypatch.setattr(bench.outbox, call, hang, raising=False)
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    await bench.complete(turn)
    assert bench.finals == ["The answer."]
    assert ("the disk is slow" in caplog.text) is (call == "keep")


# --- after a restart -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [0, 1, 2])
async def test_field_90_a_killed_answer_is_completed_once_after_the_restart(bench, reborn, stored):
    turn, _, _ = await begin(bench, long_text(), stored=stored)
    bench.canon.nodes[CONVERSATION] = Node(turn.id, "aaaa", "streaming", ())
    after = await reborn()
    assert [text[0] for text in after.texts] == ["a", "b", "c"]
    assert len(after.finals) == 1
    assert after.canon.messages[-1].metadata["turnId"] == turn.id
    assert after.outbox.documents == {}
    assert ends_of(after, turn) == "completed"
    assert after.canon.turns[-1].opened_at == turn.opened_at
    await after.clock.advance(HAND_OVER)
    assert after.canon.nodes == {}
    assert len(after.texts) == 3


async def test_field_90_what_was_stored_before_the_crash_is_not_stored_twice(bench, reborn):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    bench.canon.faults.fail_next("send", Fault.lost_response())
    await bench.complete(turn)
    assert bench.finals == ["The answer."]
    after = await reborn()
    assert after.finals == ["The answer."]
    assert after.outbox.documents == {}


async def test_field_90_nothing_is_sent_before_canon_accepted_the_key(bench, reborn):
    await begin(bench)
    after = await reborn(connected=False)
    sent = after.canon.operations().count("send")
    await after.clock.advance(100)
    assert after.canon.operations().count("send") == sent
    after.coordinator.recover()
    after.coordinator.recover()
    await settle()
    assert after.canon.operations().count("send") == sent + 1
    assert after.finals == ["The answer."]


async def test_field_90_leftovers_of_a_conversation_are_said_in_the_order_kept(bench, reborn):
    bench.canon.faults.outage = OUTAGE
    for number in range(3):
        await bench.coordinator.text(None, HostText(CONVERSATION, f"Report {number}"))
    await bench.coordinator.text(None, HostText("conv_other", "Elsewhere"))
    bench.canon.faults.outage = None
    after = await reborn(connected=False)
    stuck = after.canon.faults.hold_next("send")
    after.coordinator.recover()
    await settle()
    assert after.texts == ["Elsewhere"]
    stuck.set()
    await settle()
    assert after.texts == ["Elsewhere", "Report 0", "Report 1", "Report 2"]


async def test_field_90_an_outage_after_the_restart_is_waited_out_in_order(bench, reborn):
    bench.canon.faults.outage = OUTAGE
    for number in range(2):
        await bench.coordinator.text(None, HostText(CONVERSATION, f"Report {number}"))
    after = await reborn()
    assert after.texts == []
    after.canon.faults.outage = None
    await after.clock.advance(PAUSES[0])
    assert after.texts == ["Report 0", "Report 1"]


async def test_field_90_a_new_answer_does_not_overtake_what_is_being_recovered(bench, reborn):
    await begin(bench, "Old.")
    after = await reborn(connected=False)
    stuck = after.canon.faults.hold_next("send")
    after.coordinator.recover()
    turn = await after.open(message_id="msg_78")
    await after.say(turn, "New.", notify=True)
    ending = asyncio.ensure_future(after.coordinator.complete(turn, "success"))
    await settle()
    assert after.texts == []
    stuck.set()
    async with asyncio.timeout(dispatch.BEHIND / 2):
        await ending
    assert after.finals == ["Old.", "New."]


async def test_field_90_an_answer_that_waits_for_leftovers_is_kept_and_survives_a_second_death(bench, reborn):
    await begin(bench, "Old.")
    second = await reborn(connected=False)
    second.canon.faults.hold_next("send")
    second.coordinator.recover()
    turn = await second.open(message_id="msg_78")
    await second.say(turn, "New.", notify=True)
    ending = asyncio.ensure_future(second.coordinator.complete(turn, "success"))
    await settle()
    assert second.texts == []
    third = await reborn()
    assert ending.done()
    assert third.finals == ["Old.", "New."]
    assert third.outbox.documents == {}


async def test_field_90_what_is_kept_while_a_slow_disk_is_read_is_not_taken_for_a_leftover(bench, monkeypatch):
    monkeypatch.setattr(dispatch, "DISK_PATIENCE", 0.01)
    slow, read = asyncio.Event(), bench.outbox.leftover

    async def leftover():
        await slow.wait()
        return await read()

    monkeypatch.setattr(bench.outbox, "leftover", leftover, raising=False)
    bench.coordinator.recover()
    turn, ending, gate = await begin(bench)
    async with asyncio.timeout(5):
        while not bench.outbox.documents:
            await asyncio.sleep(0.005)
    slow.set()
    await settle()
    assert bench.canon.operations().count("send") == 1
    assert ends_of(bench, turn) != "completed"
    gate.set()
    await ending
    assert bench.finals == ["The answer."]


async def test_field_90_an_answer_cut_short_before_it_was_kept_is_kept_and_said_later(bench, reborn, monkeypatch):
    monkeypatch.setattr("canon_hermes_plugin.domain.turns.coordinator.DRAIN", 0.01)
    await begin(bench, "Old.")
    after = await reborn(connected=False)
    stuck = after.canon.faults.hold_next("send")
    after.coordinator.recover()
    turn = await after.open(message_id="msg_78")
    await after.say(turn, "New.", notify=True)
    keep, writing = after.outbox.keep, asyncio.Event()

    async def slow(entry):
        if not writing.is_set():
            writing.set()
            await asyncio.Event().wait()
        await keep(entry)

    monkeypatch.setattr(after.outbox, "keep", slow, raising=False)
    ending = asyncio.ensure_future(after.coordinator.complete(turn, "success"))
    await writing.wait()
    assert len(after.outbox.documents) == 1
    await after.coordinator.close()
    await asyncio.gather(ending, return_exceptions=True)
    assert len(after.outbox.documents) == 2
    stuck.set()
    after.coordinator.recover()
    await after.clock.advance(PAUSES[0])
    assert sorted(after.finals) == ["New.", "Old."]
    assert after.outbox.documents == {}


@pytest.mark.parametrize("failure", ["outage", "hang"])
async def test_field_90_a_new_answer_waits_for_a_recovery_for_a_bounded_time_only(bench, reborn, monkeypatch, failure):
    monkeypatch.setattr(dispatch, "BEHIND", 0.01)
    await begin(bench, "Old.")
    after = await reborn(connected=False)
    if failure == "outage":
        after.canon.faults.fail_next("send", OUTAGE)
    else:
        stuck = after.canon.faults.hold_next("send")
    after.coordinator.recover()
    turn = await after.open(message_id="msg_78")
    await after.say(turn, "New.", notify=True)
    await after.complete(turn)
    assert after.finals == ["New."]
    if failure == "hang":
        stuck.set()
    await after.clock.advance(PAUSES[0])
    assert after.finals == ["New.", "Old."]


async def test_field_90_a_turn_of_this_process_keeps_its_node_and_its_state(bench, reborn):
    dead, _, _ = await begin(bench)
    after = await reborn(connected=False)
    turn = await after.open(message_id="msg_78")
    await after.say(turn, "New words ▉", expect_edits=True)
    await after.clock.advance(1)
    assert after.canon.nodes[CONVERSATION].turn_id == turn.id
    after.coordinator.recover()
    await after.clock.advance(20)
    assert after.finals == ["The answer."]
    assert after.canon.nodes[CONVERSATION].turn_id == turn.id
    assert after.canon.nodes[CONVERSATION].text == "New words"
    assert after.canon.turns[-1].turn_id == turn.id
    assert "completed" not in [made.state for made in after.canon.turns if made.turn_id == dead.id][1:]
    assert len(after.texts) == 1


async def test_field_90_no_word_of_a_silenced_dead_turn_is_salvaged(bench, reborn):
    """The node is one for the conversation: beside an unsettled answer a younger turn may have died in silence."""
    await begin(bench)
    silent = await bench.open(message_id="msg_78", session_key="another")
    await bench.stream(silent, "Secret", "Secret words")
    await bench.clock.advance(1)
    bench.coordinator.silence(silent)
    bench.canon.nodes[CONVERSATION] = Node(silent.id, "Secret words", "streaming", ())
    after = await reborn()
    await after.clock.advance(5)
    assert after.texts == ["The answer."]
    assert after.canon.nodes == {}


async def test_field_90_a_node_that_cannot_be_blanked_is_not_deleted_until_it_can(bench, reborn):
    dead, _, _ = await begin(bench)
    bench.canon.nodes[CONVERSATION] = Node("hermes-other", "Words", "streaming", ())
    after = await reborn(connected=False)
    after.canon.faults.fail_next("write_node", Fault.ambiguous(), times=2)
    after.coordinator.recover()
    await after.clock.advance(HAND_OVER)
    assert after.canon.nodes[CONVERSATION].text == "Words"
    await after.clock.advance(10)
    assert after.canon.nodes == {}
    assert after.texts == ["The answer."]
    assert ends_of(after, dead) == "completed"


@pytest.mark.parametrize("blanks", [True, False])
async def test_field_90_a_younger_turn_that_ends_first_makes_no_message_of_a_dead_turns_words(bench, reborn, blanks):
    dead, _, _ = await begin(bench)
    bench.canon.nodes[CONVERSATION] = Node(dead.id, "The an", "streaming", ())
    after = await reborn(connected=False)
    stuck = after.canon.faults.hold_next("send")
    after.coordinator.recover()
    await settle()
    if not blanks:
        after.canon.faults.fail_next("write_node", Fault.ambiguous(), times=3)
    empty = await after.open(message_id=None)
    await after.complete(empty)
    await after.clock.advance(1)
    assert after.texts == []
    assert (CONVERSATION in after.canon.nodes) is not blanks
    stuck.set()
    await after.clock.advance(90)
    assert after.texts == ["The answer."]
    assert after.canon.nodes == {}


async def test_h6_words_of_a_turn_that_died_in_silence_are_blanked_before_the_next_turn_clears_the_node(bench, reborn):
    """Nothing was being delivered, and the blank write at the opening of the next turn fails."""
    silent = await bench.open()
    await bench.stream(silent, "Secret", "Secret words")
    await bench.clock.advance(1)
    bench.coordinator.silence(silent)
    after = await reborn()
    assert after.canon.nodes[CONVERSATION].text == "Secret words"
    after.canon.faults.fail_next("write_node", Fault.ambiguous(), times=2)
    turn = await after.open(message_id="msg_78")
    await after.complete(turn, "failure")
    await after.clock.advance(10)
    assert after.texts == []
    assert after.canon.nodes == {}


async def test_field_90_the_words_of_a_younger_turn_are_salvaged_as_ever(bench, reborn):
    dead, _, _ = await begin(bench)
    bench.canon.nodes[CONVERSATION] = Node(dead.id, "The an", "streaming", ())
    after = await reborn(connected=False)
    stuck = after.canon.faults.hold_next("send")
    after.coordinator.recover()
    turn = await after.open(message_id="msg_78")
    await after.stream(turn, "Half", "Half of it")
    await after.clock.advance(1)
    await after.complete(turn, "failure")
    await after.clock.advance(1)
    assert after.texts == ["Half of it"]
    stuck.set()
    await after.clock.advance(5)
    assert after.texts == ["Half of it", "The answer."]


async def test_field_90_the_host_learns_which_sessions_owe_nothing_but_a_delivery(bench, reborn):
    await begin(bench, session_key="direct")
    kept_at = bench.clock.now_ms()
    bench.canon.faults.outage = OUTAGE
    await bench.coordinator.text(None, HostText(CONVERSATION, "Report"))
    bench.canon.faults.outage = None
    await bench.clock.advance(1)
    await begin(bench, conversation="conv_82", session_key="group")
    after = await reborn(connected=False)
    assert await after.coordinator.left_unsaid() == {"direct": kept_at, "group": kept_at + 1000}
    await after.clock.advance(DAY)
    assert await after.coordinator.left_unsaid() == {"group": kept_at + 1000}


async def test_field_90_a_leftover_that_is_refused_stays_open_since_the_dead_process_may_have_stored_it(bench, reborn):
    turn, _, _ = await begin(bench)
    bench.canon.nodes[CONVERSATION] = Node(turn.id, "The an", "streaming", ())
    after = await reborn(connected=False)
    after.canon.faults.fail_next("send", Fault.definitive())
    after.coordinator.recover()
    await after.clock.advance(5)
    assert after.texts == []
    assert after.canon.nodes[CONVERSATION].text == "The an"
    assert len(after.outbox.documents) == 1
    await after.clock.advance(AGAIN)
    assert after.texts == ["The answer."]
    assert after.outbox.documents == {}
    assert ends_of(after, turn) == "completed"


async def test_field_90_a_leftover_whose_id_canon_knows_for_something_else_is_told_to_the_person(bench, reborn):
    turn, _, _ = await begin(bench)
    bench.canon.nodes[CONVERSATION] = Node(turn.id, "The an", "streaming", ())
    after = await reborn(connected=False)
    after.canon.faults.fail_next("send", Fault.ambiguous(409), times=1 + len(PAUSES))
    after.coordinator.recover()
    await after.clock.advance(sum(PAUSES) + 5)
    assert after.texts == [NOTICE]
    assert after.canon.messages[0].reply_to == "msg_77"
    assert after.outbox.documents == {}
    assert after.canon.nodes[CONVERSATION].text == "The an"
    assert ends_of(after, turn) == "completed"


@pytest.mark.parametrize(("fault", "times"), [(Fault.definitive(), 1), (Fault.ambiguous(500), 1 + len(PAUSES))])
async def test_field_90_a_leftover_that_canon_does_not_take_does_not_hold_up_the_next_one(bench, reborn, fault, times):
    bench.canon.faults.outage = OUTAGE
    for number in range(3):
        await bench.coordinator.text(None, HostText(CONVERSATION, f"Report {number}"))
    bench.canon.faults.outage = None
    after = await reborn(connected=False)
    after.canon.faults.fail_next("send", fault, times=times)
    after.coordinator.recover()
    await after.clock.advance(sum(PAUSES))
    assert after.texts == ["Report 1", "Report 2"]
    await after.clock.advance(AGAIN)
    assert after.texts == ["Report 1", "Report 2", "Report 0"]
    assert after.outbox.documents == {}


async def test_field_90_leftovers_of_a_long_outage_are_said_in_the_order_kept(bench, reborn):
    bench.canon.faults.outage = OUTAGE
    for number in range(3):
        await bench.coordinator.text(None, HostText(CONVERSATION, f"Report {number}"))
    after = await reborn()
    await after.clock.advance(3600)
    assert after.texts == []
    after.canon.faults.outage = None
    await after.clock.advance(AGAIN)
    assert after.texts == ["Report 0", "Report 1", "Report 2"]


# --- giving up -----------------------------------------------------------------------------------------------------


async def test_field_90_a_hopeless_answer_is_forgotten_when_the_person_was_told(bench):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    bench.canon.faults.fail_next("send", Fault.unreachable(), times=1 + len(PAUSES))
    await bench.complete(turn)
    await bench.clock.advance(sum(PAUSES) + 1)
    assert bench.finals == [NOTICE]
    assert bench.outbox.documents == {}


@pytest.mark.parametrize("how", ["connect", "turn", "restart"])
async def test_field_90_an_answer_without_a_canon_is_tried_again_when_there_is_one(bench, reborn, how):
    turn = await bench.open()
    await bench.stream(turn, "The", "The answer.")
    bench.canon.faults.outage = OUTAGE
    await bench.complete(turn)
    await bench.clock.advance(sum(PAUSES) + 3600)
    assert bench.texts == []
    assert len(bench.outbox.documents) == 1
    bench.canon.faults.outage = None
    if how == "restart":
        after = await reborn()
    else:
        after = bench
        await (bench.open(message_id="msg_78") if how == "turn" else asyncio.sleep(0, bench.coordinator.recover()))
        await bench.clock.advance(PAUSES[0] + 1)
    assert after.finals == ["The answer."]
    assert after.outbox.documents == {}
    await after.clock.advance(5)
    assert after.texts == ["The answer."]


async def test_field_90_an_out_of_turn_text_outlives_a_long_outage_too(bench):
    bench.canon.faults.outage = OUTAGE
    await bench.coordinator.text(None, HostText(CONVERSATION, "Report"))
    await bench.clock.advance(sum(PAUSES) + 3600)
    assert len(bench.outbox.documents) == 1
    bench.canon.faults.outage = None
    bench.coordinator.recover()
    await bench.clock.advance(PAUSES[0])
    assert bench.texts == ["Report"]
    assert bench.outbox.documents == {}


async def test_field_90_an_id_that_canon_knows_for_something_else_is_given_up(bench):
    bench.canon.faults.fail_next("send", Fault.ambiguous(409), times=1 + len(PAUSES))
    await bench.coordinator.text(None, HostText(CONVERSATION, "Report"))
    await bench.clock.advance(sum(PAUSES))
    assert bench.outbox.documents == {}
    sent = bench.canon.operations().count("send")
    bench.coordinator.recover()
    await bench.clock.advance(300)
    assert bench.canon.operations().count("send") == sent


@pytest.mark.parametrize("how", ["resume", "restart"])
@pytest.mark.parametrize(("age", "said"), [(DAY - 300, True), (DAY + 1, False)])
async def test_field_90_an_operation_of_more_than_a_day_is_dropped_with_a_warning_of_ids(
    bench, reborn, how, age, said, caplog
):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    bench.canon.faults.outage = OUTAGE
    await bench.complete(turn)
    await bench.clock.advance(age)
    bench.canon.faults.outage = None
    caplog.clear()
    after = await reborn() if how == "restart" else bench
    if how == "resume":
        bench.coordinator.recover()
        await bench.clock.advance(PAUSES[0])
    assert after.finals == (["The answer."] if said else [])
    assert after.outbox.documents == {}
    dropped = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert bool(dropped) is not said
    assert said or "hermes-final-" in caplog.text
    assert "The answer." not in caplog.text


async def test_field_90_a_resumed_answer_settles_its_turn_once_even_when_its_last_steps_are_cut_short(bench, reborn):
    turn, ending, gate = await begin(bench)
    bench.canon.faults.fail_next("send", OUTAGE)
    gate.set()
    await ending
    await bench.clock.advance(PAUSES[0])
    assert bench.finals == ["The answer."]
    await bench.tasks.drain(0)  # during the pause before the node goes
    bench.coordinator.recover()
    await bench.clock.advance(60)
    assert bench.finals == ["The answer."]
    assert turn.book.settled_ordinal == 1
