"""What Canon's answers mean for the ledger, and what callers are told (interactions §9.3, §9.5, §9.6, §9.9).

Pure. Nothing here turns anything but a canonical, attributed ``allow`` into an allow: unknown, expired, pending and
errors stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from canon_hermes_plugin.domain.approvals import events as ev
from canon_hermes_plugin.domain.approvals.ledger import is_finite_number, text_of
from canon_hermes_plugin.domain.approvals.ownership import LedgerIdentity, ownership
from canon_hermes_plugin.domain.approvals.transitions import Step
from canon_hermes_plugin.ports.approvals import Entry
from canon_hermes_plugin.ports.errors import CanonApiError

RETRY_TIMEOUT_MS: Final = 1_800_000
"""The expiry an older server takes (D4)."""

_UNSETTLED_STATUSES: Final = frozenset({408, 409, 425, 429})
_GONE: Final = frozenset({404, 409})
_LEASE_KINDS: Final = {"creating": "creation", "consuming": "consume"}

NOTE_PENDING: Final = (
    "Do not wait for the answer. Tell the person what you asked and go on or end your turn: the decision arrives later "
    "as a message in this conversation, or check it with check_approval."
)
NOTE_HELD: Final = "Another worker is asking Canon for this answer right now; check again a little later."
NOTE_EXPIRED: Final = "Nobody answered in time. Ask again if the decision is still needed."
NOTE_UNKNOWN: Final = (
    "This is not a denial: the approval was answered elsewhere, expired or was lost. Ask again if it is still needed."
)
NOTE_FOREIGN: Final = "This approval belongs to another agent. This is not a denial."

CreateVerdict = Literal["retry", "rejected", "unsettled"]


@dataclass(frozen=True, slots=True)
class Reading:
    """A consume answer: the event it causes and, when the claim still holds, what the caller is told."""

    event: ev.Event
    result: Mapping[str, Any]


def judge_create_failure(error: CanonApiError, *, first: bool, timeout_ms: int) -> CreateVerdict:
    """Classify a refused create (D4, I24): try the short expiry once, give the entry up, or leave it to recovery."""
    status = error.status_code
    if first and status == 400 and timeout_ms > RETRY_TIMEOUT_MS and "expiresat" in error.body.lower():  # noqa: PLR2004 - §9.3
        return "retry"
    if 400 <= status < 500 and status not in _UNSETTLED_STATUSES:  # noqa: PLR2004 - interactions §9.3
        return "rejected"
    return "unsettled"


def is_gone(error: CanonApiError) -> bool:
    """Return whether Canon no longer knows the request: it ends as ``unknown``, never as a denial (I25)."""
    return error.status_code in _GONE


def effective_expiry(answer: Mapping[str, Any], requested: int) -> float:
    """Return the expiry Canon made effective, else the requested one."""
    value = answer.get("expiresAt")
    return cast("float", value) if is_finite_number(value) else requested


def read_answer(entry: Entry, answer: Mapping[str, Any], lease: ev.Lease, *, now: int, wake: bool) -> Reading:
    """Turn a consume answer into its finish event and result (interactions §9.5)."""
    status = answer.get("status")
    claim = lease.claim_id
    if status == "allow" or status == "deny":  # noqa: PLR1714 - keeps the literal types
        return _read_decision(entry, answer, ev.FinishResolved(now, claim, status, "", wake))
    if status == "pending":
        sent = answer.get("expiresAt")
        expiry = cast("float", sent) if is_finite_number(sent) else None
        shown = entry if expiry is None else {**entry, "expiresAt": expiry}
        return Reading(ev.FinishPending(now, claim, reconcile=False, expires_at=expiry), pending(shown))
    if status == "timeout":
        return Reading(ev.FinishExpired(now, claim), expired(entry))
    odd = status[:40] if isinstance(status, str) and status.isascii() and status.isprintable() else "none"
    note = f"Canon answered with an unknown status ({odd}). {NOTE_UNKNOWN}"
    return Reading(ev.FinishPending(now, claim, reconcile=True), unknown(entry, note))


def read_gone(entry: Entry, lease: ev.Lease, identity: LedgerIdentity, *, now: int) -> Reading:
    """Turn a 404 or 409 into its finish event: an unbound entry of a shared ledger may be another agent's (D5)."""
    if identity.shared and ownership(entry, identity) == "unbound":
        return Reading(ev.FinishPending(now, lease.claim_id, reconcile=False), unknown(entry))
    return Reading(ev.FinishOrphaned(now, lease.claim_id), unknown(entry))


def told(step: Step, approval_id: str) -> Mapping[str, Any]:
    """Return what a caller is told about an entry it does not hold: absent, settled, leased by another, or pending."""
    entry = step.entry
    if entry is None:
        return unknown({"approvalId": approval_id})
    status = entry["status"]
    if status == "resolved":
        return resolved(entry)
    if status == "expired":
        return expired(entry)
    if status in _LEASE_KINDS:
        return pending(entry) | {"leaseKind": _LEASE_KINDS[status], "note": NOTE_HELD}
    return pending(entry) if status == "pending" else unknown(entry)


def pending(entry: Entry) -> dict[str, Any]:
    """Return the result of an unanswered approval."""
    return {"status": "pending", **_address(entry), "expiresAt": entry["expiresAt"]}


def resolved(entry: Entry) -> dict[str, Any]:
    """Return the result of a stored decision."""
    result = {"status": "resolved", "decision": entry["decision"], **_address(entry)}
    responder = entry.get("respondedBy")
    return result | ({"respondedBy": responder} if responder else {})


def expired(entry: Entry) -> dict[str, Any]:
    """Return the result of an approval nobody answered in time."""
    return {"status": "expired", **_address(entry), "note": NOTE_EXPIRED}


def unknown(entry: Entry, note: str = NOTE_UNKNOWN) -> dict[str, Any]:
    """Return the result of an approval whose fate cannot be known. It carries no decision (I7)."""
    return {"status": "unknown", **_address(entry), "note": note}


def wake_text(entry: Entry) -> str:
    """Return the one fixed sentence of interactions §9.9."""
    line = f"Canon approval {entry['approvalId']} resolved: {entry['decision']}"
    summary = text_of(entry.get("summary"))
    return f"{line} — {summary}" if summary else line


def _address(entry: Entry) -> dict[str, Any]:
    address = {"approvalId": entry["approvalId"]}
    conversation = entry.get("conversationId")
    return address | ({"conversationId": conversation} if conversation else {})


def _read_decision(entry: Entry, answer: Mapping[str, Any], event: ev.FinishResolved) -> Reading:
    responder = text_of(answer.get("respondedBy"))
    expected = text_of(entry.get("responseUserId"))
    if not responder or (expected and responder != expected):
        why = "another person answered than the one asked" if responder else "the answer names no responder"
        orphan = ev.FinishOrphaned(event.now, event.claim_id, identity_mismatch=True)
        return Reading(orphan, unknown(entry, f"The answer is not usable: {why} (responder mismatch). {NOTE_UNKNOWN}"))
    settled = {**entry, "decision": event.decision, "respondedBy": responder}
    event = ev.FinishResolved(event.now, event.claim_id, event.decision, responder, event.wake)
    return Reading(event, resolved(settled))
