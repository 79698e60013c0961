"""Consuming an answer under a lease (interactions §9.5): every server outcome, races, foreign and unbound entries."""

from __future__ import annotations

import asyncio

import pytest
from canon_hermes_plugin.domain.approvals import events as ev
from canon_hermes_plugin.domain.approvals.ownership import LedgerIdentity, ownership
from canon_hermes_plugin.ports.errors import CanonApiError, CanonTransportError, LedgerError, MalformedResponseError

from .rig import Process, process, refused

NOW = 1_900_000_000_000
ALLOW = {"status": "allow", "respondedBy": "u_77"}


async def pending(p: Process, **fields) -> str:
    result = await p.ask()
    approval_id = result["approvalId"]
    if fields:
        entry = await p.find(approval_id)
        assert entry is not None
        await p.put({**entry, **fields})
    return approval_id


async def consume(p: Process, approval_id: str, *, wake: bool = False):
    return await p.desk.consume(p.canon, approval_id, wake=wake)


@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_i4_i5_a_canonical_decision_of_the_asked_person_is_stored(decision):
    p = process()
    approval_id = await pending(p)
    p.canon.consume_replies = [{"status": decision, "respondedBy": " u_77 "}]
    result = await consume(p, approval_id)
    assert result == {
        "status": "resolved",
        "decision": decision,
        "approvalId": approval_id,
        "conversationId": "cv_9",
        "respondedBy": "u_77",
    }
    entry = await p.find(approval_id)
    assert entry is not None
    assert (entry["decision"], entry["respondedBy"], entry["resolvedAt"]) == (decision, "u_77", NOW)
    assert "wakeStatus" not in entry
    assert p.canon.consumes == [
        {"interactionKind": "approval", "conversationId": "cv_9", "approvalId": approval_id},
    ]


ODD = [
    ({"status": "allow"}, "orphaned", "unknown"),
    ({"status": "allow", "respondedBy": "  "}, "orphaned", "unknown"),
    ({"status": "deny", "respondedBy": 5}, "orphaned", "unknown"),
    ({"status": "allow", "respondedBy": "stranger"}, "orphaned", "unknown"),
    ({"status": "timeout"}, "expired", "expired"),
    ({"status": "pending"}, "pending", "pending"),
    ({}, "pending", "unknown"),
    ({"status": None}, "pending", "unknown"),
    ({"status": ["allow"]}, "pending", "unknown"),
    ({"status": "ALLOW", "respondedBy": "u_77"}, "pending", "unknown"),
    ({"status": "approved", "decision": "allow", "respondedBy": "u_77"}, "pending", "unknown"),
]


@pytest.mark.parametrize(("answer", "status", "told"), ODD, ids=str)
async def test_i7_i8_nothing_but_an_attributed_decision_is_one(answer, status, told):
    p = process()
    approval_id = await pending(p)
    p.canon.consume_replies = [answer]
    result = await consume(p, approval_id)
    entry = await p.find(approval_id)
    assert entry is not None
    assert (entry["status"], result["status"]) == (status, told)
    assert "decision" not in entry
    assert "decision" not in result
    mismatch = answer.get("status") in ("allow", "deny") and status == "orphaned"
    assert entry.get("identityMismatch", False) is mismatch
    assert bool(entry["reconcilePending"]) is (status == "pending" and told == "unknown")


@pytest.mark.parametrize("status", [404, 409])
async def test_i25_gone_is_unknown_and_never_a_denial(status):
    p = process()
    approval_id = await pending(p)
    p.canon.consume_replies = [refused(status)]
    result = await consume(p, approval_id)
    assert result["status"] == "unknown"
    assert "denial" in result["note"]
    entry = await p.find(approval_id)
    assert entry is not None
    assert entry["status"] == "orphaned"


