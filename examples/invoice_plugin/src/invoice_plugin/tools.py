"""The tools: an invoice comes in as media, a small amount is asked on a card, a large one as a detached approval."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from canon_hermes_plugin import (
    check_detached_approval,
    current_canon_inbound_media,
    request_card_for_current_human,
    request_detached_approval_for_current_human,
)

from invoice_plugin.invoice import Invoice, read_invoice

LARGE = 1_000
PAY = "pay"


class Bank:
    """Pays. A real one would call somebody."""

    def __init__(self) -> None:
        self.paid: list[Invoice] = []

    def pay(self, invoice: Invoice) -> None:
        """Pay once, however often it is told."""
        if invoice not in self.paid:
            self.paid.append(invoice)


class InvoiceTools:
    """What the model may call. Handlers answer in JSON, as the host wants it."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self._waiting: dict[str, Invoice] = {}

    async def pay(self, _arguments: Mapping[str, Any] | None = None, **_: object) -> str:
        """Pay the attached invoice, or ask for an approval when it is large."""
        media = current_canon_inbound_media()
        if not media:
            return _told("no invoice is attached")
        try:
            invoice = read_invoice(media[0].data)
        except ValueError as error:
            return json.dumps({"error": str(error)})
        if invoice.total >= LARGE:
            request = await request_detached_approval_for_current_human(
                title=f"Pay invoice {invoice.number}?", context={"Total": f"CHF {invoice.total}"}
            )
            self._waiting[request["approvalId"]] = invoice
            return _told("waiting for approval", approval_id=request["approvalId"])
        answer = await request_card_for_current_human(_card(invoice))
        # Money moves on nothing less than a submitted answer that chose this very action.
        if answer.get("status") != "submitted" or answer.get("actionId") != PAY:
            return _told("not paid")
        self._bank.pay(invoice)
        return _told("paid", number=invoice.number)

    async def settle(self, arguments: Mapping[str, Any], **_: object) -> str:
        """Pay a large invoice if its approval says so. Anything but ``allow`` is no approval."""
        approval_id = str(arguments["approval_id"])
        found = await check_detached_approval(approval_id)
        if found.get("decision") != "allow" or approval_id not in self._waiting:
            return _told(str(found.get("decision", found["status"])))
        invoice = self._waiting.pop(approval_id)
        self._bank.pay(invoice)
        return _told("paid", number=invoice.number)


def _card(invoice: Invoice) -> dict[str, Any]:
    title = f"Pay invoice {invoice.number}, CHF {invoice.total}?"
    actions = [{"id": PAY, "label": "Pay", "tone": "positive"}, {"id": "keep", "label": "Keep", "tone": "neutral"}]
    return {
        "schema": "canon.card.v1",
        "title": title,
        "fallbackText": title,
        "blocks": [{"kind": "actions", "actions": actions}],
    }


def _told(what: str, **more: str) -> str:
    return json.dumps({"outcome": what, **more})
