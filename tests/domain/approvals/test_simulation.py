"""Processes that crash at any step, a server that fails before or after its effect, people who answer: what must hold.

Two processes of one agent share a ledger. Any port call of a process may be its last one; what it had not made durable
is gone, and nothing of it runs any more. Afterwards one process stays up, and every decision must have reached the
model (interactions §9.12, §9.13: I2, I4, I5, I7 to I17, I40).
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from canon_hermes_plugin.domain.approvals.ledger import decode
from canon_hermes_plugin.infrastructure.memory.approval_store import MemoryLedger
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock, settle
from canon_hermes_plugin.ports.errors import CanonApiError, CanonError, CanonTransportError, LedgerError

from .rig import Process, receipt

NOW = 1_900_000_000_000
REPLAY_MS = 72 * 3_600_000


class Dead(BaseException):
    """The process is gone."""


class Server:
    """Canon (interactions §9.14), with faults on order: fail before the effect, or lose the answer after it."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.requests: dict[str, dict[str, Any]] = {}
        self.faults: list[str] = []

    async def create(self, body):
        async def effect():
            if body["approvalId"] in self.requests:
                raise CanonApiError(409)
            self.requests[body["approvalId"]] = {
                "by": body["responseUserId"],
                "until": body["expiresAt"],
                "answer": None,
            }
            return {"responseUserId": body["responseUserId"], "expiresAt": body["expiresAt"]}

        return await self._faulty(effect)

    async def consume(self, body):
        async def effect():
            found = self.requests.get(body["approvalId"])
            now = self.clock.now_ms()
            if found is None or (found.get("taken") is not None and now - found["taken"] > REPLAY_MS):
                raise CanonApiError(404)
            if found["answer"] is None:
                return (
                    {"status": "timeout"}
                    if now > found["until"]
                    else {"status": "pending", "expiresAt": found["until"]}
                )
            found.setdefault("taken", now)
            return {"status": found["answer"], "respondedBy": found["by"]}

        return await self._faulty(effect)

    async def _faulty(self, effect):
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "before":
            raise CanonTransportError("x", executed=True)
        if fault == "status":
            raise CanonApiError(503)
        result = await effect()
        if fault == "after":
            raise CanonTransportError("x", executed=True)
        return result


