"""The life of a detached approval as a table: T1 to T21 of interactions §9.4.

Decides, for every state and event, what becomes of the entry and what the actor is told. :data:`TABLE` is data; exactly
one row answers each (state, event) pair. It knows no clock, no disk and no server: events bring everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from canon_hermes_plugin.domain.approvals import events as ev
from canon_hermes_plugin.domain.approvals.ledger import is_prunable, text_of
from canon_hermes_plugin.ports.approvals import Entry

State = Literal[
    "absent",
    "creating",
    "pending",
    "consuming",
    "resolved",
    "resolved/pending",
    "resolved/delivering",
    "resolved/delivered",
    "expired",
    "orphaned",
]
Outcome = Literal[
    "reserved",
    "exists",
    "activated",
    "abandoned",
    "lost",
    "failed",
    "noted",
    "ignored",
    "claimed",
    "refused",
    "terminal",
    "absent",
    "finished",
    "stale",
    "pruned",
    "kept",
]

STATES: Final[tuple[State, ...]] = (
    "absent",
    "creating",
    "pending",
    "consuming",
    "resolved",
    "resolved/pending",
    "resolved/delivering",
    "resolved/delivered",
    "expired",
    "orphaned",
)
_ANY: Final = frozenset(STATES)
_PRESENT: Final = _ANY - {"absent"}
_WAKING: Final[frozenset[State]] = frozenset({"resolved/pending", "resolved/delivering"})
_TERMINAL: Final = _WAKING | frozenset[State](("resolved", "resolved/delivered", "expired", "orphaned"))

Guard = Callable[[Entry, Any], bool]
Effect = Callable[[Entry, Any], Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. ``effect`` is ``None`` when the entry stays exactly as it is."""

    name: str
    event: type[ev.Event]
    states: frozenset[State]
    outcome: Outcome
    to: State | None = None
    guard: Guard | None = None
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What one event did. ``entry`` is the entry afterwards; ``changed`` tells whether it must be stored."""

    row: str
    outcome: Outcome
    entry: Entry | None
    changed: bool


def state_of(entry: Entry | None) -> State:
    """Return the entry's state; a resolved one carries its wake sub-state."""
    if entry is None:
        return "absent"
    wake = entry.get("wakeStatus")
    if entry["status"] == "resolved" and wake:
        return cast("State", f"resolved/{wake}")
    return cast("State", entry["status"])


def apply(entry: Entry | None, event: ev.Event) -> Step:
    """Let ``event`` happen to ``entry`` and return the one step the table allows."""
    row = find_row(entry, event)
    if row.effect is None:
        return Step(row.name, row.outcome, entry, changed=False)
    after = row.effect(entry or {}, event)
    return Step(row.name, row.outcome, after, changed=True)


def find_row(entry: Entry | None, event: ev.Event) -> Row:
    """Return the first row for this state and event whose guard holds; the table is total."""
    state = state_of(entry)
    for row in TABLE:
        if row.event is type(event) and state in row.states and (row.guard is None or row.guard(entry or {}, event)):
            return row
    raise AssertionError(f"no transition for {type(event).__name__} in {state}")


def lease_of(entry: Entry) -> float | None:
    """Return when the entry's lease ends (ms), live or not; ``None`` when nobody holds one."""
    prefix = {"creating": "createClaim", "consuming": "consumeClaim", "resolved/delivering": "wakeClaim"}
    name = prefix.get(state_of(entry))
    return None if name is None else cast("float", entry[f"{name}ExpiresAt"])


def lease_is_live(entry: Entry, now: int) -> bool:
    """Return whether the entry's lease is live: its expiry is strictly greater than now."""
    expires = lease_of(entry)
    return expires is not None and expires > now


def _drop_claim(entry: Entry, prefix: str) -> dict[str, Any]:
    gone = {f"{prefix}Id", f"{prefix}ExpiresAt", f"{prefix}Owner"}
    return {name: value for name, value in entry.items() if name not in gone}


def _put_claim(prefix: str, lease: ev.Lease) -> dict[str, Any]:
    return {f"{prefix}Id": lease.claim_id, f"{prefix}ExpiresAt": lease.expires_at, f"{prefix}Owner": lease.owner}


