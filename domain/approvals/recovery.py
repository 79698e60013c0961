"""What is left to do in a ledger: scan candidates, back-off, and the steps of the start-up reconcile (§9.8, §9.10).

Pure: entries and instants in, ids and waits out. Everything here works on entries this process may touch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from canon_hermes_plugin.domain.approvals.transitions import lease_is_live, lease_of, state_of
from canon_hermes_plugin.ports.approvals import Entry

OVERDUE_MS: Final = 60_000
_FIRST_DELAY_MS: Final = 30_000
_LONGEST_DELAY_MS: Final = 900_000
LONGEST_LOOK_SECONDS: Final = 60.0
LEASE_MARGIN_SECONDS: Final = 0.05
SHORT_LOOK_SECONDS: Final = 0.05


def needs_work(entry: Entry, now: int) -> bool:
    """Return whether the periodic scan has something to do for the entry (interactions §9.8)."""
    state = state_of(entry)
    if state == "resolved/pending":
        return True
    if state in {"creating", "consuming", "resolved/delivering"}:
        return not lease_is_live(entry, now)
    flagged = bool(entry.get("receiptPending") or entry.get("reconcilePending"))
    return state == "pending" and (flagged or entry["expiresAt"] + OVERDUE_MS < now)


@final
class ScanBackoff:
    """Spaces the questions about one approval while its answer stays ``pending`` (D23): 30 s doubling to 15 min."""

    def __init__(self) -> None:
        self._next: dict[str, tuple[int, int]] = {}

    def due(self, entries: Iterable[Entry], now: int) -> list[str]:
        """Return the ids to work on now; ids that need no work any more are forgotten."""
        wanted = [str(entry["approvalId"]) for entry in entries if needs_work(entry, now)]
        for gone in self._next.keys() - set(wanted):
            del self._next[gone]
        return [approval_id for approval_id in wanted if self._next.get(approval_id, (0, 0))[0] <= now]

    def asked(self, approval_id: str, now: int) -> None:
        """Note that a question was put to Canon for nothing; the next one waits twice as long."""
        delay = min(self._next.get(approval_id, (0, _FIRST_DELAY_MS // 2))[1] * 2, _LONGEST_DELAY_MS)
        self._next[approval_id] = (now + delay, delay)


@dataclass(frozen=True, slots=True)
class Watched:
    """Leases of somebody else that reconcile waits out: consumes and wakes."""

    consumes: frozenset[str] = frozenset()
    wakes: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.consumes or self.wakes)


@dataclass(frozen=True, slots=True)
class Look:
    """What reconcile does after a round: ``sleep`` seconds and go round again, or stop when ``None``."""

    watched: Watched
    sleep: float | None


def watch(entries: Iterable[Entry]) -> Watched:
    """Return the leases held when reconcile starts."""
    states = {str(entry["approvalId"]): state_of(entry) for entry in entries}
    return Watched(
        frozenset(key for key, state in states.items() if state == "consuming"),
        frozenset(key for key, state in states.items() if state == "resolved/delivering"),
    )


def to_consume(entries: Iterable[Entry]) -> list[str]:
    """Return the ids a reconcile round asks Canon about."""
    return [str(entry["approvalId"]) for entry in entries if entry["status"] in {"creating", "pending", "consuming"}]


def to_wake(entries: Iterable[Entry]) -> list[str]:
    """Return the ids a reconcile round hands to the model."""
    return [str(e["approvalId"]) for e in entries if state_of(e) in {"resolved/pending", "resolved/delivering"}]


def look_again(entries: Iterable[Entry], watched: Watched, now: int) -> Look:
    """Decide how a reconcile round goes on (interactions §9.10)."""
    states = {str(entry["approvalId"]): entry for entry in entries}
    consumes, wakes, again = set[str](), set[str](), False
    for key in watched.consumes:
        state = state_of(states.get(key))
        again = again or state in {"pending", "resolved/pending"}
        if state == "consuming":
            consumes.add(key)
        elif state == "resolved/delivering":
            wakes.add(key)
    for key in watched.wakes:
        state = state_of(states.get(key))
        again = again or state == "resolved/pending"
        if state == "resolved/delivering":
            wakes.add(key)
    rest = Watched(frozenset(consumes), frozenset(wakes))
    if again:
        return Look(rest, 0.0)
    leases = [lease for entry in states.values() if (lease := lease_of(entry)) is not None]
    if leases:
        ahead = max(0.0, (min(leases) - now) / 1000)
        return Look(rest, min(LONGEST_LOOK_SECONDS, ahead + LEASE_MARGIN_SECONDS))
    return Look(rest, SHORT_LOOK_SECONDS if rest else None)