class Fuse:
    """Kills its process at a chosen port call, before or after that call's effect."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.after = False
        self.dead = False

    async def run(self, effect):
        if self.dead:
            raise Dead
        burns = self.left == 0
        if self.left is not None:
            self.left -= 1
        if burns and not self.after:
            self.dead = True
            raise Dead
        result = await effect()
        if burns:
            self.dead = True
            raise Dead
        return result


class FusedLedger:
    def __init__(self, ledger: MemoryLedger, fuse: Fuse) -> None:
        self._ledger, self._fuse = ledger, fuse

    async def transact(self, decide):
        return await self._fuse.run(lambda: self._ledger.transact(decide))

    async def snapshot(self):
        return await self._fuse.run(self._ledger.snapshot)

    async def find(self, approval_id):
        return await self._fuse.run(lambda: self._ledger.find(approval_id))

    async def tidy(self):
        return


class FusedCanon:
    def __init__(self, world: World, fuse: Fuse) -> None:
        self._world, self._fuse = world, fuse

    async def create_interaction(self, body):
        # I1: nothing is sent for an id that is not durable.
        assert body["approvalId"].encode() in self._world.ledger.document
        return await self._fuse.run(lambda: self._world.server.create(body))

    async def consume_interaction(self, body):
        if body.get("cancel"):
            return {}
        return await self._fuse.run(lambda: self._world.server.consume(body))


class World:
    """Everything that survives a process."""

    def __init__(self) -> None:
        self.clock = VirtualClock(NOW)
        self.server = Server(self.clock)
        self.ledger = MemoryLedger(self.clock.now_ms)
        self.wakes: Counter[str] = Counter()
        self.told: dict[str, set[str]] = {}
        self.crashes = 0
        self.started = 0

    def start(self) -> tuple[Process, Fuse]:
        fuse = Fuse()
        self.started += 1
        process = Process(FusedLedger(self.ledger, fuse), self.clock, FusedCanon(self, fuse), f"p{self.started}")  # type: ignore[arg-type]
        inbox = process.inbox

        async def hand_over(message) -> None:
            if inbox.failures:
                raise inbox.failures.pop()
            await fuse.run(lambda: self._woken(message))

        inbox.hand_over = hand_over  # type: ignore[method-assign]
        return process, fuse

    async def _woken(self, message) -> None:
        approval_id = message.message_id.split(":", 1)[1]
        self.wakes[approval_id] += 1
        self.tell(approval_id, "allow" if "resolved: allow" in message.text else "deny")

    def tell(self, approval_id: str, decision: str) -> None:
        self.told.setdefault(approval_id, set()).add(decision)


class Simulation:
    """Chaos first, then one process that stays up. The same seed gives the same run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.background: list[asyncio.Task[Any]] = []
        self.runner = asyncio.Runner()
        self.world = World()
        self.processes = [self.world.start(), self.world.start()]

    def go(self, work) -> Any:
        async def guarded():
            try:
                return await work
            except (Dead, CanonError, LedgerError) as error:
                return error

        async def bounded():
            task = asyncio.ensure_future(guarded())
            await settle(60)
            if not task.done():
                self.background.append(task)
                return None
            return task.result()

        return self.runner.run(bounded())

    def ask(self, which):
        if len(decode(self.world.ledger.document)) < 3:
            self.go(self.processes[which][0].ask(timeout_ms=3_600_000))

    def a_receipt_kills_the_process_on_the_way(self, which, pick, left, after):
        if (approval_id := self.pick(pick)) is not None:
            self.light_a_fuse(which, left, after)
            self.go(self.processes[which][0].receiver.offer(receipt(approval_id)))

    def a_check_kills_the_process_on_the_way(self, which, pick, left, after):
        self.light_a_fuse(which, left, after)
        self.check(which, pick)

    def check(self, which, pick):
        approval_id = self.pick(pick)
        if approval_id is None:
            return
        process = self.processes[which][0]
        result = self.go(process.desk.consume(process.canon, approval_id, wake=False))
        if isinstance(result, dict):
            assert ("decision" in result) == (result["status"] == "resolved")
            if result["status"] == "resolved":
                self.world.tell(approval_id, result["decision"])

    def a_person_answers(self, pick, decision, heard, which):
        approval_id = self.pick(pick)
        found = self.world.server.requests.get(approval_id or "")
        if found is None or found["answer"] is not None or self.world.clock.now_ms() > found["until"]:
            return
        found["answer"] = decision
        if heard:
            self.go(self.processes[which][0].receiver.offer(receipt(approval_id)))

    def a_forged_receipt_arrives(self, pick, which):
        if (approval_id := self.pick(pick)) is not None:
            self.go(self.processes[which][0].receiver.offer(receipt(approval_id, senderId="stranger")))

    def scan(self, which):
        self.go(self.processes[which][0].receiver.scan())

    def time_passes(self, seconds):
        self.runner.run(self.world.clock.advance(seconds))

    def the_server_will_fail(self, fault):
        self.world.server.faults.append(fault)

    def light_a_fuse(self, which, left, after):
        fuse = self.processes[which][1]
        fuse.left, fuse.after = left, after

    def the_host_refuses_the_next_wake(self, which):
        self.processes[which][0].inbox.failures.append(RuntimeError("busy"))

    def restart(self, which):
        process, fuse = self.processes[which]
        fuse.dead = True
        self.world.crashes += 1
        self.runner.run(process.tasks.drain(0))
        self.processes[which] = self.world.start()
        self.go(self.processes[which][0].receiver.reconcile())

    def stored_decisions_are_the_peoples(self):
        for approval_id, entry in decode(self.world.ledger.document).items():
            if "decision" in entry:
                request = self.world.server.requests[approval_id]
                assert (entry["decision"], entry["respondedBy"]) == (request["answer"], request["by"])
        for approval_id, decisions in self.world.told.items():
            assert decisions == {self.world.server.requests[approval_id]["answer"]}

    def pick(self, index: int) -> str | None:
        known = sorted(decode(self.world.ledger.document))
        return known[index % len(known)] if known else None

    def chaos(self, steps: int) -> None:
        for _ in range(steps):
            self.one_step()
            self.stored_decisions_are_the_peoples()

    def one_step(self) -> None:
        draw = self.random
        which, pick, left, after = draw.randrange(2), draw.randrange(3), draw.randrange(7), draw.random() < 0.5
        decision, heard = draw.choice(["allow", "deny"]), draw.random() < 0.6
        ways: list[tuple[int, Callable[[], None]]] = [
            (4, lambda: self.ask(which)),
            (4, lambda: self.check(which, pick)),
            (5, lambda: self.a_person_answers(pick, decision, heard, which)),
            (1, lambda: self.a_forged_receipt_arrives(pick, which)),
            (3, lambda: self.scan(which)),
            (4, lambda: self.time_passes(draw.choice([1, 31, 61, 301]))),
            (2, lambda: self.the_server_will_fail(draw.choice(["before", "after", "status"]))),
            (1, lambda: self.light_a_fuse(which, left, after)),
            (3, lambda: self.a_receipt_kills_the_process_on_the_way(which, pick, left + 2, after)),
            (2, lambda: self.a_check_kills_the_process_on_the_way(which, pick, left % 4, after)),
            (1, lambda: self.the_host_refuses_the_next_wake(which)),
            (2, lambda: self.restart(which)),
        ]
        draw.choices([step for _, step in ways], weights=[weight for weight, _ in ways])[0]()

    def close(self) -> None:
        # The second process dies; the first stays up, or starts again if it is dead already.
        self.processes[1][1].dead = True
        self.world.crashes += 1
        self.processes[0][1].left = None
        if self.processes[0][1].dead:
            self.restart(0)
        self.world.server.faults.clear()
        survivor = self.processes[0][0]
        for _ in range(25):
            self.runner.run(self.world.clock.advance(31))
            self.go(survivor.receiver.scan())
        self.runner.run(self.world.clock.advance(3_600_000 / 1000 + 61))
        for _ in range(40):
            self.go(survivor.receiver.scan())
            self.runner.run(self.world.clock.advance(31))
        entries = decode(self.world.ledger.document)
        for approval_id, entry in entries.items():
            assert entry["status"] not in {"creating", "consuming", "pending"}, (approval_id, entry)  # I13, I14, D25
            request = self.world.server.requests.get(approval_id)
            if request is not None and request["answer"] is not None and entry["status"] == "resolved":
                # I15: told by a wake or by a check. A crash may have swallowed a check's answer (K16), nothing else.
                assert approval_id in self.world.told or "wakeStatus" not in entry
                assert self.world.wakes[approval_id] <= 1 + self.world.crashes  # I16
                if entry.get("wakeStatus"):
                    assert entry["wakeStatus"] == "delivered"
        for process, _ in self.processes:
            self.runner.run(process.tasks.drain(0))
        for task in self.background:
            task.cancel()
        self.runner.run(settle())
        self.runner.close()


@pytest.mark.parametrize("start", range(0, 160, 40))
def test_i2_to_i17_hold_whoever_crashes_wherever(start):
    seen: Counter[str] = Counter()
    for seed in range(start, start + 40):
        run = Simulation(seed)
        run.chaos(30)
        seen.update(entry["status"] for entry in decode(run.world.ledger.document).values())
        try:
            run.close()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert {"pending", "resolved"} <= set(seen), seen  # the runs were worth it
