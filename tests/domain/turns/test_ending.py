"""How turns end when something fails (turns §4.4; H6, H12; field faults 3 to 10, 88, 90)."""

import asyncio

import pytest
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.notice import NOTICE
from canon_hermes_plugin.domain.turns.settling import AGAIN, LIFETIME_MS, PAUSES
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import settle
from canon_hermes_plugin.ports.errors import CanonTransportError


@pytest.mark.parametrize(("outcome", "state"), [("failure", "completed"), ("cancelled", "interrupted")])
async def test_invariant_23_an_unsuccessful_turn_publishes_no_answer(bench, outcome, state):
    turn = await bench.open()
    await bench.stream(turn, "Half", "Half an answer")
    await bench.complete(turn, outcome)
    await bench.clock.advance(2)
    assert bench.finals == []
    assert bench.states[-1] == state


async def test_field_10_the_node_of_a_failed_turn_is_cleared_unblanked_so_that_its_text_is_kept(bench):
    turn = await bench.open()
    await bench.stream(turn, "Half", "Half an answer")
    await bench.clock.advance(1)
    await bench.complete(turn, "cancelled")
    (salvaged,) = bench.canon.messages
    assert salvaged.text == "Half an answer"
    assert salvaged.metadata["turnSemantics"] == "progress"


async def test_success_without_an_answer_keeps_the_narration_and_completes(bench):
    turn = await bench.open()
    await bench.say(turn, "thinking alo ▉", expect_edits=True)
    await bench.complete(turn)
    await bench.clock.advance(1)
    assert bench.finals == []
    assert bench.texts == ["thinking alo"]
    assert bench.states[-1] == "completed"


async def test_field_6_a_lost_response_is_settled_by_the_identical_request(bench):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    bench.canon.faults.fail_next("send", Fault.lost_response())
    await bench.complete(turn)
    await bench.clock.advance(PAUSES[0])
    sent = [call.subject for call in bench.canon.calls if call.operation == "send"]
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert bench.finals == ["The answer."]


async def test_h12_an_ambiguous_final_keeps_the_node_until_it_is_settled(bench):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    bench.canon.faults.fail_next("send", Fault.ambiguous(), times=3)
    await bench.complete(turn)
    assert bench.states[-1] == "completed"
    await bench.clock.advance(PAUSES[0] + PAUSES[1] + 1)
    assert "clear_node" not in bench.canon.operations()
    assert bench.texts == []
    await bench.clock.advance(PAUSES[2])
    assert bench.finals == ["The answer."]
    assert bench.canon.operations().count("clear_node") == 1


@pytest.mark.parametrize(
    ("last", "times"),
    [(Fault.ambiguous(500), len(PAUSES)), (Fault.unreachable(), len(PAUSES)), (Fault.definitive(403), 1)],
)
async def test_h12_an_answer_that_may_be_stored_stays_open_and_no_notice_stands_beside_it(bench, last, times):
    """Canon stores it and answers that it failed: one such attempt, the first, makes all that follow prove nothing."""
    turn = await bench.open()
    await bench.stream(turn, "The", "The answer.")
    bench.canon.faults.fail_next("send", Fault.lost_response())
    bench.canon.faults.fail_next("send", last, times=times)
    await bench.complete(turn)
    await bench.clock.advance(sum(PAUSES) + 1)
    assert bench.finals == ["The answer."]
    assert "clear_node" not in bench.canon.operations()
    await bench.clock.advance(AGAIN)
    assert bench.texts == ["The answer."]
    assert bench.canon.operations().count("clear_node") == 1
    assert turn.book.settled_ordinal == 1
    assert len(bench.coordinator._rooms) == 0


async def test_h12_an_open_answer_is_tried_again_every_few_minutes_until_it_is_a_day_old(bench):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    bench.canon.faults.outage = Fault.ambiguous(500)
    await bench.complete(turn)
    await bench.clock.advance(sum(PAUSES))
    seen = []
    for _ in range(3):
        sent = bench.canon.operations().count("send")
        await bench.clock.advance(AGAIN)
        seen.append(bench.canon.operations().count("send") - sent)
    assert seen == [1, 1, 1]
    await bench.clock.advance(LIFETIME_MS / 1000)
    sent = bench.canon.operations().count("send")
    bench.canon.faults.outage = None
    await bench.clock.advance(AGAIN * 3)
    assert bench.canon.operations().count("send") == sent
    assert bench.finals == []
    assert bench.outbox.documents == {}


async def test_h12_after_a_notice_that_may_be_stored_the_answer_does_not_follow(bench):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    bench.canon.faults.fail_next("send", Fault.unreachable(), times=1 + len(PAUSES))
    bench.canon.faults.fail_next("send", Fault.lost_response())
    await bench.complete(turn)
    await bench.clock.advance(sum(PAUSES) + 3 * AGAIN)
    assert bench.finals == [NOTICE]
    assert bench.outbox.documents == {}


