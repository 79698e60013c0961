"""Texts outside any turn, and beside one (turns §10; H3, H8, H9, H11; field faults 1, 33, 88, 90)."""

import asyncio

import pytest
from canon_hermes_plugin.domain.turns.model import HostMedia, HostText
from canon_hermes_plugin.domain.turns.settling import PAUSES
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import settle


async def test_h8_a_notification_while_a_turn_runs_is_delivered_at_once_without_its_turn(bench):
    turn = await bench.open()
    await bench.say(None, "Backup finished.")
    (message,) = bench.canon.messages
    assert message.text == "Backup finished."
    assert "turnId" not in message.metadata
    await bench.say(turn, "The answer.", notify=True)
    await bench.complete(turn)
    assert bench.finals == ["Backup finished.", "The answer."]


async def test_h9_a_command_reply_between_the_parts_of_an_answer_completes_nothing(bench):
    turn = await bench.open()
    await bench.say(turn, "x" * 9000, notify=True)
    first, second = (bench.canon.faults.hold_next("send") for _ in range(2))
    ending = asyncio.ensure_future(bench.coordinator.complete(turn, "success"))
    first.set()
    await settle()
    await bench.say(None, "No active task to stop.", notify=True)
    second.set()
    await ending
    semantics = [message.metadata["turnSemantics"] for message in bench.canon.messages]
    assert semantics == ["progress"] * 3 + ["turn_complete"]
    assert bench.canon.messages[1].text == "No active task to stop."
    await bench.say(None, "Afterwards.", notify=True)
    assert bench.finals[-1] == "Afterwards."


async def test_h8_a_scheduled_text_names_its_job(bench):
    await bench.say(None, "Daily report", job_id="job-1")
    (message,) = bench.canon.messages
    assert message.metadata == {"hermes": {"job_id": "job-1"}, "turnSemantics": "turn_complete", "turnComplete": True}
    assert message.message_id


async def test_h9_a_command_reply_during_a_turn_is_progress_that_wakes_nobody(bench):
    turn = await bench.open()
    await bench.stream(turn, "Real", "Real answer.")
    await bench.say(None, "Status: 1 running", notify=True)
    (reply,) = bench.canon.messages
    assert reply.metadata == {"turnSemantics": "progress", "replyBehavior": "suppress_auto_reply"}
    await bench.complete(turn)
    assert bench.finals == ["Real answer."]


async def test_a_command_reply_in_an_idle_conversation_is_an_ordinary_message(bench):
    await bench.say(None, "Status: idle", notify=True, reply_to="msg_5")
    (reply,) = bench.canon.messages
    assert reply.metadata["turnSemantics"] == "turn_complete"
    assert reply.reply_to == "msg_5"


async def test_chatter_of_a_running_turn_is_acknowledged_with_fresh_ids_and_never_stored(bench):
    turn = await bench.open()
    first, second = await bench.say(turn, "⚙️ tool…"), await bench.say(turn, "still working")
    assert first != second
    await bench.say(turn, "⚙️ tool… done", finalize=True, bubble=first)
    await bench.complete(turn)
    await bench.say(turn, "⚙️ tool… really done", finalize=True, bubble=first)
    await bench.say(None, "⚙️ tool… really done", finalize=True, bubble=second)
    await bench.clock.advance(1)
    assert bench.texts == []


async def test_h3_the_unmarked_first_answer_of_two_is_kept(bench):
    turn = await bench.open()
    await bench.say(turn, "Let me look.")
    bench.coordinator.answer_confirmed(turn, "First answer.")
    await bench.say(turn, "First answer.")
    await bench.complete(turn)
    assert bench.finals == ["First answer."]


async def test_h11_an_ambiguous_notification_never_blocks_the_next_one(bench):
    bench.canon.faults.fail_next("send", Fault.ambiguous())
    await bench.say(None, "One", notify=True)
    await bench.say(None, "Two", notify=True)
    assert bench.finals == ["Two"]
    await bench.clock.advance(PAUSES[0])
    assert sorted(bench.finals) == ["One", "Two"]


async def test_field_33_88_an_unknown_delivery_is_settled_here_and_not_said_again(bench):
    bench.canon.faults.fail_next("send", Fault.lost_response())
    ack = await bench.coordinator.text(None, HostText("conv_81", "Report", job_id="job"))
    assert ack.ok
    assert ack.facts == {"settling": True}
    await bench.clock.advance(PAUSES[0])
    assert bench.finals == ["Report"]