FAILURES = [
    *(refused(status) for status in (400, 401, 403, 408, 429, 500)),
    CanonTransportError("x", executed=True),
    MalformedResponseError("x"),
    KeyError("bug"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=str)
async def test_i25_every_other_failure_leaves_it_pending_for_reconciliation(failure):
    p = process()
    approval_id = await pending(p)
    p.canon.consume_replies = [failure]
    with pytest.raises(type(failure)):
        await consume(p, approval_id)
    entry = await p.find(approval_id)
    assert entry is not None
    assert (entry["status"], entry["reconcilePending"]) == ("pending", True)


@pytest.mark.parametrize(("sent", "kept"), [(NOW + 7, NOW + 7), ("soon", None), (True, None), (10**400, None)])
async def test_a_pending_answer_brings_its_expiry_when_that_is_a_finite_number(sent, kept):
    p = process()
    approval_id = await pending(p)
    before = await p.find(approval_id)
    assert before is not None
    p.canon.consume_replies = [{"status": "pending", "expiresAt": sent}]
    result = await consume(p, approval_id)
    after = await p.find(approval_id)
    assert after is not None
    assert result["expiresAt"] == after["expiresAt"] == (kept or before["expiresAt"])


async def test_d8_a_stored_decision_is_answered_without_the_network():
    p = process()
    approval_id = await pending(p)
    p.canon.consume_replies = [ALLOW]
    first = await consume(p, approval_id)
    p.canon.consume_replies = [AssertionError("no network")]
    assert await consume(p, approval_id) == first


async def test_an_absent_id_is_unknown_without_the_network():
    p = process()
    assert (await consume(p, "hermes-none"))["status"] == "unknown"
    assert p.canon.consumes == []


async def test_i9_i12_overlapping_checks_ask_once():
    p = process()
    approval_id = await pending(p)
    p.canon.consume_replies, p.canon.gate = [ALLOW], asyncio.Event()
    first = asyncio.create_task(consume(p, approval_id))
    await asyncio.sleep(0.01)
    second = await consume(p, approval_id)
    assert (second["status"], second["leaseKind"]) == ("pending", "consume")
    assert second["note"]
    p.canon.gate.set()
    assert (await first)["status"] == "resolved"
    assert p.canon.most_in_flight == 1


async def test_i10_a_live_creation_is_respected_and_an_expired_one_taken_over():
    p = process()
    p.canon.create_replies = [refused(503)]
    with pytest.raises(CanonApiError):
        await p.ask()
    approval_id = p.canon.creates[0]["approvalId"]
    other = Process(p.ledger, p.clock, p.canon, "p1")  # the very same process id proves nothing
    refused_result = await consume(other, approval_id)
    assert (refused_result["status"], refused_result["leaseKind"]) == ("pending", "creation")
    await p.clock.advance(300)
    p.canon.consume_replies = [ALLOW]
    assert (await consume(other, approval_id))["status"] == "resolved"


async def test_i11_d21_the_stale_holder_changes_nothing_and_is_told_pending_while_its_successor_asks():
    p = process()
    approval_id = await pending(p)

    async def lose_the_lease(_):
        await p.clock.advance(61)
        await p.desk.happen(approval_id, ev.Claim(p.clock.now_ms(), ev.Lease("other", p.clock.now_ms() + 60_000, "p2")))
        return ALLOW

    p.canon.consume_interaction = lose_the_lease
    result = await consume(p, approval_id)
    assert (result["status"], result["leaseKind"]) == ("pending", "consume")
    entry = await p.find(approval_id)
    assert entry is not None
    assert (entry["status"], entry["consumeClaimId"]) == ("consuming", "other")


async def test_i33_cancelling_a_check_gives_the_lease_back():
    p = process()
    approval_id = await pending(p)
    p.canon.gate = asyncio.Event()
    task = asyncio.create_task(consume(p, approval_id))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    entry = await p.find(approval_id)
    assert entry is not None
    assert (entry["status"], entry["reconcilePending"]) == ("pending", True)


async def test_k11_a_ledger_that_breaks_meanwhile_is_the_ledger_error():
    p = process()
    approval_id = await pending(p)

    def break_it(_):
        p.ledger.document = b"broken"
        return ALLOW

    p.canon.consume_replies = [break_it]
    with pytest.raises(LedgerError):
        await consume(p, approval_id)
    assert p.ledger.document == b"broken"


# --- several agents, one file (D5) ----------------------------------------------------------------------------------

OWNERS = [
    ({"agentId": "ag_5"}, "own"),
    ({"agentId": "ag_6"}, "foreign"),
    ({"agentId": "ag_6", "keyFingerprint": "f" * 16}, "foreign"),
    ({"keyFingerprint": "f" * 16}, "own"),
    ({"keyFingerprint": "0" * 16}, "unbound"),
    ({}, "unbound"),
]


@pytest.mark.parametrize(("entry", "expected"), OWNERS, ids=str)
def test_d5_whose_entry_it_is(entry, expected):
    assert ownership(entry, LedgerIdentity("ag_5", "f" * 16)) == expected


def test_d5_without_a_known_agent_the_key_decides():
    assert ownership({"agentId": "ag_6", "keyFingerprint": "f" * 16}, LedgerIdentity(None, "f" * 16)) == "own"
    assert ownership({"agentId": "ag_6"}, LedgerIdentity(None, "f" * 16)) == "unbound"


async def test_i35_foreign_entries_are_never_claimed_or_marked():
    p = process()
    approval_id = await pending(p, agentId="ag_6")
    before = p.ledger.document
    result = await consume(p, approval_id)
    assert result["status"] == "unknown"
    await p.desk.happen(approval_id, ev.ReceiptSeen(NOW))
    await p.desk.happen(approval_id, ev.ClaimWake(NOW, p.desk.lease(5)))
    assert p.ledger.document == before
    assert p.canon.consumes == []


@pytest.mark.parametrize(("shared", "status"), [(True, "pending"), (False, "orphaned")])
async def test_d5_a_404_on_an_unbound_entry_proves_nothing_when_profiles_share_the_file(shared, status):
    p = process()
    approval_id = await pending(p)
    entry = await p.find(approval_id)
    assert entry is not None
    await p.put({key: value for key, value in entry.items() if key not in {"agentId", "keyFingerprint"}})
    p.desk.identity = LedgerIdentity("ag_5", "f" * 16, shared=shared)
    p.canon.consume_replies = [refused(404)]
    assert (await consume(p, approval_id))["status"] == "unknown"
    after = await p.find(approval_id)
    assert after is not None
    assert (after["status"], after["reconcilePending"]) == (status, False)
