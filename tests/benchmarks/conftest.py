"""A rig for turns over real HTTP: the loopback Canon, the composed client and coordinator, the host's usual calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

import pytest
from canon_hermes_plugin.container import PluginContainer
from canon_hermes_plugin.domain.turns.model import HostText, TurnStart
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.hermes.config import Settings
from canon_hermes_plugin.infrastructure.memory.lanes import MemoryLanes
from canon_hermes_plugin.infrastructure.sandbox.records import RequestRecord
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret


def monotonic_ms() -> int:
    """The clock of both sides, so that arrivals compare with what the test measures."""
    return time.monotonic_ns() // 1_000_000


class Rig:
    """Everything the container composes but the host's sessions, against a Canon in another thread."""

    def __init__(self) -> None:
        self.canon = LoopbackCanon(clock=monotonic_ms)
        self._conversations = 0

    def compose(self) -> None:
        identity, base = self.canon.identity, self.canon.base_url
        environment = Environment(identity.environment_id, identity.project_id, base, base, "http://localhost:9", "k")
        connection = Connection(Secret(identity.api_key), environment, "direct", "t")
        container = PluginContainer(connection=connection, settings=Settings())
        container.lanes.override(MemoryLanes())
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
async def rig() -> AsyncIterator[Rig]:
    made = Rig()
    with made.canon:
        made.compose()
        yield made
        await made.settle()
        await made.api.close()
        await asyncio.sleep(0)
