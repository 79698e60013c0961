"""The tools inside Canon turns, on the kit. The fixtures come with canon-hermes-plugin."""

import asyncio
import json
from importlib.metadata import entry_points

import pytest
from invoice_plugin import Bank, InvoiceTools
from invoice_plugin.invoice import Invoice

SMALL = [("a7.pdf", b"%PDF-1.7 Invoice A7 Total: 120")]
LARGE = [("b8.pdf", b"%PDF-1.7 Invoice B8 Total: 9000")]


@pytest.fixture
def bank():
    return Bank()


@pytest.fixture
def tools(bank):
    return InvoiceTools(bank)


def run(handler):
    return json.loads(asyncio.run(handler))


def test_a_small_invoice_is_paid_when_its_sender_says_so(canon, canon_turn, tools, bank):
    canon_turn("please pay", attachments=SMALL)
    canon.answers(action="pay")
    assert run(tools.pay()) == {"outcome": "paid", "number": "A7"}
    assert bank.paid == [Invoice("A7", 120)]


def test_no_is_no(canon, canon_turn, tools, bank):
    canon_turn("please pay", attachments=SMALL)
    canon.answers(action="keep")
    assert run(tools.pay()) == {"outcome": "not paid"}
    assert bank.paid == []


def test_no_answer_is_no(canon_turn, tools, bank):
    canon_turn("please pay", attachments=SMALL)
    assert run(tools.pay()) == {"outcome": "not paid"}
    assert bank.paid == []


def test_an_answer_of_somebody_else_pays_nothing(canon, canon_turn, tools, bank):
    canon_turn("please pay", attachments=SMALL)
    canon.answers(action="pay", by="mallory")
    with pytest.raises(RuntimeError):
        run(tools.pay())
    assert bank.paid == []


@pytest.mark.parametrize(
    "answer",
    [
        {"actionId": "pay"},
        {"status": "cancelled", "actionId": "pay"},
        {"status": "timeout", "actionId": "pay"},
        {"status": "submitted"},
        {"status": "submitted", "actionId": "pay_all"},
    ],
)
def test_only_a_submitted_answer_that_chose_to_pay_pays(canon_turn, tools, bank, monkeypatch, answer):
    async def answered(_card):
        return answer

    monkeypatch.setattr("invoice_plugin.tools.request_card_for_current_human", answered)
    canon_turn("please pay", attachments=SMALL)
    assert run(tools.pay()) == {"outcome": "not paid"}
    assert bank.paid == []


def test_an_invoice_nobody_can_read_is_an_error_for_the_model(canon, canon_turn, tools, bank):
    canon_turn("please pay", attachments=[("poem.pdf", b"%PDF-1.7 a poem")])
    assert run(tools.pay()) == {"error": "this is no invoice I can read"}
    assert canon.cards() == []
    assert bank.paid == []


def test_without_an_attachment_nobody_is_asked(canon, canon_turn, tools):
    assert run(tools.pay()) == {"outcome": "no invoice is attached"}
    assert canon.cards() == []


def test_a_large_invoice_waits_until_its_approval_wakes_the_agent(canon, canon_hermes, tools, bank):
    asked = canon_hermes.host.calls_tool(tools.pay).says("I asked for an approval.")
    canon.says("please pay", attachments=LARGE)
    approval_id = json.loads(asked.results[0])["approval_id"]
    canon_hermes.advance(24 * 3600)
    assert bank.paid == []

    canon_hermes.host.calls_tool(tools.settle, {"approval_id": approval_id}).says("Paid.")
    canon.approves(approval_id)
    assert bank.paid == [Invoice("B8", 9000)]
    assert canon.texts("with-dana") == ["I asked for an approval.", "Paid."]


def test_a_denied_invoice_is_not_paid(canon, canon_hermes, tools, bank):
    asked = canon_hermes.host.calls_tool(tools.pay)
    canon.says("please pay", attachments=LARGE)
    approval_id = json.loads(asked.results[0])["approval_id"]
    settled = canon_hermes.host.calls_tool(tools.settle, {"approval_id": approval_id})
    canon.denies(approval_id)
    assert json.loads(settled.results[0]) == {"outcome": "deny"}
    assert bank.paid == []


def test_the_host_finds_the_plugin():
    (point,) = entry_points(group="hermes_agent.plugins", name="invoice")
    offered = []

    class Context:
        def register_tool(self, **tool):
            offered.append(tool["name"])

    point.load().register(Context())
    assert offered == ["pay_invoice", "settle_invoice"]