async def test_h12_a_refused_final_is_told_to_the_person_and_its_text_is_salvaged(bench):
    turn = await bench.open()
    await bench.stream(turn, "The", "The answer.")
    bench.canon.faults.fail_next("send", Fault.definitive())
    await bench.complete(turn)
    await bench.clock.advance(2)
    assert bench.texts == [NOTICE, "The answer."]
    (notice,) = bench.canon.notifications
    assert notice.metadata["replyBehavior"] == "suppress_auto_reply"
    assert notice.message_id


@pytest.mark.parametrize("fault", [Fault.unreachable(), Fault.definitive(503), Fault.definitive(429)])
@pytest.mark.parametrize("parts", ["a", "abc"])
async def test_h12_an_outage_that_provably_stored_nothing_is_waited_out_too(bench, fault, parts):
    turn = await bench.open()
    texts = [letter * 3600 for letter in parts]
    await bench.say(turn, "\n\n".join(texts), notify=True)
    bench.canon.faults.fail_next("send", fault, times=2)
    await bench.complete(turn)
    await bench.clock.advance(PAUSES[0] + PAUSES[1] + 1)
    assert bench.texts == texts
    assert len(bench.finals) == 1


async def test_h12_an_outage_is_waited_out_for_a_bounded_time_and_then_told(bench):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    bench.canon.faults.fail_next("send", Fault.unreachable(), times=1 + len(PAUSES))
    await bench.complete(turn)
    await bench.clock.advance(sum(PAUSES) + 1)
    assert bench.finals == [NOTICE]
    assert bench.canon.operations().count("clear_node") == 1


async def test_field_9_a_split_answer_resumes_at_the_first_missing_part(bench):
    turn = await bench.open()
    await bench.say(turn, "\n\n".join(letter * 3000 for letter in "abc"), notify=True)
    held = bench.canon.faults.hold_next("send")
    ending = asyncio.ensure_future(bench.coordinator.complete(turn, "success"))
    await settle()
    bench.canon.faults.fail_next("send", Fault.lost_response())
    held.set()
    await ending
    await bench.clock.advance(PAUSES[0])
    assert [text[0] for text in bench.texts] == ["a", "b", "c"]
    assert bench.canon.operations().count("send") == 4


async def test_a_cancelled_wait_does_not_cancel_the_answer(bench):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    gate = bench.canon.faults.hold_next("send")
    waiting = asyncio.ensure_future(bench.coordinator.complete(turn, "success"))
    await settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.set()
    await settle()
    assert bench.finals == ["The answer."]
    assert bench.states[-1] == "completed"


async def test_completing_twice_answers_once(bench):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    await asyncio.gather(*(bench.coordinator.complete(turn, "success") for _ in range(3)))
    assert bench.finals == ["The answer."]
    assert bench.states.count("completed") == 1


async def test_field_4_nothing_staged_after_the_gate_closed_is_published(bench):
    turn = await bench.open()
    bubble = await bench.stream(turn, "The", "The answer.")
    await bench.complete(turn, "cancelled")
    await bench.say(turn, "The stale answer.", finalize=True, bubble=bubble)
    await bench.say(turn, "The stale answer.", expect_edits=True, notify=True)
    await bench.clock.advance(2)
    assert bench.finals == []


async def test_a_turn_can_end_after_the_coordinator_was_closed(bench):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    await bench.coordinator.close()
    await bench.complete(turn)
    assert bench.finals == ["The answer."]


async def test_what_was_being_settled_when_the_connection_ended_is_settled_afterwards(bench, monkeypatch):
    monkeypatch.setattr("canon_hermes_plugin.domain.turns.coordinator.DRAIN", 0.01)
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    bench.canon.faults.fail_next("send", Fault.ambiguous())
    await bench.complete(turn)
    await bench.coordinator.close()
    await bench.clock.advance(60)
    assert bench.texts == []
    await bench.open()
    await bench.clock.advance(PAUSES[0])
    assert bench.finals == ["The answer."]


async def test_a_turn_that_ended_while_closed_does_not_end_the_work_of_the_next_connection(bench, monkeypatch):
    monkeypatch.setattr("canon_hermes_plugin.domain.turns.coordinator.DRAIN", 0.2)
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    await bench.coordinator.close()
    bench.canon.faults.fail_next("send", Fault.ambiguous())
    ending = asyncio.ensure_future(bench.coordinator.complete(turn, "success"))
    await settle()
    assert not ending.done()
    bench.coordinator.recover()
    await ending
    await asyncio.sleep(0.3)  # longer than the work had been given
    await bench.clock.advance(PAUSES[0])
    assert bench.finals == ["The answer."]


