"""A process around the approvals services: memory ledger, scripted Canon, virtual time, a host that records wakes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from canon_hermes_plugin.domain.approvals.creation import ApprovalCreation, ApprovalOrder
from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.approvals.ownership import LedgerIdentity
from canon_hermes_plugin.domain.approvals.question import build_question
from canon_hermes_plugin.domain.approvals.receipts import ApprovalReceiver, ReceiverPorts
from canon_hermes_plugin.infrastructure.memory.approval_store import MemoryLedger
from canon_hermes_plugin.infrastructure.memory.time import RecordedTasks, SeededIds, VirtualClock, settle
from canon_hermes_plugin.ports.approvals import Change, Entry
from canon_hermes_plugin.ports.errors import CanonApiError
from canon_hermes_plugin.ports.host import InboundMessage

Reply = Mapping[str, Any] | BaseException | Callable[[Mapping[str, Any]], Any]


class ScriptedCanon:
    """Answers creates and consumes from a script; the last reply of a script stays."""

    def __init__(self) -> None:
        self.creates: list[Mapping[str, Any]] = []
        self.consumes: list[Mapping[str, Any]] = []
        self.create_replies: list[Reply] = [{"responseUserId": "u_77"}]
        self.consume_replies: list[Reply] = [{"status": "pending"}]
        self.in_flight = 0
        self.most_in_flight = 0
        self.gate: asyncio.Event | None = None

    async def create_interaction(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self.creates.append(body)
        return await self._reply(self.create_replies, body)

    async def consume_interaction(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self.consumes.append(body)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.gate is not None:
                await self.gate.wait()
            return await self._reply(self.consume_replies, body)
        finally:
            self.in_flight -= 1

    @staticmethod
    async def _reply(replies: list[Reply], body: Mapping[str, Any]) -> Mapping[str, Any]:
        await asyncio.sleep(0)
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, BaseException):
            raise reply
        return reply(body) if callable(reply) else reply


class Inbox:
    """The host: takes wakes, or refuses them."""

    def __init__(self) -> None:
        self.wakes: list[InboundMessage] = []
        self.failures: list[BaseException] = []

    async def hand_over(self, message: InboundMessage) -> None:
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        self.wakes.append(message)

    async def apply_signal(self, *_: object) -> None:
        raise NotImplementedError


class Process:
    """One process of one agent. Several may share a ledger."""

    def __init__(self, ledger: MemoryLedger, clock: VirtualClock, canon: Any, name: str = "p1") -> None:
        self.ledger, self.clock, self.canon = ledger, clock, canon
        self.ids = SeededIds(sum(name.encode()))
        self.desk = ApprovalDesk(ledger, clock, self.ids, name)
        self.desk.identity = LedgerIdentity("ag_5", "f" * 16)
        self.creation = ApprovalCreation(self.desk, clock, self.ids)
        self.inbox, self.tasks = Inbox(), RecordedTasks()
        self.receiver = ApprovalReceiver(self.desk, ReceiverPorts(canon, self.inbox, self.tasks), clock)
        self.receiver.open()
        self.opened = self.closed = 0
        self.open_error: BaseException | None = None

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[Any, None]:
        self.opened += 1
        if self.open_error is not None:
            raise self.open_error
        try:
            yield self.canon
        finally:
            self.closed += 1

    async def ask(self, *, responder: str | None = "u_77", timeout_ms: int = 259_200_000) -> Mapping[str, Any]:
        question = build_question(title=None, question="Release berth 4?", options=None, context=None)
        order = ApprovalOrder(question, "cv_9", responder, timeout_ms)
        return await self.creation.request(order, self.client)

    async def find(self, approval_id: str) -> Entry | None:
        return await self.ledger.find(approval_id)

    async def entries(self) -> list[Entry]:
        return list(await self.ledger.snapshot())

    async def put(self, *entries: Entry) -> None:
        await self.ledger.transact(lambda _: Change(None, {str(item["approvalId"]): item for item in entries}))


def process(now_ms: int = 1_900_000_000_000) -> Process:
    clock = VirtualClock(now_ms)
    return Process(MemoryLedger(clock.now_ms), clock, ScriptedCanon())


def refused(status: int, body: str = "") -> CanonApiError:
    return CanonApiError(status, body)


def receipt(approval_id: str, **fields: Any) -> dict[str, Any]:
    metadata = {"type": "approval_reply", "approvalId": approval_id, "decision": "allow"}
    message = {"id": "msg_610", "senderId": "u_77", "senderName": "Dana", "text": "ok", "metadata": metadata}
    return {"conversationId": "cv_other", "message": {**message, **fields}}


__all__ = ["Process", "ScriptedCanon", "process", "receipt", "refused", "settle"]
