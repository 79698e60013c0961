"""What can happen to an entry of the ledger, as values (interactions §9.4).

Every event carries the instant and the ids it needs: a transition is a function of the entry and the event alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

CREATE_LEASE_MS: Final = 300_000
CONSUME_LEASE_MS: Final = 60_000
WAKE_LEASE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Lease:
    """Sole right to act until ``expires_at`` (ms). ``owner`` is informational: only time frees a lease."""

    claim_id: str
    expires_at: int
    owner: str


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens to one entry at ``now`` (ms)."""

    now: int


@dataclass(frozen=True, slots=True)
class Reserve(Event):
    """The creator takes the id before any network call (T1)."""

    approval_id: str
    conversation_id: str
    expires_at: int
    lease: Lease
    summary: str | None = None
    response_user_id: str | None = None
    agent_id: str | None = None
    key_fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Activate(Event):
    """The server accepted the request with its effective expiry and responder (T2, T3)."""

    claim_id: str
    expires_at: float
    response_user_id: str


@dataclass(frozen=True, slots=True)
class FailCreation(Event):
    """The server refused the request for good, or no client could be built (T5)."""

    claim_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReceiptSeen(Event):
    """A receipt arrived; its content is not part of the event (T6)."""


@dataclass(frozen=True, slots=True)
class Claim(Event):
    """Somebody wants to ask the server for the answer (T7 to T10)."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class FinishPending(Event):
    """Not answered yet, or the question failed (T11). ``expires_at`` is the server's, when it sent one."""

    claim_id: str
    reconcile: bool
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class FinishResolved(Event):
    """The canonical decision of an authenticated responder (T12)."""

    claim_id: str
    decision: Literal["allow", "deny"]
    responded_by: str
    wake: bool


@dataclass(frozen=True, slots=True)
class FinishExpired(Event):
    """The server says nobody answered in time (T13)."""

    claim_id: str


@dataclass(frozen=True, slots=True)
class FinishOrphaned(Event):
    """The server no longer knows the request, or the answer cannot be attributed (T14)."""

    claim_id: str
    identity_mismatch: bool = False


@dataclass(frozen=True, slots=True)
class ClaimWake(Event):
    """Somebody wants to hand the decision to the model (T16, T17)."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class FinishWake(Event):
    """The hand-over ended (T18, T19)."""

    claim_id: str
    delivered: bool


@dataclass(frozen=True, slots=True)
class Prune(Event):
    """Retention is checked (T21)."""
