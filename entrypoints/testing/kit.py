"""The whole plugin on in-memory twins: the production composition with its outer ends replaced, on a made-up clock."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import Any, Self, cast, final

from canon_hermes_plugin.container import PluginContainer, services_of
from canon_hermes_plugin.domain.approvals.ownership import LedgerIdentity
from canon_hermes_plugin.infrastructure.hermes import rehearsal
from canon_hermes_plugin.infrastructure.hermes.config import Settings
from canon_hermes_plugin.infrastructure.hermes.live import ToolSide
from canon_hermes_plugin.infrastructure.hermes.services import Services
from canon_hermes_plugin.infrastructure.memory.access import MemoryAccess
from canon_hermes_plugin.infrastructure.memory.approval_store import MemoryLedger
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.canon_stream import MemoryCanonStream
from canon_hermes_plugin.infrastructure.memory.checkpoints import MemoryCheckpoints
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaCache, MemoryMediaFetcher
from canon_hermes_plugin.infrastructure.memory.outbox import MemoryOutbox
from canon_hermes_plugin.infrastructure.memory.questions import MemoryQuestions
from canon_hermes_plugin.infrastructure.memory.time import SeededIds
from canon_hermes_plugin.infrastructure.memory.virtual_loop import LoopClock, LoopThread
from canon_hermes_plugin.ports.canon import CanonApi
from canon_hermes_plugin.ports.canon_stream import StreamEvent
from canon_hermes_plugin.ports.errors import CanonError
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret
from canon_hermes_plugin.testing.canon import AGENT, FakeCanon, Parts
from canon_hermes_plugin.testing.host import HostLinks, ScriptedHost
from canon_hermes_plugin.testing.script import checked_seconds
from canon_hermes_plugin.testing.turn import CanonTurn, bind_session

START_MS = 1_700_000_000_000
API_KEY = "agk_live_testing_key"
NOT_ENTERED = "this CanonHermes is not entered yet: write `with CanonHermes() as plugin:` and use `plugin` inside of it"
CLOSED = "this CanonHermes is closed: what it was used for belongs inside of `with CanonHermes() as plugin:`"


def nowhere() -> Connection:
    """Return a connection that leads nowhere."""
    environment = Environment(
        "canon-dev-v1", "canonmail-dev", "https://canon.example", "https://canon.example", "http://localhost:9", "web"
    )
    return Connection(Secret(API_KEY), environment, "direct", "testing")


def override(container: PluginContainer, **parts: object) -> None:
    """Put each part in the place of the provider of its name."""
    for name, part in parts.items():
        provider: Any = getattr(container, name)
        provider.override(part)


@final
class CanonHermes:
    """The plugin under test, as a context manager. Usable from plain tests and from tests with an event loop.

    Attributes:
        canon: what people do and see.
        host: what the agent does.
        questions: the commands and questions the host itself holds back.
        clock: the made-up time; :meth:`advance` lets it pass.
        outbox: what is being delivered, as on a disk: put entries in before entering and the plugin says them.
        container: the composition; override more of it before entering.
    """

    def __init__(self, seed: int = 0, settings: Settings | None = None) -> None:
        self._machine = LoopThread()
        self.clock = LoopClock(self._machine.loop, START_MS)
        twin, stream, files = MemoryCanon(AGENT, self.clock), MemoryCanonStream(self.clock), MemoryMediaFetcher()
        self.ledger = MemoryLedger(self.clock.now_ms)
        self.outbox = MemoryOutbox()
        self.host = ScriptedHost(self._machine.loop)
        self.questions = MemoryQuestions()
        self.canon = FakeCanon(Parts(self._machine, twin, stream, files))
        self.files = MemoryMediaCache()
        self.container = PluginContainer(connection=nowhere(), settings=settings or Settings())
        self._override(seed, twin, stream, files)
        # As on every stream. A new agent that never heard of a place would look for one every second.
        stream.emit(StreamEvent("connected", {}, "evt_00000000"))
        self._services: Services | None = None
        self._refused: list[CanonError] = []
        self._turns: list[CanonTurn] = []
        self._machine.barred = NOT_ENTERED

    def _override(self, seed: int, twin: MemoryCanon, stream: MemoryCanonStream, files: MemoryMediaFetcher) -> None:
        access, ids = MemoryAccess(cast("CanonApi", _OnLoop(self._machine, twin))), SeededIds(seed)
        override(
            self.container,
            clock=self.clock,
            ids=ids,
            brief=access,
            tool_side=ToolSide(access, ToolClock(self._machine, self.clock), ids),
            api=twin,
            stream=stream,
            fetcher=files,
            media_cache=self.files,
            ledger=self.ledger,
            outbox=self.outbox,
            checkpoint_store=MemoryCheckpoints(),
            ledger_identity=LedgerIdentity(AGENT.agent_id),
            questions=self.questions,
            lanes=self.host.lanes,
            beat=self.container.decisions.provided.beat,
        )

    def __enter__(self) -> Self:
        """Connect.

        Raises:
            RuntimeError: this or another one is entered, or this one was closed.
        """
        if self._machine.barred != NOT_ENTERED:
            raise RuntimeError(self._machine.barred or "this CanonHermes is entered already; use it as it is")
        rehearsal.begin(self)
        self._machine.barred = None
        try:
            self._machine.run(self._open())
            self._machine.advance()
        except BaseException:
            self._shut()
            raise
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            self.close()
        except AssertionError:
            if error is None:  # else the test says itself why it failed
                raise
        except ExceptionGroup as failures:
            if error is None:
                raise
            error.add_note("perhaps because of this:\n" + "".join(traceback.format_exception(failures)))

    def turn(self) -> CanonTurn:
        """Return what puts code into a turn: ``with plugin.turn()("hello", by="dana"): …``.

        Raises:
            RuntimeError: the plugin is not entered.
        """
        self._machine.check()
        self._turns.append(CanonTurn(self.canon, self.host))
        return self._turns[-1]

    def advance(self, seconds: float) -> None:
        """Let time pass, everything due in it included; 0 lets happen what is due now.

        Args:
            seconds: 0 or more. A day takes some tenths of a real second.

        Raises:
            TypeError: ``seconds`` is no number.
            ValueError: it is negative or has no end.
            RuntimeError: the plugin is not entered.
            TimeoutError: time does not get any further; the text says how far it got and what it waits for.
        """
        self._machine.advance(checked_seconds(seconds))

    def close(self) -> None:
        """Disconnect and leave nothing behind; idempotent.

        Raises:
            ExceptionGroup: a script failed in another way than by ``fails()``, and nobody was told yet.
            AssertionError: what the test prepared was never used: an answer, a decision, a script.
        """
        if self._machine.barred == CLOSED:
            return
        unused = [*self.canon.unused(), *self.host.unused()]
        self._shut()
        failures = self.host.untold()
        if failures:
            raise ExceptionGroup("scripts of the host failed", failures)
        if unused:
            raise AssertionError("; ".join(unused))

    def _shut(self) -> None:
        try:
            for turn in self._turns:
                turn.abandon()  # the caller's code runs in no turn any more
            if self._services is not None:
                self._disconnect(self._services)
        finally:
            self._services = None
            self._machine.barred = CLOSED
            try:
                self._machine.close()
            finally:
                rehearsal.end(self)

    def _disconnect(self, services: Services) -> None:
        self._machine.run(self.host.lanes.stop())
        self._machine.run(services.runtime.stop())
        closing = asyncio.run_coroutine_threadsafe(services.turns.close(), self._machine.loop)
        self._machine.advance(60)
        closing.result(0)

    async def _open(self) -> None:
        self._services = services = services_of(self.container)
        links = HostLinks(
            services.turns,
            self.container.shelf(),
            services.verbosity,
            services.background,
            bind_session,
            self.container.identity().owner_id,
        )
        self.host.work_with(links)
        self.host.lanes.per_user = self.container.settings().group_sessions_per_user
        await services.runtime.start(self, self._refused.append, is_reconnect=False)


@final
class ToolClock:
    """The clock of code on tool threads: whoever waits on it lets the plugin's time pass."""

    def __init__(self, machine: LoopThread, clock: LoopClock) -> None:
        self._machine = machine
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        # Real time never stands still between two looks at a clock: neither may this one.
        await asyncio.to_thread(self._machine.wait, max(0.001, seconds))


class _OnLoop:
    """Stands for an object whose coroutine methods run on another loop than the caller's, for tool threads."""

    def __init__(self, machine: LoopThread, inner: object) -> None:
        self._machine = machine
        self._inner = inner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._inner, name)

        async def call(*arguments: object, **options: object) -> object:
            loop = self._machine.loop
            waiting = loop.waiting(method(*arguments, **options))
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(waiting, loop))

        return call
