"""A rig for turns over real HTTP: the loopback Canon, the composed client and coordinator, the host's usual calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from canon_hermes_plugin.container import PluginContainer, services_of
from canon_hermes_plugin.domain.turns.model import HostText, TurnStart
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.canon.media import HttpMediaFetcher
from canon_hermes_plugin.infrastructure.hermes.adapter import build_adapter
from canon_hermes_plugin.infrastructure.hermes.config import Access, Settings
from canon_hermes_plugin.infrastructure.memory.lanes import MemoryLanes
from canon_hermes_plugin.infrastructure.sandbox.records import RequestRecord
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret
from canon_hermes_plugin.testing.kit import override


def monotonic_ms() -> int:
    """The clock of both sides, so that arrivals compare with what the test measures."""
    return time.monotonic_ns() // 1_000_000


def connection_to(canon: LoopbackCanon) -> Connection:
    identity, base = canon.identity, canon.base_url
    environment = Environment(identity.environment_id, identity.project_id, base, base, "http://localhost:9", "k")
    return Connection(Secret(identity.api_key), environment, "direct", "t")


class Rig:
    """Everything the container composes but the host's sessions, against a Canon in another thread."""

    def __init__(self) -> None:
        self.canon = LoopbackCanon(clock=monotonic_ms)
        self._conversations = 0

    def compose(self, **parts: object) -> None:
        """Build the composition; ``parts`` replace providers."""
        container = PluginContainer(connection=connection_to(self.canon), settings=Settings())
        override(container, lanes=MemoryLanes(), **parts)
        self.api, self.turns = container.api(), container.turns()

    def conversation(self) -> str:
        """A fresh direct conversation."""
        self._conversations += 1
        name = f"conv_bench_{self._conversations}"
        self.canon.add_conversation(name, "user_dana")
        return name

    async def open(self, conversation: str | None = None, message_id: str = "msg_1") -> Turn:
        conversation = conversation or self.conversation()
        key = f"agent:main:canon:dm:{conversation}"
        return await self.turns.open(TurnStart(conversation, key, kind="direct", message_id=message_id))

    async def stream(self, turn: Turn, snapshots: Sequence[str]) -> None:
        """Show growing text as the host does, and finalize it with the last snapshot."""
        bubble = await self.show(turn, None, snapshots[0])
        for snapshot in snapshots[1:]:
            await self.show(turn, bubble, snapshot)
        await self.finalize(turn, bubble, snapshots[-1])

    async def show(self, turn: Turn, bubble: str | None, text: str) -> str:
        """One preview; returns its bubble."""
        marks = {"expect_edits": True} if bubble is None else {"finalize": False, "bubble": bubble}
        return (await self.turns.text(turn, HostText(turn.conversation_id, f"{text} ▉", **marks))).message_id

    async def finalize(self, turn: Turn, bubble: str, text: str) -> None:
        """The last edit, and what the host tells about the run."""
        await self.turns.text(turn, HostText(turn.conversation_id, text, finalize=True, bubble=bubble))
        self.turns.answer_confirmed(turn, text)

    async def settle(self) -> None:
        """Wait for everything the turns left in the background."""
        await self.turns.close()

    def arrivals(self, conversation: str, *routes: str) -> list[RequestRecord]:
        """The requests about one conversation, in order of arrival."""
        records = self.canon.requests(*routes)
        return [record for record in records if (record.body or {}).get("conversationId") == conversation]


@pytest.fixture
async def rig(homes: Path) -> AsyncIterator[Rig]:
    del homes  # what is being delivered lies there, durably
    made = Rig()
    with made.canon:
        made.compose()
        yield made
        await made.settle()
        await made.api.close()
        await asyncio.sleep(0)


class Plugin:
    """The whole plugin in this process, from the stream to the answer, on the host's own adapter base class.

    Only the run behind it is scripted: ``run(plugin, event)`` is awaited where the host would run its agent, inside the
    turn's own context, and returns the text to deliver or ``None`` when it streamed.
    """

    def __init__(self, run: Callable[[Plugin, Any], Awaitable[str | None]]) -> None:
        self._run = run
        self.canon = LoopbackCanon()

    async def start(self) -> None:
        from gateway.config import PlatformConfig
        from gateway.platform_registry import PlatformEntry, platform_registry

        entry = PlatformEntry(name="canon", label="Canon", adapter_factory=lambda _: None, check_fn=lambda: True)
        platform_registry.register(entry)
        self.canon.start()
        settings = Settings(access=Access(everyone=True))
        self.container = PluginContainer(connection=connection_to(self.canon), settings=settings)
        self.container.fetcher.override(HttpMediaFetcher(lambda url: True))
        self.services = services_of(self.container)
        self.adapter = build_adapter(PlatformConfig(enabled=True), settings, lambda: self.services)
        self.adapter.set_message_handler(lambda event: self._run(self, event))
        assert await self.adapter.connect()
        await self.canon.until(lambda canon: canon.connected)

    async def idle(self) -> None:
        """Wait until no session works and nothing of a turn is left in the background."""
        lanes = self.services.lanes
        while lanes._lanes or self.adapter._active_sessions:
            await asyncio.sleep(0.02)
        await self.services.turns.close()

    async def stop(self) -> None:
        await self.idle()
        await self.adapter.disconnect()
        await self.adapter.cancel_background_tasks()
        await self.container.tasks().drain(1)
        await self.container.human_tasks().drain(1)
        await self.container.api().close()
        self.canon.stop()


@pytest.fixture
def homes(tmp_path, monkeypatch) -> Path:
    """Homes of the host and of the plugin for this test alone."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    monkeypatch.setenv("CANON_HOME", str(tmp_path / "canon"))
    return tmp_path


@pytest.fixture
def plugin_type() -> type[Plugin]:
    return Plugin