def _same_create_claim(entry: Entry, event: ev.Activate | ev.FailCreation) -> bool:
    return entry.get("createClaimId") == event.claim_id


def _same_consume_claim(entry: Entry, event: ev.FinishPending) -> bool:
    return entry.get("consumeClaimId") == event.claim_id


def _same_wake_claim(entry: Entry, event: ev.FinishWake) -> bool:
    return entry.get("wakeClaimId") == event.claim_id


def _may_activate(entry: Entry, event: ev.Activate) -> bool:
    effective = text_of(event.response_user_id)
    recorded = entry.get("responseUserId")
    return _same_create_claim(entry, event) and bool(effective) and recorded in {None, "", effective}


def _activated_by(entry: Entry, event: ev.Activate) -> bool:
    return entry.get("createdFromClaimId") == event.claim_id


def _lease_over(entry: Entry, event: ev.Event) -> bool:
    return not lease_is_live(entry, event.now)


def _wake_delivered(entry: Entry, event: ev.FinishWake) -> bool:
    return _same_wake_claim(entry, event) and event.delivered


def _old(entry: Entry, event: ev.Prune) -> bool:
    return is_prunable(entry, event.now)


def _reserve(_: Entry, event: ev.Reserve) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "approvalId": event.approval_id,
        "conversationId": event.conversation_id,
        "requestedAt": event.now,
        "expiresAt": event.expires_at,
        "status": "creating",
        **_put_claim("createClaim", event.lease),
    }
    optional = {
        "agentId": event.agent_id,
        "keyFingerprint": event.key_fingerprint,
        "summary": event.summary,
        "responseUserId": event.response_user_id,
    }
    return entry | {name: value for name, value in optional.items() if value}


def _activate(entry: Entry, event: ev.Activate) -> dict[str, Any]:
    return _drop_claim(entry, "createClaim") | {
        "status": "pending",
        "expiresAt": event.expires_at,
        "createdAt": event.now,
        "createdFromClaimId": event.claim_id,
        "responseUserId": text_of(event.response_user_id),
        "reconcilePending": False,
    }


def _close(entry: Entry, now: int, status: str) -> dict[str, Any]:
    claimless = _drop_claim(_drop_claim(entry, "createClaim"), "consumeClaim")
    return claimless | {"status": status, "resolvedAt": now, "receiptPending": False, "reconcilePending": False}


def _abandon(entry: Entry, event: ev.Activate) -> dict[str, Any]:
    reason = "the server named no responder or another one"
    return _close(entry, event.now, "orphaned") | {"identityMismatch": True, "creationError": reason}


def _fail(entry: Entry, event: ev.FailCreation) -> dict[str, Any]:
    return _close(entry, event.now, "orphaned") | {"creationError": event.reason[:500]}


def _note_receipt(entry: Entry, event: ev.ReceiptSeen) -> dict[str, Any]:
    return {**entry, "receiptPending": True, "receiptSeenAt": event.now}


def _claim(entry: Entry, event: ev.Claim) -> dict[str, Any]:
    return {**entry, "status": "consuming", **_put_claim("consumeClaim", event.lease)}


def _recover_creation(entry: Entry, event: ev.Claim) -> dict[str, Any]:
    return _claim(_drop_claim(entry, "createClaim"), event) | {"creationRecoveredAt": event.now}


def _back_to_pending(entry: Entry, event: ev.FinishPending) -> dict[str, Any]:
    after = _drop_claim(entry, "consumeClaim") | {"status": "pending", "reconcilePending": event.reconcile}
    return after if event.expires_at is None else after | {"expiresAt": event.expires_at}


def _resolve(entry: Entry, event: ev.FinishResolved) -> dict[str, Any]:
    after = _drop_claim(entry, "consumeClaim") | {
        "status": "resolved",
        "decision": event.decision,
        "respondedBy": event.responded_by,
        "resolvedAt": event.now,
        "reconcilePending": False,
    }
    return after | ({"wakeStatus": "pending"} if event.wake else {"receiptPending": False})


def _expire(entry: Entry, event: ev.FinishExpired) -> dict[str, Any]:
    return _close(entry, event.now, "expired")


def _orphan(entry: Entry, event: ev.FinishOrphaned) -> dict[str, Any]:
    after = _close(entry, event.now, "orphaned")
    return after | {"identityMismatch": True} if event.identity_mismatch else after