@pytest.mark.parametrize(("fault", "retryable"), [(Fault.definitive(400), False), (Fault.unreachable(), True)])
async def test_a_provably_failed_notification_is_reported_as_failed(bench, fault, retryable):
    bench.canon.faults.fail_next("send", fault)
    ack = await bench.coordinator.text(None, HostText("conv_81", "Report"))
    assert (ack.ok, ack.retryable) == (False, retryable)
    assert ack.error


@pytest.mark.parametrize("fault", [Fault.unreachable(), Fault.definitive(503)])
async def test_field_9_a_notification_cut_short_by_an_outage_goes_on_behind_the_caller(bench, fault):
    first, second = (bench.canon.faults.hold_next("send") for _ in range(2))
    saying = asyncio.ensure_future(bench.coordinator.text(None, HostText("conv_81", "x" * 9000, job_id="job")))
    first.set()
    await settle()
    bench.canon.faults.fail_next("send", fault)
    second.set()
    ack = await saying
    assert ack.ok
    assert ack.facts == {"settling": True}
    await bench.clock.advance(PAUSES[0])
    assert "".join(bench.texts) == "x" * 9000
    assert len(bench.finals) == 1


async def test_field_90_every_durable_message_has_an_id_of_its_own(bench):
    for _ in range(3):
        await bench.say(None, "Same text")
    ids = [message.message_id for message in bench.canon.messages]
    assert len(set(ids)) == 3
    assert all(identifier.startswith("hermes-final-") for identifier in ids)


async def test_h11_a_preview_without_an_owner_opens_no_turn_and_its_double_finalize_counts_once(bench):
    draft = await bench.say(None, "Rep ▉", expect_edits=True)
    await bench.say(None, "Report ▉", finalize=False, bubble=draft)
    assert bench.texts == []
    first = await bench.say(None, "Report", finalize=True, bubble=draft)
    second = await bench.say(None, "Report", finalize=True, bubble=draft)
    assert first == second
    assert bench.finals == ["Report"]
    assert bench.states == []


async def test_a_long_notification_is_split_like_an_answer(bench):
    await bench.say(None, "x" * 9000, job_id="job")
    assert [m.metadata["turnSemantics"] for m in bench.canon.messages] == ["progress", "progress", "turn_complete"]


async def test_blank_texts_are_acknowledged_and_not_stored(bench):
    assert await bench.say(None, " \n ")
    assert bench.texts == []


async def test_a_text_that_cannot_be_handled_is_a_failure_and_not_an_exception(bench, monkeypatch):
    async def broken(*_args):
        raise ZeroDivisionError

    monkeypatch.setattr(type(bench.canon), "send", broken)
    ack = await bench.coordinator.text(None, HostText("conv_81", "text"))
    assert not ack.ok
    assert not ack.retryable


async def test_h39_a_turn_of_another_coordinator_owns_nothing_here(bench, other_bench):
    stranger = await other_bench.open()
    await bench.say(stranger, "Its late answer.", notify=True)
    assert bench.finals == ["Its late answer."]


@pytest.mark.parametrize("silenced", [False, True])
async def test_h39_a_turn_owns_nothing_that_goes_to_another_conversation(bench, silenced):
    turn = await bench.open("conv_a")
    if silenced:
        bench.coordinator.silence(turn)
    await bench.coordinator.text(turn, HostText("conv_b", "For somebody else.", notify=True))
    await bench.coordinator.text(turn, HostText("conv_b", "By a tool.", foreign_loop=True))
    await bench.coordinator.media(turn, HostMedia("conv_b", b"x", "image/png", "image"))
    await bench.complete(turn)
    assert [(message.conversation_id, message.text) for message in bench.canon.messages] == [
        ("conv_b", "For somebody else."),
        ("conv_b", "By a tool."),
        ("conv_b", ""),
    ]


async def test_h39_a_bubble_names_its_turn_when_the_context_is_missing(bench):
    turn = await bench.open()
    bubble = await bench.say(turn, "The ans ▉", expect_edits=True)
    await bench.say(None, "The answer.", finalize=True, bubble=bubble)
    await bench.complete(turn)
    assert bench.finals == ["The answer."]


async def test_invariant_17_without_evidence_no_open_turn_is_chosen(bench):
    turns = [await bench.open(kind="group", session_key=key) for key in "ab"]
    await bench.say(None, "Who says this?", notify=True)
    await bench.say(None, "And this?")
    for turn in turns:
        await bench.complete(turn)
    assert bench.texts == ["Who says this?", "And this?"]
    assert all("turnId" not in message.metadata for message in bench.canon.messages)
