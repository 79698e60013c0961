"""The host's side: public suites on the queue over the host's real base class, and on its twin in the kit's host."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType, SimpleNamespace

import pytest
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.infrastructure.hermes.host import HermesSessionContext
from canon_hermes_plugin.infrastructure.hermes.lanes import HermesLanes
from canon_hermes_plugin.infrastructure.hermes.shelf import Shelf
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.lanes import MemoryLanes
from canon_hermes_plugin.infrastructure.memory.session import MemorySession
from canon_hermes_plugin.infrastructure.system import BackgroundTasks, SystemClock
from canon_hermes_plugin.testing.contracts import (
    HostInboxContract,
    HostLanesContract,
    SessionContextContract,
    TurnLog,
)
from canon_hermes_plugin.testing.contracts.host import GROUP, OWNER
from canon_hermes_plugin.testing.host import HostLinks, ScriptedHost
from canon_hermes_plugin.testing.script import Script
from canon_hermes_plugin.testing.turn import bind_session

from ..infrastructure.hermes.stage import (  # noqa: TID252 - another room of the tests
    ScriptedRunner,
    ScriptedTurns,
    Stage,
    register_platform,
)


class LoggedTurns(ScriptedTurns):
    """Tells the suite what is opened and how it ends."""

    def __init__(self, log):
        super().__init__()
        self.log = log

    async def open(self, start):
        turn = await super().open(start)
        turn.logged = self.log.opened(start)
        return turn

    async def complete(self, turn, outcome):
        await asyncio.sleep(0)
        turn.logged.outcome = outcome
        await super().complete(turn, outcome)


class LoggedRunner(ScriptedRunner):
    """Tells the suite what the agent is given."""

    def __init__(self):
        super().__init__()
        self.agents = {}
        self.renewed = []

    async def handle(self, event):
        if event.text == "/new":
            self.renewed.append(self.lanes.key_of(event))
        return await super().handle(event)

    def began(self, agent, event):
        logged = current_turn.get().logged
        logged.text = event.text
        self.agents[logged] = agent


class Hermes:
    """The plugin's queue, and an adapter built on the host's own base class."""

    def __init__(self):
        register_platform()
        self.log = TurnLog()
        self._runner = LoggedRunner()
        self._stage = Stage(turns=LoggedTurns(self.log), runner=self._runner)
        self._stage.groups.add(GROUP)
        self.inbox = self.lanes = self._stage.lanes
        self.renewed = self._runner.renewed

    async def close(self):
        await self._stage.close()

    @property
    def released(self):
        return self._stage.released

    @property
    def refused(self):
        return [text.reply_to for turn, text in self._stage.turns.texts if turn is None and text.reply_to]

    def finish(self, turn):
        self._runner.agents[turn].done.set()

    def joined(self, turn):
        return self._runner.agents[turn].steered

    def refreshes_typing(self, conversation_id):
        return conversation_id not in self._stage.adapter._typing_paused

    def disconnect(self):
        self.lanes.unbind(self._stage.adapter)

    def connect(self):
        self._stage.adapter = self._stage.new_adapter()


class Kit:
    """The host of the test kit, whose lanes are the twin of the plugin's queue."""

    def __init__(self, *, interleave=True):
        self.log = TurnLog()
        self._canon, self._tasks = MemoryCanon(), BackgroundTasks()
        self._turns = LoggedTurns(self.log)
        self._host = ScriptedHost()
        self._host.script_for = self._script
        shelf = Shelf(self._canon, self._tasks, SystemClock())
        self._host.work_with(
            HostLinks(self._turns, shelf, lambda _: "verbose", lambda _: None, lambda _: None, lambda: OWNER)
        )
        self.inbox = self.lanes = self._host.lanes
        self.lanes.interleave = interleave
        self.renewed = self.lanes.renewed
        self.connect, self.disconnect = self.lanes.connect, self.lanes.disconnect
        self._ends = {}

    async def close(self):
        await self.lanes.stop()
        await self._tasks.drain(0.1)
        assert self._host.failures == []

    def _script(self, message):
        async def work(stage):
            logged = stage.turn.logged
            end = self._ends[logged] = asyncio.Event()
            logged.text = message.text
            await end.wait()

        return Script().runs(work)

    @property
    def released(self):
        return [message_id for _, message_id in self._canon.released]

    @property
    def refused(self):
        return [text.reply_to for turn, text in self._turns.texts if turn is None and text.reply_to]

    def finish(self, turn):
        self._ends[turn].set()

    def joined(self, turn):
        return [message.text for message in self._host.interleaved]

    def refreshes_typing(self, conversation_id):
        return conversation_id not in self.lanes.paused


class TestHermesInbox(HostInboxContract):
    subject = HermesLanes

    def factory(self, tmp_path):
        return Hermes()


class TestHermesLanes(HostLanesContract):
    subject = HermesLanes

    def factory(self, tmp_path):
        return Hermes()


class TestMemoryInbox(HostInboxContract):
    subject = MemoryLanes

    def factory(self, tmp_path):
        return Kit()


class TestMemoryLanes(HostLanesContract):
    subject = MemoryLanes

    def factory(self, tmp_path):
        return Kit()


class TestMemoryLanesWithoutInterleaving(HostLanesContract):
    subject = MemoryLanes

    def factory(self, tmp_path):
        return Kit(interleave=False)


class HermesSession:
    """The host's own session variables."""

    NAME = "gateway.session_context"

    def __init__(self):
        self.session = HermesSessionContext()
        self._module = __import__(self.NAME, fromlist=["get_session_env"])

    def bind(self, raw):
        bind_session(raw)

    def clear(self):
        self._module.clear_session_vars([])

    def break_down(self):
        broken = ModuleType(self.NAME)
        broken.get_session_env = self._raise
        sys.modules[self.NAME] = broken

    @staticmethod
    def _raise(*_):
        raise LookupError("no context")

    async def close(self):
        sys.modules[self.NAME] = self._module


class HermesWithoutSessions(HermesSession):
    """A host that has no such module, or another one of that name."""

    def __init__(self, broken):
        super().__init__()
        self._broken = broken

    def break_down(self):
        sys.modules[self.NAME] = self._broken


class TwinSession:
    """The twin."""

    def __init__(self):
        self.session = MemorySession()
        self.bind, self.clear = self.session.bind, self.session.clear

    def break_down(self):
        self.session.unreadable = True

    async def close(self):
        pass


class TestHermesSession(SessionContextContract):
    subject = HermesSessionContext

    @pytest.fixture(autouse=True)
    def _outside(self, monkeypatch):
        """Outside of turns the host reads the environment."""
        for name in ("PLATFORM", "CHAT_ID", "USER_ID", "USER_NAME", "ID", "KEY", "MESSAGE_ID"):
            monkeypatch.delenv(f"HERMES_SESSION_{name}", raising=False)

    def factory(self, tmp_path):
        return HermesSession()


class TestMemorySession(SessionContextContract):
    subject = MemorySession

    def factory(self, tmp_path):
        return TwinSession()


@pytest.mark.parametrize("broken", [None, ModuleType("gateway.session_context"), SimpleNamespace(get_session_env=1)])
def test_a_host_without_session_variables_says_nothing_about_turns(broken):
    driver = HermesWithoutSessions(broken)
    driver.break_down()
    try:
        assert driver.session.snapshot() == MemorySession().snapshot()
    finally:
        asyncio.run(driver.close())
