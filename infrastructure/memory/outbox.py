"""The outbox in memory, as strict as the file: what it takes, a file would take (ports/outbox)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from canon_hermes_plugin.domain.turns.outbox_format import decode, encode
from canon_hermes_plugin.ports.errors import OutboxError
from canon_hermes_plugin.ports.outbox import OutboxEntry

_SCOPE = "memory"


@final
class MemoryOutbox:
    """Keeps each entry's bytes. It outlives whoever uses it: give it to the next one to simulate a restart.

    Attributes:
        documents: the stored bytes by operation, in the order kept; a test may damage them.
        kept, forgotten: the operations of every call that succeeded, in order.
        full: every ``keep`` fails while this is set, as on a full disk.
    """

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}
        self.kept: list[str] = []
        self.forgotten: list[str] = []
        self.full = False

    async def keep(self, entry: OutboxEntry) -> None:
        if self.full:
            raise OutboxError("an operation cannot be kept (OSError)")
        try:
            document = encode(entry, scope=_SCOPE, order=len(self.kept))
        except ValueError as error:
            raise OutboxError(f"an operation cannot be kept ({type(error).__name__})") from error
        self.documents.pop(entry.operation_id, None)
        self.documents[entry.operation_id] = document
        self.kept.append(entry.operation_id)

    async def forget(self, operation_id: str) -> None:
        self.documents.pop(operation_id, None)
        self.forgotten.append(operation_id)

    async def leftover(self) -> Sequence[OutboxEntry]:
        found: list[OutboxEntry] = []
        for document in self.documents.values():
            try:
                found.append(decode(document, scope=_SCOPE)[1])
            except ValueError:
                continue
        return found
