"""Twin of who takes the receipts of approvals: knows some by id, has neither ledger nor Canon (interactions §9.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from canon_hermes_plugin.domain.approvals.receipts import receipt_id


@final
class MemoryReceipts:
    """Takes the receipts of the approvals in :attr:`known`.

    Attributes:
        known: ids of the approvals in the ledger.
        broken: whether the ledger cannot be read: nothing is known then.
        offered: every payload that was offered, in order.
    """

    def __init__(self, *known: str) -> None:
        self.known = set(known)
        self.broken = False
        self.offered: list[Mapping[str, Any]] = []

    async def offer(self, payload: Mapping[str, Any]) -> bool:
        self.offered.append(payload)
        approval_id = receipt_id(payload)
        return approval_id is not None and not self.broken and approval_id in self.known
