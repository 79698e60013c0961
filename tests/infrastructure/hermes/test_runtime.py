"""The connection's life: proven before anything else, waited for, given up only for good, stopped without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from canon_hermes_plugin.infrastructure.hermes.runtime import CanonRuntime, Links, OwnIdentity
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.canon_stream import MemoryCanonStream
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import SeededIds, VirtualClock
from canon_hermes_plugin.ports.canon import AgentIdentity
from canon_hermes_plugin.ports.canon_stream import StreamEvent, StreamState
from canon_hermes_plugin.ports.errors import CanonError, CanonTransportError, LedgerError


class Listener:
    def __init__(self) -> None:
        self.identity: AgentIdentity | None = None
        self.refreshed = 0
        self.events: list[StreamEvent] = []
        self.polled: list[str] = []
        self.prepared: list[str] = []
        self.polling = 0
        self.polled_at_once = 0

    def adopt_identity(self, identity: AgentIdentity) -> None:
        self.identity = identity

    def preparing(self) -> Iterable[str]:
        return self.prepared

    async def refresh_conversations(self) -> None:
        self.refreshed += 1

    async def consume_signal(self, conversation_id: str) -> None:
        self.polled.append(conversation_id)
        self.polling += 1
        self.polled_at_once = max(self.polled_at_once, self.polling)
        await asyncio.sleep(0)
        self.polling -= 1
        if conversation_id == "broken":
            raise CanonTransportError("away", executed=False)

    def lane(self, event: StreamEvent) -> str | None:
        return None

    async def handle(self, event: StreamEvent) -> None:
        self.events.append(event)


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.canon = MemoryCanon(clock=self.clock)
        self.stream = MemoryCanonStream(self.clock)
        self.listener = Listener()
        self.busy: Iterable[str] = ()
        self.identity = OwnIdentity()
        self.beats = 0
        self.beat_fails: Exception | None = None
        self.stopped = 0
        self.opened: list[bool] = []
        self.places: list[str] = []
        self.gave_up: list[CanonError] = []
        self.runtime = CanonRuntime(
            Links(self.canon, self.stream, self.listener, lambda: self.busy, self.beat, self.stop, self.opening, self),
            self.clock,
            SeededIds(1),
            self.identity,
        )

    async def beat(self) -> None:
        self.beats += 1
        if self.beat_fails is not None:
            raise self.beat_fails

    async def stop(self) -> None:
        self.stopped += 1

    def opening(self) -> None:
        self.opened.append(self.runtime.proven)

    async def restore(self) -> None:
        self.places.append(f"restore before run: {self.stream.health().state is not StreamState.LIVE}")

    async def save(self) -> None:
        self.places.append("save")

    async def start(self) -> None:
        await self.runtime.start(self, self.gave_up.append)


@pytest.fixture
async def world() -> Any:
    made = World()
    yield made
    await made.runtime.stop()
    left = [task for task in asyncio.all_tasks() if task.get_name().startswith("canon")]
    assert left == []


async def test_field_90_what_is_unsettled_goes_on_at_every_connect_once_canon_accepted_the_key(world: World) -> None:
    world.canon.faults.fail_next("verify", Fault.unreachable())
    starting = asyncio.create_task(world.start())
    await world.clock.advance(0)
    assert world.opened == []
    await world.clock.advance(5)
    await starting
    await world.runtime.stop()
    await world.start()
    assert world.opened == [True, True]


async def test_connecting_proves_identifies_and_listens(world: World) -> None:
    assert not world.runtime.proven
    await world.start()
    await world.clock.advance(0)
    assert world.runtime.proven
    assert world.canon.operations()[:2] == ["verify", "identify"]
    assert world.listener.identity == world.canon.identity
    assert (world.identity.owner_id(), world.identity.agent_id()) == ("user_owner", "agent_self")
    assert world.listener.refreshed == 1
    world.stream.emit(StreamEvent("message.created", {"x": 1}, "e1"))
    await world.clock.advance(0)
    assert [event.event_id for event in world.listener.events] == ["e1"]


async def test_the_place_on_the_stream_is_taken_up_before_reading_and_kept_while_reading(world: World) -> None:
    await world.start()
    await world.clock.advance(5)
    assert world.places == ["restore before run: True"]
    world.stream.emit(StreamEvent("connected", {}, "e1"))
    await world.clock.advance(1)
    assert world.places == ["restore before run: True", "save"]
    await world.clock.advance(60)
    assert world.places.count("save") == 3
    await world.runtime.stop()
    assert world.places.count("save") == 4


async def test_a_runtime_that_never_proved_anything_keeps_no_place(world: World) -> None:
    await world.runtime.stop()
    assert world.places == []


async def test_status_is_published_at_once_and_every_30_seconds(world: World) -> None:
    await world.start()
    await world.clock.advance(61)
    assert len(world.canon.statuses) == 3
    assert world.beats == 3
    commands = {item["id"]: item["dispatch"]["signal"] for item in world.canon.statuses[0]["commands"]}
    assert commands == {"stop": "interrupt", "stop-and-clear-queue": "stop_and_drop", "new-session": "new_session"}


async def test_a_failing_beat_does_not_end_the_status(world: World) -> None:
    world.beat_fails = LedgerError("unreadable")
    await world.start()
    await world.clock.advance(61)
    assert world.beats == 3


async def test_h36_only_busy_conversations_are_polled_for_signals(world: World) -> None:
    await world.start()
    await world.clock.advance(31)
    assert world.listener.polled == []
    world.busy = ["c1", "broken", "c2"]
    await world.clock.advance(15)
    assert world.listener.polled == ["c1", "broken", "c2"]


async def test_h36_a_conversation_whose_message_is_being_prepared_is_busy(world: World) -> None:
    world.busy = ["c1"]
    world.listener.prepared = ["c1", "c2"]
    await world.start()
    await world.clock.advance(1)
    assert world.listener.polled == ["c1", "c2"]


async def test_h36_many_busy_conversations_are_polled_a_few_at_a_time(world: World) -> None:
    world.busy = [f"c{number}" for number in range(20)]
    await world.start()
    await world.clock.advance(1)
    assert len(world.listener.polled) == 20
    assert 1 < world.listener.polled_at_once <= 4


@pytest.mark.parametrize("step", ["verify", "identify"])
async def test_a_permanent_refusal_is_raised_at_once(world: World, step: str) -> None:
    world.canon.faults.fail_next(step, Fault.definitive(401))
    with pytest.raises(CanonError):
        await world.start()
    assert not world.runtime.proven


async def test_field_100_an_unreachable_canon_is_waited_for_in_the_background(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("canon_hermes_plugin.infrastructure.hermes.runtime.CONNECT_PATIENCE", 0.01)
    world.canon.faults.fail_next("verify", Fault.unreachable(), times=5)
    await world.start()
    assert not world.runtime.proven
    await world.clock.advance(200)
    assert world.runtime.proven
    assert world.canon.statuses


async def test_a_refusal_found_later_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("canon_hermes_plugin.infrastructure.hermes.runtime.CONNECT_PATIENCE", 0.01)
    world.canon.faults.fail_next("verify", Fault.unreachable())
    world.canon.faults.fail_next("identify", Fault.definitive(403))
    await world.start()
    await world.clock.advance(40)
    assert len(world.gave_up) == 1
    assert not world.runtime.proven


async def test_stop_is_idempotent_and_an_older_owner_does_not_stop_a_newer_one(world: World) -> None:
    await world.start()
    newer = object()
    await world.runtime.start(newer, world.gave_up.append, is_reconnect=True)
    assert not world.runtime.serves(world)
    assert world.runtime.serves(newer)
    await world.runtime.stop()
    await world.runtime.stop()
