"""One process of the gateway: the production composition, its outer ends replaced; started, stopped, killed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from canon_hermes_plugin.container import PluginContainer, services_of
from canon_hermes_plugin.domain.approvals.creation import ApprovalCreation
from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.approvals.ownership import LedgerIdentity
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.hermes.config import Settings
from canon_hermes_plugin.infrastructure.hermes.live import LIVE
from canon_hermes_plugin.infrastructure.memory.approval_store import MemoryLedger
from canon_hermes_plugin.infrastructure.memory.checkpoints import MemoryCheckpoints
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaCache, MemoryMediaFetcher
from canon_hermes_plugin.infrastructure.memory.outbox import MemoryOutbox
from canon_hermes_plugin.infrastructure.memory.session import MemorySession
from canon_hermes_plugin.infrastructure.memory.time import SeededIds
from canon_hermes_plugin.infrastructure.memory.virtual_loop import LoopClock, VirtualLoop
from canon_hermes_plugin.infrastructure.sandbox.records import SandboxIdentity
from canon_hermes_plugin.ports.errors import LedgerError, OutboxError
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret
from canon_hermes_plugin.testing.host import HostLinks, ScriptedHost
from canon_hermes_plugin.testing.kit import override

from .network import Network, Server, Weather

IDENTITY = SandboxIdentity()


def connection() -> Connection:
    base = "https://canon.example"
    environment = Environment(IDENTITY.environment_id, IDENTITY.project_id, base, base, "http://localhost:9", "web")
    return Connection(Secret(IDENTITY.api_key), environment, "direct", "simulation")


class Disk:
    """The ledger's document and the checkpoint, on a disk that fails, before or after it keeps the bytes."""

    def __init__(self, now_ms: Callable[[], int], rng: random.Random) -> None:
        self._ledger = MemoryLedger(now_ms)
        self.checkpoints = MemoryCheckpoints()
        self._rng = rng
        self.trouble = 0.0
        self.seen: set[str] = set()
        self.outbox = MemoryOutbox()
        self.uninsured: set[str] = set()

    def fails(self) -> bool:
        return self.trouble > 0 and self._rng.random() < self.trouble

    def entries(self):
        return self._ledger

    def attach(self) -> DiskOfProcess:
        return DiskOfProcess(self)

    async def transact(self, decide):
        fails = self._rng.random() < self.trouble
        after = self._rng.random() < 0.5
        if fails:
            self.seen.add("kept, not told" if after else "disk full")
        if fails and not after:
            raise LedgerError("injected: the disk is full")
        result = await self._ledger.transact(decide)
        if fails and after:
            raise LedgerError("injected: the bytes are kept, nobody knows")
        return result


class OutboxOfProcess:
    """A process's handle of the outbox; it fails as the disk does, and dead processes write nothing."""

    def __init__(self, disk: Disk, outbox: MemoryOutbox) -> None:
        self._disk = disk
        self._outbox = outbox
        self.dead = False

    async def keep(self, entry):
        await self._reach()
        if self._disk.fails():
            self._disk.uninsured.add(entry.operation_id)
            raise OutboxError("injected: the disk is full")
        await self._outbox.keep(entry)

    async def forget(self, operation_id):
        await self._reach()
        if self._disk.fails():
            raise OutboxError("injected: the disk refuses")
        await self._outbox.forget(operation_id)

    async def leftover(self):
        await self._reach()
        return await self._outbox.leftover()

    async def _reach(self):
        await asyncio.sleep(0.01)
        if self.dead:
            raise OutboxError("the process is dead")


class DiskOfProcess:
    """A process's handle of the disk; dead processes write nothing."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.dead = False

    async def transact(self, decide):
        await asyncio.sleep(0)
        if self.dead:
            raise LedgerError("the process is dead")
        return await self._disk.transact(decide)

    async def snapshot(self):
        return await self._disk.entries().snapshot()

    async def find(self, approval_id):
        return await self._disk.entries().find(approval_id)

    async def tidy(self):
        return

    async def load(self):
        return await self._disk.checkpoints.load()

    async def save(self, checkpoint):
        await asyncio.sleep(0)
        if not self.dead:
            await self._disk.checkpoints.save(checkpoint)


class GatewayProcess:
    """The plugin in one process."""

    def __init__(self, number: int, loop: VirtualLoop, server: Server, disk: Disk, weather: Weather, seed: int) -> None:
        self.clock = LoopClock(loop)
        self.network = Network(server, weather, random.Random(f"{seed}-network-{number}"))
        self.disk = disk.attach()
        self.outbox = OutboxOfProcess(disk, disk.outbox)
        self.ids = SeededIds(seed * 1009 + number)
        self.host = ScriptedHost(loop)
        self.container = PluginContainer(connection=connection(), settings=Settings())
        session = MemorySession()
        desk = ApprovalDesk(self.disk, self.clock, self.ids, f"process-{number}")
        override(
            self.container,
            clock=self.clock,
            ids=self.ids,
            link=CanonLink(connection(), clock=self.clock, transport=self.network),
            fetcher=MemoryMediaFetcher(),
            media_cache=MemoryMediaCache(),
            ledger=self.disk,
            outbox=self.outbox,
            checkpoint_store=self.disk,
            desk=desk,
            ledger_identity=LedgerIdentity(IDENTITY.agent_id),
            lanes=self.host.lanes,
            beat=self.container.decisions.provided.beat,
        )
        self.services = services_of(self.container)
        self.creation = ApprovalCreation(desk, self.clock, self.ids)
        self.given_up: list[object] = []
        self.host.work_with(
            HostLinks(
                self.services.turns,
                self.container.shelf(),
                self.services.verbosity,
                self.services.background,
                session.bind,
                self.container.identity().owner_id,
            )
        )

    async def start(self) -> None:
        await self.services.runtime.start(self, self.given_up.append)

    async def stop(self) -> None:
        """The gateway stops in order."""
        await self.host.lanes.stop()
        await self.services.runtime.stop()
        await self.services.turns.close()
        await self.container.api().close()

    async def disconnect(self) -> None:
        """The platform disconnects; the process and its turns go on."""
        await self.services.runtime.stop()
        await self.services.turns.close()

    async def kill(self, mine: Callable[[], set[asyncio.Task[object]]]) -> None:
        """Power is lost: nothing the process still tries reaches anybody, and nothing of it runs on."""
        self.network.cut = self.disk.dead = self.outbox.dead = True
        self.host.lanes.disconnect()
        LIVE.remove(self.container.live_adapter())
        while running := mine():  # what is cancelled may begin something
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[object]:
        yield self.container.api()
