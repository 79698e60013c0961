"""Where the next process reads on: nothing that waited is lost, nothing that began returns (field rows 63, 65, 67)."""

from __future__ import annotations

import asyncio
import logging

import pytest
from canon_hermes_plugin.domain.inbound.checkpoint import MAX_AGE_MS, CheckpointKeeper
from canon_hermes_plugin.domain.inbound.claims import WINDOW, Claims
from canon_hermes_plugin.infrastructure.memory.canon_stream import MemoryCanonStream
from canon_hermes_plugin.infrastructure.memory.checkpoints import MemoryCheckpoints
from canon_hermes_plugin.infrastructure.memory.time import RecordedTasks, VirtualClock
from canon_hermes_plugin.ports.canon_stream import StreamEvent
from canon_hermes_plugin.ports.checkpoints import Checkpoint
from hypothesis import given
from hypothesis import strategies as st


class Process:
    """One process: a stream, what became of its messages, and the keeper of both."""

    def __init__(self, store: MemoryCheckpoints, clock: VirtualClock) -> None:
        self.stream, self.claims, self.tasks = MemoryCanonStream(clock), Claims(), RecordedTasks()
        self.waiting: set[str] = set()
        self.keeper = CheckpointKeeper(store, self.stream, self.claims, clock, self.tasks)
        self.keeper.waiting = lambda: self.waiting
        self.taken: list[str] = []
        self.running: asyncio.Task[None] | None = None

    def lane(self, event: StreamEvent) -> str | None:
        return None

    async def handle(self, event: StreamEvent) -> None:
        """As the inbound service: claim, note, hand over (here: it waits), commit, note."""
        if event.name != "message.created" or not self.claims.claim(event.data):
            return
        self.keeper.taking(event.data)
        self.taken.append(event.data)
        self.waiting.add(event.data)
        self.claims.commit(event.data)
        self.keeper.changed()

    def begin(self, message_id: str) -> None:
        self.waiting.discard(message_id)
        self.keeper.changed()

    async def read(self, *events: StreamEvent) -> None:
        if self.running is None:
            self.running = asyncio.ensure_future(self.stream.run(self))
            await asyncio.sleep(0)
        for event in events:
            self.stream.emit(event)
        await self.stream.settled()
        await self.tasks.drain(1)

    async def end(self) -> None:
        await self.stream.stop()
        if self.running is not None:
            await self.running


class World:
    def __init__(self) -> None:
        self.store, self.clock = MemoryCheckpoints(), VirtualClock()
        self.log: list[StreamEvent] = []

    def process(self) -> Process:
        return Process(self.store, self.clock)

    def event(self, name: str = "message.created") -> StreamEvent:
        event = StreamEvent(name, f"m{len(self.log) + 1}", f"e{len(self.log) + 1}")
        self.log.append(event)
        return event

    def after(self, cursor: str | None) -> list[StreamEvent]:
        """What Canon sends to somebody who asks after ``cursor``."""
        ids = [event.event_id for event in self.log]
        return self.log[ids.index(cursor) + 1 :] if cursor is not None else []

    async def next_process(self) -> Process:
        """Start the next process and let it read what Canon has for it."""
        process = self.process()
        await process.keeper.restore()
        await process.read(*self.after(process.stream.health().cursor))
        return process


@pytest.fixture
def world() -> World:
    return World()


async def test_what_was_written_meanwhile_is_read_and_what_began_is_not_read_again(world):
    first = world.process()
    await first.read(world.event("connected"), world.event())
    first.begin("m2")
    await first.tasks.drain(1)
    missed = world.event()
    second = await world.next_process()
    assert second.taken == [missed.data]
    await asyncio.gather(first.end(), second.end())


async def test_what_still_waited_comes_back_and_what_began_behind_it_does_not(world):
    first = world.process()
    await first.read(*(world.event("connected") for _ in range(2)), world.event(), world.event(), world.event())
    first.begin("m4")
    await first.tasks.drain(1)
    assert world.store.saved is not None
    assert (world.store.saved.cursor, world.store.saved.done) == ("e2", ("m4",))
    second = await world.next_process()
    assert second.taken == ["m3", "m5"]
    await asyncio.gather(first.end(), second.end())


async def preparing(world):
    """A process in which a message's attachments are still loading: neither committed nor waiting."""
    process = world.process()
    await process.read(world.event("connected"))
    world.event()
    process.claims.claim("m2")
    process.keeper.taking("m2")
    await process.tasks.drain(1)
    return process


async def test_a_message_that_was_being_prepared_comes_back(world):
    first = await preparing(world)
    second = await world.next_process()
    assert second.taken == ["m2"]
    await asyncio.gather(first.end(), second.end())


async def test_a_place_noted_while_a_message_was_being_prepared_is_kept_while_it_waits(world):
    first = await preparing(world)
    await first.read(world.event("connected"))  # another conversation goes on meanwhile
    first.claims.commit("m2")
    first.waiting.add("m2")
    await first.keeper.save()
    assert world.store.saved is not None
    assert world.store.saved.cursor == "e1"
    await first.end()


async def test_the_place_moves_on_when_the_waiting_message_begins(world):
    first = world.process()
    await first.read(world.event("connected"), world.event(), world.event("connected"))
    assert world.store.saved is not None
    assert world.store.saved.cursor == "e1"
    first.begin("m2")
    await first.tasks.drain(1)
    assert (world.store.saved.cursor, world.store.saved.done) == ("e3", ("m2",))
    await first.end()


async def test_a_message_that_waits_for_ever_does_not_make_others_come_twice(world):
    """Only so many ids are remembered: before the first one behind it is forgotten, it holds the place no more."""
    first = world.process()
    await first.read(world.event("connected"), world.event())
    for _ in range(WINDOW + 10):
        event = world.event()
        await first.read(event)
        first.begin(event.data)
        await first.tasks.drain(1)
        assert world.store.saved is not None
        again = {event.data for event in world.after(world.store.saved.cursor)} - set(world.store.saved.done)
        assert again <= {"m2"}
    assert again == set()
    await first.end()


async def test_field_67_a_gap_longer_than_an_hour_is_told_and_not_caught_up_with(world, caplog):
    first = world.process()
    await first.read(world.event("connected"), world.event())
    await first.end()
    await world.clock.advance(MAX_AGE_MS / 1000 + 1)
    world.event()
    second = await world.next_process()
    assert second.taken == []
    assert "60 minutes" in caplog.text
    await second.end()


async def test_field_67_what_is_known_stays_known_after_a_long_gap(world):
    first = world.process()
    await first.read(world.event("connected"), seen := world.event())
    first.begin(seen.data)
    await first.end()
    await first.keeper.save()
    await world.clock.advance(MAX_AGE_MS / 1000 + 1)
    second = await world.next_process()
    await second.read(seen._replace(event_id="e99"))
    assert second.taken == []
    await second.end()


async def test_the_gap_is_counted_from_the_last_byte_and_not_from_the_last_save(world):
    first = world.process()
    await first.read(world.event("connected"), world.event())
    heard = world.clock.now_ms()
    await world.clock.advance(600)
    await first.keeper.save()
    assert world.store.saved is not None
    assert world.store.saved.heard_at == heard
    await first.end()


async def test_a_clock_that_was_set_back_is_no_gap_of_negative_length(world):
    world.store.saved = Checkpoint("e1", (), world.clock.now_ms() + MAX_AGE_MS + 1)
    process = await world.next_process()
    assert process.stream.health().cursor is None
    await process.end()


async def test_a_process_that_heard_nothing_leaves_the_place_as_it_is(world):
    world.store.saved = before = Checkpoint("e1", ("m1",), world.clock.now_ms() - 5)
    process = world.process()
    await process.keeper.restore()
    await process.keeper.save()
    assert world.store.saved is before


async def test_only_the_first_restore_counts(world):
    """A reconnect inside one process reads on from memory."""
    first = world.process()
    await first.keeper.restore()
    await first.read(world.event("connected"), world.event("connected"))
    world.store.saved = Checkpoint("e1", (), world.clock.now_ms())
    await first.keeper.restore()
    assert first.stream.health().cursor == "e2"
    await first.end()


async def test_a_full_disk_is_told_and_costs_nothing_else(world, caplog):
    caplog.set_level(logging.WARNING)
    first = world.process()
    world.store.full = True
    await first.read(world.event("connected"), world.event())
    assert "not saved" in caplog.text
    world.store.full = False
    first.begin("m2")
    await first.tasks.drain(1)
    assert world.store.saved is not None
    assert world.store.saved.done == ("m2",)
    await first.end()


async def test_a_burst_is_saved_in_few_writes(world, monkeypatch):
    process = world.process()
    saves: list[Checkpoint] = []
    save = world.store.save

    async def slowly(checkpoint: Checkpoint) -> None:
        saves.append(checkpoint)
        await asyncio.sleep(0)
        await save(checkpoint)

    monkeypatch.setattr(world.store, "save", slowly)
    await process.read(*(world.event() for _ in range(500)))
    for number in range(500):
        process.begin(f"m{number + 1}")
    await process.tasks.drain(1)
    assert len(saves) <= 10
    assert world.store.saved is not None
    assert len(world.store.saved.done) == 500
    await process.end()


@given(st.lists(st.sampled_from(["message", "other", "begin", "restart"]), max_size=40))
def test_no_history_of_restarts_loses_or_repeats_a_message(steps):
    async def whole() -> None:
        world = World()
        process = world.process()
        await process.read(world.event("connected"))
        await process.keeper.save()  # as soon as the runtime knows a place
        begun: list[str] = []
        for step in [*steps, "restart"]:
            if step in {"message", "other"}:
                await process.read(world.event("message.created" if step == "message" else "typing"))
            elif step == "begin" and process.waiting:
                begun.append(min(process.waiting, key=lambda key: int(key[1:])))
                process.begin(begun[-1])
                await process.tasks.drain(1)
            elif step == "restart":
                await process.end()  # no last save: as if killed
                process = await world.next_process()
        said = [event.data for event in world.log if event.name == "message.created"]
        assert len(begun) == len(set(begun))
        assert sorted([*begun, *process.waiting]) == sorted(said)
        await process.end()

    asyncio.run(whole())
