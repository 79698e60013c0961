"""What a valid ledger is: every rule of one entry, of the whole document, and its bytes (interactions §9.1).

Decides whether stored state can be trusted. It fails closed: whatever is not a valid ledger raises ``LedgerError``, and
nobody writes over it. It knows neither files nor locks nor what an entry's states lead to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, cast

from canon_hermes_plugin.ports.approvals import Entry
from canon_hermes_plugin.ports.errors import LedgerError

STATUSES: Final = ("creating", "pending", "consuming", "resolved", "expired", "orphaned")
TERMINAL: Final = ("resolved", "expired", "orphaned")
WAKE_STATES: Final = ("pending", "delivering", "delivered")
DECISIONS: Final = ("allow", "deny")
RETENTION_MS: Final = 14 * 24 * 3600 * 1000
"""How long a settled entry is kept (interactions §9.11)."""

_OPTIONAL_TEXTS: Final = (
    "summary",
    "responseUserId",
    "createdFromClaimId",
    "creationError",
    "respondedBy",
    "createClaimOwner",
    "consumeClaimOwner",
    "wakeClaimOwner",
    "agentId",
    "keyFingerprint",
)
_OPTIONAL_INSTANTS: Final = (
    "requestedAt",
    "createdAt",
    "creationRecoveredAt",
    "resolvedAt",
    "wakeDeliveredAt",
    "receiptSeenAt",
)
_OPTIONAL_FLAGS: Final = ("receiptPending", "reconcilePending")
_CLAIMS: Final = {"creating": "createClaim", "consuming": "consumeClaim"}


def is_finite_number(value: object) -> bool:
    """Return whether ``value`` is a number other than a boolean that a double can hold (D9: ``10**400`` is not)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def text_of(value: object) -> str:
    """Return ``value`` stripped when it is a string, else an empty string."""
    return value.strip() if isinstance(value, str) else ""


def validate_entry(key: object, value: object) -> Entry:
    """Return ``value`` as an entry.

    Raises:
        LedgerError: it breaks a rule of interactions §9.1. The text names the field, never its content.
    """
    if not isinstance(key, str) or not key or not isinstance(value, dict):
        _refuse("an entry is not an object under a non-empty id")
    entry = cast("dict[str, Any]", value)
    if entry.get("approvalId") != key:
        _refuse("approvalId differs from the entry's key")
    if not text_of(entry.get("conversationId")):
        _refuse("conversationId is blank or not a string")
    _require_instant(entry, "expiresAt")
    _check_status(entry)
    _check_wake(entry)
    _check_optional(entry)
    return entry


def decode(raw: bytes) -> dict[str, Entry]:
    """Read a whole ledger document.

    Raises:
        LedgerError: invalid UTF-8, bad JSON, NaN, a root that is no object, nesting too deep, or one bad entry.
    """
    try:
        document: object = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        # The parser's own words quote the document; they stay out of every text form.
        raise LedgerError(f"The approvals ledger is not valid JSON ({type(error).__name__})") from None
    if not isinstance(document, dict):
        _refuse("the document is not an object")
    return {
        cast("str", key): validate_entry(key, value) for key, value in cast("Mapping[object, object]", document).items()
    }


def encode_entry(key: str, entry: Entry) -> str:
    """Return the entry as its part of the document: two-space indent, sorted keys, ASCII escapes.

    Raises:
        LedgerError: the entry holds something JSON cannot carry.
    """
    try:
        body = json.dumps(entry, indent=2, sort_keys=True, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise LedgerError(f"An entry cannot be written as JSON ({type(error).__name__})") from None
    return f"  {json.dumps(key)}: " + body.replace("\n", "\n  ")


def join_document(parts: Iterable[str]) -> bytes:
    """Return the document's bytes for encoded entries that come in the order of their keys."""
    body = ",\n".join(parts)
    return ("{\n" + body + "\n}" if body else "{}").encode("ascii")


def encode(entries: Mapping[str, Entry]) -> bytes:
    """Return the whole document's bytes; ``decode`` gives the entries back."""
    return join_document(encode_entry(key, entries[key]) for key in sorted(entries))


def retention_stamp(entry: Entry) -> float:
    """Return the instant retention counts from: ``resolvedAt``, else ``expiresAt``, else 0 (T21)."""
    for name in ("resolvedAt", "expiresAt"):
        value = entry.get(name)
        if is_finite_number(value):
            return cast("float", value)
    return 0


def is_prunable(entry: Entry, now_ms: int) -> bool:
    """Return whether T21 removes the entry at ``now_ms``: settled, and older than the retention."""
    return entry["status"] in TERMINAL and retention_stamp(entry) < now_ms - RETENTION_MS


def is_settled(entry: Entry) -> bool:
    """Return whether nothing can happen to the entry any more but its removal."""
    return entry["status"] in TERMINAL and entry.get("wakeStatus") not in {"pending", "delivering"}


def _check_status(entry: Entry) -> None:
    status = entry.get("status")
    if not isinstance(status, str) or status not in STATUSES:
        _refuse("status is unknown")
    decision = entry.get("decision")
    if decision is not None and (not isinstance(decision, str) or decision not in DECISIONS):
        _refuse("decision is neither allow nor deny")
    if status == "resolved" and decision is None:
        _refuse("a resolved entry has no decision")
    if status in _CLAIMS:
        _require_claim(entry, _CLAIMS[status])


def _check_wake(entry: Entry) -> None:
    wake = entry.get("wakeStatus")
    if wake is None:
        return
    if not isinstance(wake, str) or wake not in WAKE_STATES:
        _refuse("wakeStatus is unknown")
    if wake == "delivering":
        _require_claim(entry, "wakeClaim")


def _check_optional(entry: Entry) -> None:
    for name in _OPTIONAL_TEXTS:
        if not isinstance(entry.get(name), str | None):
            _refuse(f"{name} is not a string")
    for name in _OPTIONAL_INSTANTS:
        if entry.get(name) is not None:
            _require_instant(entry, name)
    for name in _OPTIONAL_FLAGS:
        if not isinstance(entry.get(name), bool | None):
            _refuse(f"{name} is not a boolean")


def _require_claim(entry: Entry, prefix: str) -> None:
    if not text_of(entry.get(f"{prefix}Id")):
        _refuse(f"{prefix}Id is missing")
    _require_instant(entry, f"{prefix}ExpiresAt")


def _require_instant(entry: Entry, name: str) -> None:
    if not is_finite_number(entry.get(name)):
        _refuse(f"{name} is not a finite number")


def _refuse(reason: str) -> NoReturn:
    raise LedgerError(f"The approvals ledger is malformed: {reason}")


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError
