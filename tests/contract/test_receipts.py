"""Receipts of approvals: the public suite on the receiver, with the ledger in a file and in memory, and on the twin."""

from __future__ import annotations

from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.approvals.receipts import ApprovalReceiver, ReceiverPorts
from canon_hermes_plugin.infrastructure.files.approval_store import LEDGER_NAME, FileLedger
from canon_hermes_plugin.infrastructure.memory.approval_store import MemoryLedger
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.receipts import MemoryReceipts
from canon_hermes_plugin.infrastructure.memory.time import RecordedTasks, SeededIds, VirtualClock
from canon_hermes_plugin.ports.approvals import Change
from canon_hermes_plugin.testing.contracts import ApprovalReceiptsContract


class Host:
    """Takes wakes, or raises what a host may raise."""

    failing = False

    async def hand_over(self, message):
        if self.failing:
            raise RuntimeError("the host takes nothing")

    async def apply_signal(self, conversation_id, signal, user_id, spare=frozenset()):
        raise NotImplementedError


class Receiver:
    """The real receiver with its desk."""

    def __init__(self, ledger, clock, spoil):
        self._ledger, self._clock, self._spoil = ledger, clock, spoil
        self._canon, self._host, self._tasks = MemoryCanon(clock=clock), Host(), RecordedTasks()
        desk = ApprovalDesk(ledger, clock, SeededIds(), "p1")
        self.receipts = ApprovalReceiver(desk, ReceiverPorts(self._canon, self._host, self._tasks), clock)
        self.receipts.open()

    async def know(self, approval_id, *, settled=False):
        now = self._clock.now_ms()
        entry = {"approvalId": approval_id, "conversationId": "cv", "status": "pending", "expiresAt": now + 60_000}
        if settled:
            entry |= {"status": "expired", "resolvedAt": now}
        await self._ledger.transact(lambda _: Change(None, {approval_id: entry}))

    def break_ledger(self):
        self._spoil()

    def break_rest(self):
        self._canon.faults.outage = Fault.unreachable()
        self._host.failing = True

    async def close(self):
        self.receipts.close()
        await self._tasks.drain(0)


class Twin:
    """The twin."""

    def __init__(self):
        self.receipts = MemoryReceipts()

    async def know(self, approval_id, *, settled=False):
        self.receipts.known.add(approval_id)

    def break_ledger(self):
        self.receipts.broken = True

    def break_rest(self):
        """Nothing else belongs to it."""

    async def close(self):
        pass


class TestReceiverOnAFile(ApprovalReceiptsContract):
    subject = ApprovalReceiver

    def factory(self, tmp_path):
        clock = VirtualClock()
        return Receiver(
            FileLedger(tmp_path, clock.now_ms), clock, lambda: (tmp_path / LEDGER_NAME).write_bytes(b"\xff")
        )


class TestReceiverInMemory(ApprovalReceiptsContract):
    subject = ApprovalReceiver

    def factory(self, tmp_path):
        clock = VirtualClock()
        ledger = MemoryLedger(clock.now_ms)
        return Receiver(ledger, clock, lambda: setattr(ledger, "document", b"\xff"))


class TestTwin(ApprovalReceiptsContract):
    subject = MemoryReceipts

    def factory(self, tmp_path):
        return Twin()
