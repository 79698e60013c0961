"""Receipts of approvals: what whoever is offered them promises (interactions §7.6, §9.7, D9)."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import pytest
from canon_hermes_plugin.ports.approvals import ApprovalReceipts
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop


class ApprovalReceiptsDriver(Driver, Protocol):
    """The subject and what is around it.

    Attributes:
        receipts: the subject.
    """

    receipts: ApprovalReceipts

    async def know(self, approval_id: str, *, settled: bool = False) -> None:
        """Put an approval into the ledger: a pending one, or one that has its outcome."""
        ...

    def break_ledger(self) -> None:
        """Let the ledger be unreadable."""
        ...

    def break_rest(self) -> None:
        """Let everything else fail: Canon does not answer, and the host takes nothing."""
        ...


def receipt(approval_id: object, **message: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    """Return the payload of a receipt."""
    metadata = {"type": "approval_reply", "approvalId": approval_id, "decision": "allow"}
    body = {"id": "msg_1", "senderId": "user_dana", "text": "ok", "metadata": metadata, **message}
    return {"conversationId": "conv_1", "message": body}


GARBAGE: list[dict[str, Any]] = [
    {},
    {"message": None},
    {"message": []},
    {"message": "approval_reply"},
    {"message": {"metadata": None}},
    {"message": {"metadata": "approval_reply"}},
    {"message": {"metadata": {"type": "approval_reply"}}},
    {"message": {"metadata": {"type": ["approval_reply"], "approvalId": "hermes-1"}}},
    {"message": {"metadata": {"type": "approval_outcome", "approvalId": "hermes-1"}}},
    {"message": {"metadata": {"approvalId": "hermes-1"}}},
    {"message": {"text": "approval_reply hermes-1"}},
    receipt(["hermes-1"]),
    receipt({"id": "hermes-1"}),
    receipt(None),
    receipt(""),
    receipt(10**400),
    receipt("hermes-\ud800"),
    receipt("../hermes-1"),
]


class ApprovalReceiptsContract(Contract[ApprovalReceiptsDriver]):
    """The suite of :class:`canon_hermes_plugin.ports.approvals.ApprovalReceipts`."""

    @on_a_loop
    async def test_only_the_receipt_of_a_known_approval_is_ours(self, desk: ApprovalReceiptsDriver) -> None:
        await desk.know("hermes-1")
        assert await desk.receipts.offer(receipt("hermes-1")) is True
        assert await desk.receipts.offer(receipt("hermes-2")) is False

    @on_a_loop
    async def test_the_receipt_of_a_settled_approval_is_ours(self, desk: ApprovalReceiptsDriver) -> None:
        await desk.know("hermes-1", settled=True)
        assert await desk.receipts.offer(receipt("hermes-1")) is True

    @pytest.mark.parametrize("payload", GARBAGE, ids=range(len(GARBAGE)))
    @on_a_loop
    async def test_what_is_no_receipt_is_not_ours_and_raises_nothing(
        self, desk: ApprovalReceiptsDriver, payload: dict[str, Any]
    ) -> None:
        await desk.know("hermes-1")
        assert await desk.receipts.offer(payload) is False

    @on_a_loop
    async def test_i6_what_else_a_receipt_says_does_not_matter(self, desk: ApprovalReceiptsDriver) -> None:
        await desk.know("hermes-1")
        odd_ones: list[dict[str, Any]] = [
            {"senderId": None},
            {"senderId": "stranger"},
            {"text": 5},
            {"id": ["x"]},
            {"senderName": {}},
        ]
        for odd in odd_ones:
            assert await desk.receipts.offer(receipt("hermes-1", **odd)) is True

    @on_a_loop
    async def test_d9_a_broken_ledger_never_raises_and_makes_nothing_ours(self, desk: ApprovalReceiptsDriver) -> None:
        await desk.know("hermes-1")
        desk.break_ledger()
        assert await desk.receipts.offer(receipt("hermes-1")) is False
        assert await desk.receipts.offer(receipt("hermes-2")) is False

    @on_a_loop
    async def test_a_receipt_is_ours_whatever_comes_of_it(self, desk: ApprovalReceiptsDriver) -> None:
        await desk.know("hermes-1")
        desk.break_rest()
        assert await desk.receipts.offer(receipt("hermes-1")) is True
        for _ in range(50):
            await asyncio.sleep(0)
        assert await desk.receipts.offer(receipt("hermes-1")) is True

    @on_a_loop
    async def test_receipts_may_repeat_and_come_at_once(self, desk: ApprovalReceiptsDriver) -> None:
        await desk.know("hermes-1")
        for _ in range(3):
            assert await desk.receipts.offer(receipt("hermes-1")) is True
        answers = await asyncio.gather(*(desk.receipts.offer(receipt(name)) for name in ["hermes-1", "hermes-2"] * 5))
        assert answers == [True, False] * 5
