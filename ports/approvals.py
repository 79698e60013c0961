"""Where detached approvals are kept, and who is offered the receipts that arrive for them (interactions §9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

Entry = Mapping[str, Any]
"""One ledger entry as it is stored; unknown fields are kept (interactions §9.1)."""

R = TypeVar("R")


class LedgerView(Protocol):
    """The ledger at one instant. Reading never writes; entries past their retention read as absent."""

    def get(self, approval_id: str) -> Entry | None:
        """Return the entry with this id, settled ones included, or ``None``.

        Raises:
            LedgerError: the history that would hold the entry cannot be trusted.
        """
        ...

    def active(self) -> Sequence[Entry]:
        """Return every entry something can still happen to, in the order of their ids: not settled, or a wake due."""
        ...


@dataclass(frozen=True, slots=True)
class Change(Generic[R]):
    """What a decision wants: the answer for its caller, and the entries to store. No entries means no write."""

    result: R
    entries: Mapping[str, Entry] = field(default_factory=dict[str, Entry])


class LedgerStore(Protocol):
    """One ledger shared by every process of this user, serialised by one lock. Safe from any event loop or thread."""

    async def transact(self, decide: Callable[[LedgerView], Change[R]]) -> R:
        """Run ``decide`` under the lock and make its entries durable before returning (interactions §9.2).

        ``decide`` is pure and never calls the store. A transaction that has started is finished even when the awaiting
        task is cancelled. An exception of ``decide`` leaves the ledger untouched.

        Raises:
            LedgerError: the ledger cannot be read, trusted or written; the stored bytes are as before.
        """
        ...

    async def snapshot(self) -> Sequence[Entry]:
        """Return what :meth:`LedgerView.active` gives now; raises as :meth:`transact`."""
        ...

    async def find(self, approval_id: str) -> Entry | None:
        """Return what :meth:`LedgerView.get` gives now; raises as :meth:`transact`."""
        ...

    async def tidy(self) -> None:
        """Remove what crashed writers left behind (D29). Called once at start-up; never raises for a bad ledger."""
        ...


class ApprovalReceipts(Protocol):
    """Takes the control messages that tell a human has answered."""

    async def offer(self, payload: Mapping[str, Any]) -> bool:
        """Look at one inbound ``message.created`` payload.

        Returns:
            True when it is the receipt of an approval in the ledger: it must be kept out of chat, whatever came of it.
            False when it is not ours. Never raises for the payload's content nor for a broken ledger (D9).
        """
        ...