def _claim_wake(entry: Entry, event: ev.ClaimWake) -> dict[str, Any]:
    return {**entry, "wakeStatus": "delivering", **_put_claim("wakeClaim", event.lease)}


def _wake_done(entry: Entry, event: ev.FinishWake) -> dict[str, Any]:
    after = _drop_claim(entry, "wakeClaim")
    return after | {"wakeStatus": "delivered", "wakeDeliveredAt": event.now, "receiptPending": False}


def _wake_again(entry: Entry, _: ev.FinishWake) -> dict[str, Any]:
    return _drop_claim(entry, "wakeClaim") | {"wakeStatus": "pending"}


def _remove(_: Entry, __: ev.Prune) -> None:
    return None


def _in(*states: State) -> frozenset[State]:
    return frozenset(states)


_WAKE_DUE: Final = _in("resolved/delivering")
TABLE: Final[tuple[Row, ...]] = (
    Row("T1", ev.Reserve, _in("absent"), "reserved", "creating", None, _reserve),
    Row("T1x", ev.Reserve, _PRESENT, "exists"),
    Row("T2", ev.Activate, _in("creating"), "activated", "pending", _may_activate, _activate),
    Row("T2i", ev.Activate, _in("pending"), "activated", None, _activated_by),
    Row("T3", ev.Activate, _in("creating"), "abandoned", "orphaned", _same_create_claim, _abandon),
    Row("T3x", ev.Activate, _ANY, "lost"),
    Row("T5", ev.FailCreation, _in("creating"), "failed", "orphaned", _same_create_claim, _fail),
    Row("T5n", ev.FailCreation, _ANY, "ignored"),
    Row("T6", ev.ReceiptSeen, _in("creating", "pending", "consuming"), "noted", None, None, _note_receipt),
    Row("T6w", ev.ReceiptSeen, _WAKING, "noted", None, None, _note_receipt),
    Row("T6n", ev.ReceiptSeen, _ANY, "ignored"),
    Row("T7", ev.Claim, _in("creating"), "claimed", "consuming", _lease_over, _recover_creation),
    Row("T7n", ev.Claim, _in("creating"), "refused"),
    Row("T8", ev.Claim, _in("pending"), "claimed", "consuming", None, _claim),
    Row("T9", ev.Claim, _in("consuming"), "claimed", "consuming", _lease_over, _claim),
    Row("T9n", ev.Claim, _in("consuming"), "refused"),
    Row("T10", ev.Claim, _TERMINAL, "terminal"),
    Row("T10a", ev.Claim, _in("absent"), "absent"),
    Row("T11", ev.FinishPending, _in("consuming"), "finished", "pending", _same_consume_claim, _back_to_pending),
    Row("T12", ev.FinishResolved, _in("consuming"), "finished", None, _same_consume_claim, _resolve),
    Row("T13", ev.FinishExpired, _in("consuming"), "finished", "expired", _same_consume_claim, _expire),
    Row("T14", ev.FinishOrphaned, _in("consuming"), "finished", "orphaned", _same_consume_claim, _orphan),
    *(
        Row("T15", kind, _ANY, "stale")
        for kind in (ev.FinishPending, ev.FinishResolved, ev.FinishExpired, ev.FinishOrphaned)
    ),
    Row("T16", ev.ClaimWake, _in("resolved/pending"), "claimed", "resolved/delivering", None, _claim_wake),
    Row("T17", ev.ClaimWake, _WAKE_DUE, "claimed", "resolved/delivering", _lease_over, _claim_wake),
    Row("T17n", ev.ClaimWake, _ANY, "refused"),
    Row("T18", ev.FinishWake, _WAKE_DUE, "finished", "resolved/delivered", _wake_delivered, _wake_done),
    Row("T19", ev.FinishWake, _WAKE_DUE, "finished", "resolved/pending", _same_wake_claim, _wake_again),
    Row("T20", ev.FinishWake, _ANY, "stale"),
    Row("T21", ev.Prune, _TERMINAL, "pruned", "absent", _old, _remove),
    Row("T21n", ev.Prune, _ANY, "kept"),
)
"""Every transition; the first row whose state, event and guard match is the one that happens."""
