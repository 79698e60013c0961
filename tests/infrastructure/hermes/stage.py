"""A stage with the host's real adapter base class: only the run behind it is scripted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from canon_hermes_plugin.domain.turns.model import Ack
from canon_hermes_plugin.infrastructure.hermes import adapter as adapter_module
from canon_hermes_plugin.infrastructure.hermes.config import Access, Settings
from canon_hermes_plugin.infrastructure.hermes.lanes import HermesLanes
from canon_hermes_plugin.infrastructure.hermes.shelf import Shelf
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.system import BackgroundTasks, SystemClock
from canon_hermes_plugin.ports.host import InboundMessage


async def until(condition: Callable[[], Any], seconds: float = 5.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition never came true"
        await asyncio.sleep(0.005)
    return found


@dataclass(eq=False)
class ScriptedAgent:
    """A run that ends when told to."""

    done: asyncio.Event = field(default_factory=asyncio.Event)
    interrupts: int = 0
    steered: list[str] = field(default_factory=list)
    leftover: str | None = None

    def interrupt(self, message: str | None = None) -> None:
        assert message is None, "a text handed to interrupt runs inside the same lifecycle"
        self.interrupts += 1
        self.done.set()

    def steer(self, text: str) -> bool:
        self.steered.append(text)
        return True

    def _drain_pending_steer(self) -> str | None:
        return self.leftover


class ScriptedRunner:
    """The part of the gateway object that the plugin borrows."""

    def __init__(self) -> None:
        self._running_agents: dict[str, Any] = {}
        self._queued_events: dict[str, list[Any]] = {}
        self._draining = False
        self.subagents = False
        self.compressing = False
        self.building: asyncio.Event | None = None
        self.asking: asyncio.Event | None = None
        self.runs: list[str] = []
        self.delegated: list[Any] = []
        self.lanes: HermesLanes | None = None

    def _profile_name_for_source(self, source: Any) -> None:
        return None

    def _is_user_authorized(self, source: Any) -> bool:
        return True

    def _agent_has_active_subagents(self, agent: Any) -> bool:
        return self.subagents

    async def _session_has_compression_in_flight(self, key: str) -> bool:
        return self.compressing

    async def busy(self, event: Any, key: str) -> bool:
        self.delegated.append(event)
        return True

    async def handle(self, event: Any) -> str | None:
        assert self.lanes is not None
        key = self.lanes.key_of(event)
        if event.text == "/stop":
            agent = self._running_agents.pop(key, None)
            if agent is not None:
                agent.done.set()
            return "stopped"
        if event.text.startswith("/"):
            return "done"
        self.runs.append(event.text)
        if self.building is not None:
            self._running_agents[key] = object()  # the host's "not started yet" placeholder
            await self.building.wait()
        agent = ScriptedAgent()
        self._running_agents[key] = agent
        if self.asking is not None:
            await self.asking.wait()
        self.lanes.run_recorded(key)  # the host's first request to the model
        self.began(agent, event)
        try:
            await agent.done.wait()
        finally:
            self._running_agents.pop(key, None)
        return None

    def began(self, agent: ScriptedAgent, event: Any) -> None:
        """The agent works on ``event`` from now on."""

    def agent(self, key: str) -> ScriptedAgent | None:
        return self._running_agents.get(key)


class ScriptedTurns:
    """Counts lifecycles; the turns themselves have their own tests."""

    def __init__(self) -> None:
        self.opened: list[Any] = []
        self.completed: list[tuple[Any, str]] = []
        self.lifted: list[str] = []
        self.recounts = 0
        self.texts: list[Any] = []
        self.slow = 0.0

    async def open(self, start: Any) -> Any:
        self.opened.append(start)
        return SimpleNamespace(start=start)

    async def complete(self, turn: Any, outcome: str) -> None:
        if self.slow:
            await asyncio.sleep(self.slow)
        self.completed.append((turn.start.message_id, outcome))

    def lift_silence(self, turn: Any) -> None:
        self.lifted.append(turn.start.session_key)

    def queue_changed(self, turn: Any) -> None:
        self.recounts += 1

    async def text(self, turn: Any, text: Any) -> Ack:
        self.texts.append((turn, text))
        return Ack(ok=True, message_id=f"id-{len(self.texts)}")

    async def typing(self, turn: Any, conversation_id: str, on: bool, status: str = "thinking") -> None:
        return None


class Stage:
    """Everything a test of the host side touches."""

    def __init__(
        self,
        settings: Settings | None = None,
        turns: ScriptedTurns | None = None,
        runner: ScriptedRunner | None = None,
    ) -> None:
        self.canon = MemoryCanon()
        self.tasks = BackgroundTasks()
        self.turns = turns or ScriptedTurns()
        self.runner = runner or ScriptedRunner()
        self.groups: set[str] = set()
        self.settings = settings or Settings(access=Access(everyone=True))
        self.changes: list[None] = []
        shelf = Shelf(self.canon, self.tasks, SystemClock(), lambda: self.changes.append(None))
        self.lanes = HermesLanes(self.settings, shelf, self.tasks, SystemClock(), lambda: "user_owner")
        self.lanes.serve(self.turns)
        self.runner.lanes = self.lanes
        self.forgotten: list[str] = []
        self.adapters: list[Any] = []
        self.adapter = self.new_adapter()

    def new_adapter(self) -> Any:
        from gateway.config import PlatformConfig

        services = SimpleNamespace(
            turns=self.turns,
            runtime=SimpleNamespace(proven=True, serves=lambda owner: False),
            lanes=self.lanes,
            fetcher=None,
            verbosity=lambda kind: "verbose",
            chat_info=self.chat_info,
            background=lambda conversation_id: None,
            forget_media=lambda conversation_id, message_id: self.forgotten.append(message_id),
        )
        adapter = adapter_module.build_adapter(PlatformConfig(enabled=True), self.settings, lambda: services)
        adapter._opened = services
        adapter.gateway_runner = self.runner
        adapter.set_message_handler(self.runner.handle)
        adapter.set_busy_session_handler(self.runner.busy)
        self.lanes.bind(adapter, self.runner.busy)
        self.adapters.append(adapter)
        return adapter

    def chat_info(self, conversation_id: str) -> dict[str, str]:
        return {"name": conversation_id, "type": "group" if conversation_id in self.groups else "dm"}

    def message(self, number: int, **changes: Any) -> InboundMessage:
        values: dict[str, Any] = {
            "conversation_id": "c1",
            "text": f"text {number}",
            "user_id": "user_dana",
            "message_id": f"msg_{number}",
            "queued": True,
        }
        return InboundMessage(**(values | changes))

    async def say(self, number: int, **changes: Any) -> None:
        await self.lanes.hand_over(self.message(number, **changes))

    @property
    def released(self) -> list[str]:
        return [message_id for _, message_id in self.canon.released]

    async def running(self, text: str, key: str = "agent:main:canon:dm:c1") -> ScriptedAgent:
        await until(lambda: self.runner.runs and self.runner.runs[-1] == text and self.runner.agent(key))
        found = self.runner.agent(key)
        assert found is not None
        return found

    async def idle(self) -> None:
        try:
            await until(lambda: not self.lanes._lanes and not self.adapter._active_sessions)
        except AssertionError as error:
            raise AssertionError(
                f"{self.lanes._lanes} {self.adapter._active_sessions} {self.turns.completed}"
            ) from error

    async def close(self) -> None:
        self.runner._draining = True
        for adapter in self.adapters:
            await adapter.cancel_background_tasks()
        await self.tasks.drain(0.1)


def register_platform() -> None:
    """Let the host know Canon, as the plugin does when it is loaded; registering twice is harmless."""
    from gateway.platform_registry import PlatformEntry, platform_registry

    platform_registry.register(
        PlatformEntry(name="canon", label="Canon", adapter_factory=lambda _: None, check_fn=lambda: True)
    )
