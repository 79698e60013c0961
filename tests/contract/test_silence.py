"""Silence: the public suites on the connected adapters' turns and on the twins."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.coordinator import TurnCoordinator
from canon_hermes_plugin.domain.turns.model import TurnStart
from canon_hermes_plugin.infrastructure.hermes import live
from canon_hermes_plugin.infrastructure.hermes.live import LiveAdapter, LiveAdapters, SilenceReport, TurnSilencer
from canon_hermes_plugin.infrastructure.memory.access import MemoryAccess
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.lanes import MemoryLanes
from canon_hermes_plugin.infrastructure.memory.outbox import MemoryOutbox
from canon_hermes_plugin.infrastructure.memory.silence import MemorySilencer, MemorySilenceReporter, QuietTurn
from canon_hermes_plugin.infrastructure.memory.time import RecordedTasks, SeededIds, VirtualClock
from canon_hermes_plugin.ports.host import SessionSnapshot
from canon_hermes_plugin.testing.contracts import SilencerContract, SilenceReporterContract


class NoSession:
    """A host that carries no session into the calling context."""

    def snapshot(self):
        return SessionSnapshot()


class Connected:
    """One connected adapter with a real coordinator."""

    def __init__(self):
        clock = VirtualClock()
        self.canon = MemoryCanon(clock=clock)
        self.turns = TurnCoordinator(
            canon=self.canon,
            lanes=MemoryLanes(),
            clock=clock,
            ids=SeededIds(),
            tasks=RecordedTasks(),
            outbox=MemoryOutbox(),
        )
        self.adapters, self.opened = LiveAdapters(), {}
        self.silencer = TurnSilencer(self.adapters, NoSession())
        unused = None
        self.adapters.add(LiveAdapter(self.turns, unused, unused, unused, unused, MemoryAccess(self.canon)))

    async def begin(self, turn, conversation_id):
        start = TurnStart(conversation_id, f"key-{turn}", "group", f"msg-{turn}", "user_dana")
        self.opened[turn] = await self.turns.open(start)
        current_turn.set(self.opened[turn])

    async def end(self, turn):
        await self.turns.complete(self.opened[turn], "success")

    def silenced(self):
        return [name for name, turn in self.opened.items() if turn.silenced]

    async def close(self):
        await self.turns.close()


class TwinTurns:
    """The twin and its turns."""

    def __init__(self):
        self.silencer, self.opened = MemorySilencer(), {}

    async def begin(self, turn, conversation_id):
        self.opened[turn] = QuietTurn(conversation_id)
        self.silencer.enter(self.opened[turn])

    async def end(self, turn):
        self.opened[turn].over = True

    def silenced(self):
        return [name for name, turn in self.opened.items() if turn.silenced]

    async def close(self):
        pass


class Reported:
    """A Canon that takes reports, refuses one, or leaves one without an answer."""

    def __init__(self):
        self.taken, self._error, self._hangs = [], None, False

    async def call_verb(self, verb, *, envelope, value):
        assert verb == "no_reply"
        if self._hangs:
            await asyncio.Event().wait()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        self.taken.append((envelope, value))
        return {"status": "acknowledged"}

    def reports(self):
        return self.taken

    def fail(self, error):
        self._error = error

    def hang(self):
        self._hangs = True

    @asynccontextmanager
    async def brief(self, seconds):
        assert 0 < seconds <= 3
        yield self

    async def close(self):
        pass


class OwningAdapter(Reported):
    """The real reporter: one connected adapter owns the open turn."""

    def __init__(self):
        super().__init__()
        adapters, unused = LiveAdapters(), None
        adapters.add(LiveAdapter(self, unused, unused, unused, unused, self))
        self.reporter = SilenceReport(adapters)

    def open_turns(self, conversation_id):
        return ("a turn",) if conversation_id == "conv_1" else ()


class TwinReporter(Reported):
    """The twin."""

    def __init__(self):
        super().__init__()
        self.reporter = MemorySilenceReporter(self, seconds=0.05)


class TestTurnsOfTheAdapters(SilencerContract):
    subject = TurnSilencer

    def factory(self, tmp_path):
        return Connected()


class TestTwinSilencer(SilencerContract):
    subject = MemorySilencer

    def factory(self, tmp_path):
        return TwinTurns()


class TestReportOfTheAdapters(SilenceReporterContract):
    subject = SilenceReport

    @pytest.fixture(autouse=True)
    def _shorter(self, monkeypatch):
        monkeypatch.setattr(live, "REPORT_SECONDS", 0.05)

    def factory(self, tmp_path):
        return OwningAdapter()


class TestTwinReporter(SilenceReporterContract):
    subject = MemorySilenceReporter

    def factory(self, tmp_path):
        return TwinReporter()
