"""A bench for turns: the real coordinator over in-memory ports and a clock that only the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from canon_hermes_plugin.domain.turns.coordinator import TurnCoordinator
from canon_hermes_plugin.domain.turns.model import HostText, TurnStart
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.lanes import MemoryLanes
from canon_hermes_plugin.infrastructure.memory.outbox import MemoryOutbox
from canon_hermes_plugin.infrastructure.memory.time import RecordedTasks, SeededIds, VirtualClock, settle
from canon_hermes_plugin.ports.errors import CanonTransportError, OutboxError

CONVERSATION = "conv_81"


class Cable:
    """Leads to something that outlives the process; a dead process reaches nothing."""

    def __init__(self, end: object, error: Exception) -> None:
        self._end = end
        self._error = error
        self.cut = False

    def __getattr__(self, name: str) -> object:
        if self.cut:
            raise self._error
        return getattr(self._end, name)


class Bench:
    """A coordinator with everything around it, and the host's usual calls."""

    def __init__(self, earlier: Bench | None = None, seed: int = 7) -> None:
        """``earlier`` is a process that died: Canon, the disk and the time outlive it."""
        self.clock = earlier.clock if earlier else VirtualClock()
        self.canon = earlier.canon if earlier else MemoryCanon(clock=self.clock)
        self.outbox = earlier.outbox if earlier else MemoryOutbox()
        self.lanes = MemoryLanes()
        self.tasks = RecordedTasks()
        self.cables = (
            Cable(self.canon, CanonTransportError("the process is dead", executed=False)),
            Cable(self.outbox, OutboxError("the process is dead")),
        )
        self.coordinator = TurnCoordinator(
            canon=self.cables[0],  # type: ignore[arg-type]
            lanes=self.lanes,
            clock=self.clock,
            ids=SeededIds(seed),
            tasks=self.tasks,
            outbox=self.cables[1],  # type: ignore[arg-type]
        )

    async def die(self) -> None:
        """Power is lost: nothing of the process reaches anything any more, and nothing of it runs on."""
        for cable in self.cables:
            cable.cut = True
        while mine := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in mine:
                task.cancel()
            await asyncio.gather(*mine, return_exceptions=True)

    async def open(self, conversation: str = CONVERSATION, **facts: object) -> Turn:
        values = {"session_key": f"agent:main:canon:dm:{conversation}", "kind": "direct", "message_id": "msg_77"}
        turn = await self.coordinator.open(TurnStart(conversation, **{**values, **facts}))  # type: ignore[arg-type]
        await settle()
        return turn

    async def say(self, turn: Turn | None, content: str, **marks: object) -> str:
        """A call of the host; returns the id it would keep. An accepted call always has one (field fault 1)."""
        conversation = turn.conversation_id if turn is not None else CONVERSATION
        ack = await self.coordinator.text(turn, HostText(conversation, content, **marks))  # type: ignore[arg-type]
        assert not ack.ok or ack.message_id
        return ack.message_id

    async def stream(self, turn: Turn, *frames: str) -> str:
        """Stream one bubble as the host does: first frame, growth, and the same finalize twice."""
        bubble = await self.say(turn, f"{frames[0]} ▉", expect_edits=True)
        for frame in frames[1:]:
            await self.say(turn, f"{frame} ▉", finalize=False, bubble=bubble)
        for _ in range(2):
            await self.say(turn, frames[-1], finalize=True, bubble=bubble)
        return bubble

    async def complete(self, turn: Turn, outcome: str = "success") -> None:
        await self.coordinator.complete(turn, outcome)  # type: ignore[arg-type]
        await settle()

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.canon.messages]

    @property
    def finals(self) -> list[str]:
        return [message.text for message in self.canon.notifications]

    @property
    def states(self) -> list[str]:
        return [publication.state for publication in self.canon.turns]


@pytest.fixture(scope="session")
def bench_type() -> type[Bench]:
    """For tests that need many benches, or one on a loop of their own."""
    return Bench


@pytest.fixture
async def other_bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.coordinator.close()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.clock.advance(300)
    await made.coordinator.close()
    assert made.tasks.failures == []
