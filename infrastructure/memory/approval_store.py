"""The approvals ledger in memory, as strict as the file: what it takes, a file would take (ports/approvals)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TypeVar, final

from canon_hermes_plugin.domain.approvals.ledger import decode, encode, is_prunable, is_settled
from canon_hermes_plugin.ports.approvals import Change, Entry, LedgerView

R = TypeVar("R")


@final
class MemoryLedger:
    """Keeps the document's bytes, so that every read is a fresh copy and a corrupt document behaves as on disk.

    Attributes:
        document: the ledger's bytes; a test may replace them.
        writes: how many transactions changed something.
    """

    def __init__(self, now_ms: Callable[[], int], document: bytes = b"{}") -> None:
        self.document = document
        self.writes = 0
        self._now_ms = now_ms
        self._mutex = threading.Lock()

    async def transact(self, decide: Callable[[LedgerView], Change[R]]) -> R:
        with self._mutex:
            entries, now_ms = decode(self.document), self._now_ms()
            change = decide(MemoryLedgerView(entries, now_ms))
            merged = {**entries, **change.entries}
            kept = {key: entry for key, entry in merged.items() if not is_prunable(entry, now_ms)}
            if kept != entries:
                document = encode(kept)
                decode(document)
                self.document = document
                self.writes += 1
            return change.result

    async def snapshot(self) -> list[Entry]:
        with self._mutex:
            return MemoryLedgerView(decode(self.document), self._now_ms()).active()

    async def find(self, approval_id: str) -> Entry | None:
        with self._mutex:
            return MemoryLedgerView(decode(self.document), self._now_ms()).get(approval_id)

    async def tidy(self) -> None:
        return


@final
class MemoryLedgerView:
    """A ledger given as a mapping."""

    def __init__(self, entries: Mapping[str, Entry], now_ms: int) -> None:
        self._entries = {key: entry for key, entry in entries.items() if not is_prunable(entry, now_ms)}

    def get(self, approval_id: str) -> Entry | None:
        return self._entries.get(approval_id)

    def active(self) -> list[Entry]:
        return [self._entries[key] for key in sorted(self._entries) if not is_settled(self._entries[key])]
