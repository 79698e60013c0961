"""Reads invoices that people send on Canon and pays what they decide: an example of a Hermes plugin."""

from typing import Any

from invoice_plugin.tools import Bank, InvoiceTools

__all__ = ["Bank", "InvoiceTools", "register"]

NOTHING = {"type": "object", "properties": {}}
APPROVAL = {"type": "object", "properties": {"approval_id": {"type": "string"}}, "required": ["approval_id"]}


def register(ctx: Any) -> None:
    """Offer the tools to the host."""
    tools = InvoiceTools(Bank())
    for name, description, parameters, handler in (
        ("pay_invoice", "Pay the invoice attached to this message, once its sender agrees.", NOTHING, tools.pay),
        ("settle_invoice", "Pay an invoice whose approval was decided.", APPROVAL, tools.settle),
    ):
        schema = {"name": name, "description": description, "parameters": parameters}
        ctx.register_tool(name=name, toolset="invoices", schema=schema, handler=handler, is_async=True)
