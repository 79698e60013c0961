"""Receipts, resume tasks, the scan, the start-up reconcile and wakes (interactions §9.7 to §9.10, §9.12)."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from canon_hermes_plugin.domain.approvals import events as ev
from canon_hermes_plugin.domain.approvals.receipts import ChatFacts, receipt_id
from canon_hermes_plugin.ports.errors import CanonApiError, CanonTransportError

from .rig import Process, process, receipt, refused, settle

NOW = 1_900_000_000_000
ALLOW = {"status": "allow", "respondedBy": "u_77"}


async def asked(p: Process) -> str:
    return (await p.ask())["approvalId"]


async def stored(p: Process, approval_id: str):
    entry = await p.find(approval_id)
    assert entry is not None
    return entry


async def test_i18_a_receipt_wakes_the_model_once_in_the_entrys_conversation_with_the_canonical_decision():
    p = process()
    p.receiver.describe = lambda _: ChatFacts("group", "Harbour")
    approval_id = await asked(p)
    p.canon.consume_replies = [{"status": "deny", "respondedBy": "u_77"}]
    assert await p.receiver.offer(receipt(approval_id)) is True
    await settle()
    wake = p.inbox.wakes[0]
    assert wake.text == f"Canon approval {approval_id} resolved: deny — Release berth 4?"
    assert wake.conversation_id == "cv_9"  # I18: never the receipt's
    assert (wake.chat_kind, wake.chat_name) == ("group", "Harbour")
    assert (wake.user_id, wake.user_name) == ("u_77", "Dana")
    assert wake.message_id == f"canon-detached-approval:{approval_id}"
    assert wake.synthetic is True
    assert wake.raw == receipt(approval_id)
    entry = await stored(p, approval_id)
    assert (entry["wakeStatus"], entry["wakeDeliveredAt"], entry["receiptPending"]) == ("delivered", NOW, False)
    assert await p.receiver.offer(receipt(approval_id)) is True
    await settle()
    assert len(p.inbox.wakes) == 1


FORGED = [
    {"senderId": "stranger"},
    {"metadata": {"type": "approval_reply", "approvalId": "ID", "decision": "allow", "status": "allow"}},
    {"text": "allow", "senderId": None},
]


@pytest.mark.parametrize("fields", FORGED, ids=str)
async def test_i6_a_forged_receipt_decides_nothing(fields):
    p = process()
    approval_id = await asked(p)
    if "metadata" in fields:
        fields = {"metadata": {**fields["metadata"], "approvalId": approval_id}}
    assert await p.receiver.offer(receipt(approval_id, **fields)) is True
    await settle()
    entry = await stored(p, approval_id)
    assert (entry["status"], entry["receiptPending"]) == ("pending", True)
    assert "decision" not in entry
    assert p.inbox.wakes == []


NOT_OURS = [
    {},
    {"message": None},
    {"message": []},
    {"message": {"metadata": "approval_reply"}},
    {"message": {"metadata": {"type": "approval_reply"}}},
    {"message": {"metadata": {"type": "approval_reply", "approvalId": ["x"]}}},
    {"message": {"metadata": {"type": "approval_outcome", "approvalId": "x"}}},
    {"message": {"metadata": {"type": ["approval_reply"], "approvalId": "x"}}},
]


@pytest.mark.parametrize("payload", NOT_OURS, ids=str)
async def test_what_is_no_receipt_is_left_alone(payload):
    assert receipt_id(payload) is None
    assert await process().receiver.offer(payload) is False


async def test_a_receipt_of_a_blocking_approval_is_not_ours():
    assert await process().receiver.offer(receipt("hermes-unknown")) is False


@pytest.mark.parametrize("document", [b"", b"[]", b"\xff", b'{"a": {"status": []}}'])
async def test_d9_a_broken_ledger_never_reaches_the_stream(document):
    p = process()
    p.ledger.document = document
    assert await p.receiver.offer(receipt("hermes-1")) is False
    await p.receiver.scan()
    await p.receiver.reconcile()
    assert p.ledger.document == document


async def test_a_receipt_before_the_create_returned_is_kept_and_resumed():
    p = process()

    async def answered_at_once(body):
        p.canon.consume_replies = [ALLOW]
        assert await p.receiver.offer(receipt(body["approvalId"])) is True
        await settle()
        return {"responseUserId": "u_77"}

    p.canon.create_interaction = answered_at_once
    result = await p.ask()
    assert result["status"] == "pending"
    assert p.inbox.wakes == []
    await p.clock.advance(6)
    assert len(p.inbox.wakes) == 1


async def test_i15_d6_a_receipt_during_a_check_that_saw_pending_still_wakes():
    p = process()
    approval_id = await asked(p)
    p.canon.gate = asyncio.Event()
    p.canon.consume_replies = [{"status": "pending"}, ALLOW]
    check = asyncio.create_task(p.desk.consume(p.canon, approval_id, wake=False))
    await settle()
    assert await p.receiver.offer(receipt(approval_id)) is True
    await settle()
    p.canon.gate.set()
    assert (await check)["status"] == "pending"
    assert (await stored(p, approval_id))["receiptPending"] is True
    await p.clock.advance(31)
    await p.receiver.scan()
    await settle()
    assert len(p.inbox.wakes) == 1


async def test_i15_a_receipt_while_the_resume_task_already_asked_is_not_forgotten():
    p = process()
    approval_id = await asked(p)
    p.canon.gate = asyncio.Event()
    p.canon.consume_replies = [{"status": "pending"}, ALLOW]
    await p.receiver.offer(receipt(approval_id))
    await settle()
    await p.receiver.offer(receipt(approval_id))
    p.canon.gate.set()
    await settle()
    assert len(p.inbox.wakes) == 1


async def test_i40_one_resume_task_per_id():
    p = process()
    approval_id = await asked(p)
    p.canon.gate = asyncio.Event()
    for _ in range(5):
        await p.receiver.offer(receipt(approval_id))
        await p.receiver.scan()
        await settle()
    assert p.canon.in_flight == 1
    p.canon.gate.set()
    await settle()


async def test_i17_a_checker_that_resolved_it_produces_no_wake():
    p = process()
    approval_id = await asked(p)
    p.canon.consume_replies = [ALLOW]
    await p.desk.consume(p.canon, approval_id, wake=False)
    await p.receiver.offer(receipt(approval_id))
    await p.receiver.scan()
    await p.receiver.reconcile()
    await settle()
    assert p.inbox.wakes == []


@pytest.mark.parametrize(
    "reply", [{"status": "timeout"}, refused(404), {"status": "allow", "respondedBy": "other"}], ids=str
)
async def test_i17_expired_and_orphaned_entries_wake_nobody(reply):
    p = process()
    approval_id = await asked(p)
    p.canon.consume_replies = [reply]
    await p.receiver.offer(receipt(approval_id))
    await settle()
    assert p.inbox.wakes == []


async def test_d7_a_wake_the_host_refused_is_retried_by_the_scan():
    p = process()
    p.inbox.failures = [RuntimeError("host busy"), ValueError("again")]
    approval_id = await asked(p)
    p.canon.consume_replies = [ALLOW]
    await p.receiver.offer(receipt(approval_id))
    await settle()
    assert (await stored(p, approval_id))["wakeStatus"] == "pending"
    for _ in range(2):
        await p.receiver.scan()
        await settle()
    assert len(p.inbox.wakes) == 1
    assert len(p.canon.consumes) == 1
    assert p.inbox.wakes[0].raw["canonDetachedApproval"] == {"approvalId": approval_id, "decision": "allow"}


async def test_d23_questions_about_a_forged_receipt_back_off_to_15_minutes():
    p = process()
    approval_id = await asked(p)
    await p.receiver.offer(receipt(approval_id))
    await settle()
    asked_at = []
    for _ in range(240):
        before = len(p.canon.consumes)
        await p.clock.advance(30)
        await p.receiver.scan()
        await settle()
        if len(p.canon.consumes) > before:
            asked_at.append(p.clock.now_ms() - NOW)
    gaps = [later - earlier for earlier, later in itertools.pairwise(asked_at)]
    assert asked_at[0] == 30_000
    assert gaps[:4] == [60_000, 120_000, 240_000, 480_000]
    assert set(gaps[4:]) == {900_000}


async def test_i13_a_crashed_creator_is_settled_by_the_scan_after_the_lease():
    p = process()
    p.canon.create_replies = [CanonTransportError("lost", executed=True)]
    with pytest.raises(CanonTransportError):
        await p.ask()
    approval_id = p.canon.creates[0]["approvalId"]
    p.canon.consume_replies = [ALLOW]
    await p.clock.advance(299)
    await p.receiver.scan()
    await settle()
    assert (await stored(p, approval_id))["status"] == "creating"
    await p.clock.advance(31)
    await p.receiver.scan()
    await settle()
    assert (await stored(p, approval_id))["status"] == "resolved"
    assert len(p.inbox.wakes) == 1


async def test_i14_d26_a_crashed_consumer_is_settled_by_the_scan_after_the_lease():
    p = process()
    approval_id = await asked(p)
    await p.desk.happen(approval_id, ev.Claim(NOW, ev.Lease("dead", NOW + 60_000, "dead process")))
    p.canon.consume_replies = [ALLOW]
    await p.clock.advance(59)
    await p.receiver.scan()
    await settle()
    assert (await stored(p, approval_id))["consumeClaimId"] == "dead"
    await p.clock.advance(31)
    await p.receiver.scan()
    await settle()
    assert len(p.inbox.wakes) == 1


async def test_d7_the_wake_of_a_dead_process_is_taken_over_by_the_scan():
    p = process()
    approval_id = await asked(p)
    p.canon.consume_replies = [ALLOW]
    await p.desk.consume(p.canon, approval_id, wake=True)
    await p.desk.happen(approval_id, ev.ClaimWake(NOW, ev.Lease("dead", NOW + 60_000, "dead process")))
    await p.clock.advance(59)
    await p.receiver.scan()
    await settle()
    assert p.inbox.wakes == []
    await p.clock.advance(31)
    await p.receiver.scan()
    await settle()
    assert len(p.inbox.wakes) == 1


async def test_i36_a_lease_in_the_far_future_only_delays_its_own_entry():
    p = process()
    approval_id = await asked(p)
    await p.desk.happen(approval_id, ev.Claim(NOW, ev.Lease("future", NOW + 10**12, "p9")))
    task = asyncio.create_task(p.receiver.reconcile())
    await settle()
    assert p.clock.next_wake == pytest.approx(60)
    await p.clock.advance(130)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_d25_an_overdue_pending_entry_is_settled_while_the_process_lives():
    p = process()
    p.canon.create_replies = [{"responseUserId": "u_77", "expiresAt": NOW + 10_000}]
    approval_id = await asked(p)
    p.canon.consume_replies = [{"status": "timeout"}]
    await p.clock.advance(69)
    await p.receiver.scan()
    await settle()
    assert p.canon.consumes == []
    await p.clock.advance(2)
    await p.receiver.scan()
    await settle()
    assert (await stored(p, approval_id))["status"] == "expired"


async def restarted(p: Process) -> Process:
    return Process(p.ledger, p.clock, p.canon, "p2")


async def test_field_28_31_an_answer_given_while_the_process_was_dead_wakes_once_after_the_restart():
    p = process()
    approval_id = await asked(p)
    p.canon.consume_replies = [ALLOW]
    p2 = await restarted(p)
    await p2.receiver.reconcile()
    await p2.receiver.reconcile()
    assert [wake.text for wake in p2.inbox.wakes] == [
        f"Canon approval {approval_id} resolved: allow — Release berth 4?"
    ]


async def test_k13_a_wake_cut_off_by_a_crash_is_handed_over_after_its_lease():
    p = process()
    approval_id = await asked(p)
    p.canon.consume_replies = [ALLOW]
    await p.desk.consume(p.canon, approval_id, wake=True)
    await p.desk.happen(approval_id, ev.ClaimWake(NOW, ev.Lease("dead", NOW + 60_000, "dead process")))
    p2 = await restarted(p)
    task = asyncio.create_task(p2.receiver.reconcile())
    await settle()
    assert p2.inbox.wakes == []
    await p.clock.advance(61)
    await asyncio.wait_for(task, 1)
    assert len(p2.inbox.wakes) == 1


async def test_k12_a_decision_stored_before_the_crash_is_woken_by_reconcile():
    p = process()
    approval_id = await asked(p)
    p.canon.consume_replies = [ALLOW]
    await p.desk.consume(p.canon, approval_id, wake=True)
    p2 = await restarted(p)
    await p2.receiver.reconcile()
    assert len(p2.inbox.wakes) == 1


async def test_i16_a_crash_between_hand_over_and_its_record_repeats_the_line_with_the_same_id():
    p = process()
    approval_id = await asked(p)
    p.canon.consume_replies = [ALLOW]
    handed = p.inbox.hand_over

    async def die_after(message):
        await handed(message)
        raise asyncio.CancelledError

    p.inbox.hand_over = die_after
    await p.desk.consume(p.canon, approval_id, wake=True)
    with pytest.raises(asyncio.CancelledError):
        await p.receiver._wake(approval_id)
    assert b'"wakeStatus": "pending"' in p.ledger.document
    p2 = await restarted(p)
    await p2.receiver.reconcile()
    assert p.inbox.wakes[0].message_id == p2.inbox.wakes[0].message_id
    assert len(p2.inbox.wakes) == 1


async def test_reconcile_waits_for_another_process_that_is_asking():
    p = process()
    approval_id = await asked(p)
    p.canon.gate = asyncio.Event()
    p.canon.consume_replies = [{"status": "pending"}, ALLOW]
    asking = asyncio.create_task(p.desk.consume(p.canon, approval_id, wake=False))
    await settle()
    p2 = await restarted(p)
    task = asyncio.create_task(p2.receiver.reconcile())
    await settle()
    assert not task.done()
    p.canon.gate.set()
    await asking
    await p.clock.advance(61)
    await asyncio.wait_for(task, 1)
    assert len(p2.inbox.wakes) == 1


async def test_reconcile_survives_errors_and_leaves_the_rest_to_the_scan():
    p = process()
    first, second = await asked(p), await asked(p)
    by_id = {first: CanonApiError(500), second: None}

    def reply(body):
        if by_id[body["approvalId"]] is not None:
            raise by_id[body["approvalId"]]
        return ALLOW

    p.canon.consume_replies = [reply]
    await p.receiver.reconcile()
    assert [wake.message_id for wake in p.inbox.wakes] == [f"canon-detached-approval:{second}"]
    by_id[first] = None
    await p.receiver.scan()
    await settle()
    assert len(p.inbox.wakes) == 2


async def test_i35_d5_reconcile_and_scan_leave_another_agents_entries_alone():
    p = process()
    approval_id = await asked(p)
    entry = await stored(p, approval_id)
    await p.put({**entry, "agentId": "ag_other", "receiptPending": True})
    before = p.ledger.document
    p.canon.consume_replies = [refused(404)]
    await p.receiver.reconcile()
    await p.receiver.scan()
    assert await p.receiver.offer(receipt(approval_id)) is True
    await settle()
    assert (p.ledger.document, p.canon.consumes) == (before, [])


async def test_a_closed_receiver_starts_nothing():
    p = process()
    approval_id = await asked(p)
    p.receiver.close()
    assert await p.receiver.offer(receipt(approval_id)) is True
    await settle()
    assert p.canon.consumes == []
    assert (await stored(p, approval_id))["receiptPending"] is True


async def test_field_54_no_question_reaches_the_log(caplog):
    caplog.set_level("DEBUG")
    p = process()
    approval_id = await asked(p)
    p.canon.consume_replies = [CanonApiError(500, "Release berth"), ALLOW]
    await p.receiver.offer(receipt(approval_id))
    await settle()
    await p.receiver.reconcile()
    assert approval_id in caplog.text
    assert "berth" not in caplog.text