async def test_a_turn_ends_locally_even_when_the_transport_is_gone(bench, monkeypatch):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)

    async def gone(*_args, **_kwargs):
        raise CanonTransportError("closed", executed=False)

    for operation in ("send", "publish_turn", "write_node", "clear_node", "set_typing"):
        monkeypatch.setattr(type(bench.canon), operation, gone)
    await bench.complete(turn)
    assert bench.coordinator.open_turns(turn.conversation_id) == ()


async def test_an_unforeseen_fault_still_ends_the_turn_publicly(bench, monkeypatch):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)

    async def broken(*_args):
        raise ZeroDivisionError

    monkeypatch.setattr(type(bench.canon), "send", broken)
    await bench.complete(turn)
    assert bench.states[-1] == "completed"
    assert bench.coordinator.open_turns(turn.conversation_id) == ()


async def test_close_leaves_no_task_behind(bench):
    before = asyncio.all_tasks()
    await bench.open()
    await bench.coordinator.close()
    assert asyncio.all_tasks() == before


async def test_invariant_26_failing_previews_do_not_change_the_answer(bench):
    bench.canon.faults.fail_next("write_node", Fault.ambiguous(), times=50)
    turn = await bench.open()
    for frame in ("The", "The answer", "The answer is 42."):
        await bench.stream(turn, frame)
        await bench.clock.advance(0.3)
    await bench.complete(turn)
    assert bench.finals == ["The answer is 42."]


async def test_field_03_a_finalize_that_fails_to_show_never_posts_the_answer_again(bench):
    turn = await bench.open()
    bubble = await bench.say(turn, "The whole answer.", expect_edits=True)
    await bench.clock.advance(0.3)
    bench.canon.faults.fail_next("write_node", Fault.ambiguous(503), times=50)
    for _ in range(2):
        await bench.say(turn, "The whole answer.", finalize=True, bubble=bubble)
        await bench.clock.advance(0.3)
    assert bench.finals == []
    await bench.complete(turn)
    assert bench.finals == ["The whole answer."]


async def test_a_recovered_turn_has_no_message_id_and_invents_none(bench):
    turn = await bench.open(message_id=None)
    await bench.say(turn, "Going on.", notify=True)
    await bench.complete(turn)
    (final,) = bench.canon.messages
    assert final.reply_to is None
    assert {publication.active_message_ids for publication in bench.canon.turns} == {()}


async def test_a_synthetic_trigger_is_neither_an_active_message_nor_a_reply_target(bench):
    turn = await bench.open(message_id="canon-control:interrupt:1")
    await bench.say(turn, "Stopped.", notify=True, reply_to="canon-control:interrupt:1")
    await bench.complete(turn)
    (final,) = bench.canon.messages
    assert final.reply_to is None
    assert bench.canon.turns[0].active_message_ids == ()


async def test_h34_callers_metadata_reaches_the_final_and_later_values_win(bench):
    turn = await bench.open()
    await bench.say(turn, "One", notify=True, metadata={"a": 1, "b": 1})
    await bench.say(turn, "Two", notify=True, metadata={"b": 2}, options={"messageId": "forged"})
    await bench.complete(turn)
    (final,) = bench.canon.messages
    assert {key: final.metadata[key] for key in ("a", "b")} == {"a": 1, "b": 2}
    assert final.message_id.startswith("hermes-final-")


async def test_h12_an_answer_cut_short_by_a_disconnect_goes_on_with_the_next_turn(bench):
    turn = await bench.open()
    texts = [letter * 3600 for letter in "abc"]
    await bench.say(turn, "\n\n".join(texts), notify=True)
    first, second = (bench.canon.faults.hold_next("send") for _ in range(2))
    first.set()
    ending = asyncio.ensure_future(bench.coordinator.complete(turn, "success"))
    await settle()
    assert bench.texts == texts[:1]
    await bench.coordinator.close()
    second.set()
    await asyncio.gather(ending, return_exceptions=True)
    assert bench.texts == texts[:1]
    assert "clear_node" not in bench.canon.operations()
    await bench.open(message_id="msg_78")
    await bench.clock.advance(PAUSES[0] + 2)
    assert bench.texts == texts
    assert len(bench.finals) == 1


async def test_no_request_of_a_turn_is_made_in_a_context_that_names_it(bench, monkeypatch):
    """A pooled connection keeps the context that opened it, and would keep a finished turn alive."""
    seen = []
    enter = bench.canon.faults.enter

    async def watched(operation):
        seen.append((operation, current_turn.get()))
        return await enter(operation)

    monkeypatch.setattr(bench.canon.faults, "enter", watched)
    turn = await bench.open()
    token = current_turn.set(turn)
    await bench.coordinator.typing(turn, turn.conversation_id, True)
    await bench.stream(turn, "Half", "Half an answer")
    await bench.clock.advance(11)
    await bench.complete(turn)
    await bench.clock.advance(2)
    current_turn.reset(token)
    assert {"send", "write_node", "clear_node", "publish_turn", "set_typing"} <= {operation for operation, _ in seen}
    assert {named for _, named in seen} == {None}
