"""The reading side: one suite for the stream over HTTP (a scripted server) and for the in-memory twin."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.canon.stream import CanonSse
from canon_hermes_plugin.infrastructure.memory.canon_stream import MemoryCanonStream
from canon_hermes_plugin.infrastructure.memory.time import SeededIds, VirtualClock
from canon_hermes_plugin.ports.canon_stream import StreamEvent, StreamState
from canon_hermes_plugin.ports.errors import AuthenticationError
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret


class Handler:
    """Takes events; a payload may name a gate to wait at, or that it fails a number of times."""

    def __init__(self):
        self.taken, self.gates, self.failures = [], {}, {}

    def lane(self, event):
        return event.data.get("lane") if isinstance(event.data, dict) else None

    async def handle(self, event):
        name = event.event_id
        if gate := self.gates.get(name):
            await gate.wait()
        if self.failures.get(name, 0) > 0:
            self.failures[name] -= 1
            raise OSError
        self.taken.append(name)


class MemoryWorld:
    """The twin."""

    def __init__(self):
        self.stream = MemoryCanonStream()
        self.emit = self.stream.emit
        self.refuse = self.stream.refuse


class HttpWorld:
    """The real stream over a scripted transport that never ends by itself."""

    def __init__(self):
        self._queue = asyncio.Queue()
        self._status = 200
        self.requests = []
        environment = Environment("canon-dev-v1", "p", "https://api.x", "https://stream.x", "http://localhost:9", "k")
        link = CanonLink(
            Connection(Secret("agk_live_k"), environment, "direct", "test"),
            clock=VirtualClock(instant=True),
            transport=httpx.MockTransport(self._answer),
        )
        self.stream = CanonSse(link, SeededIds())

    async def _answer(self, request):
        self.requests.append(request)
        queue = self._queue

        class Body(httpx.AsyncByteStream):
            async def __aiter__(self):
                while (chunk := await queue.get()) is not None:
                    yield chunk

        if self._status != 200:
            return httpx.Response(self._status)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())

    def emit(self, event):
        head = f"id: {event.event_id}\n" if event.event_id else ""
        self._queue.put_nowait(f"{head}event: {event.name}\ndata: {json.dumps(event.data)}\n\n".encode())

    def refuse(self):
        self._status = 401
        self._queue.put_nowait(None)


@pytest.fixture(params=[MemoryWorld, HttpWorld], ids=["memory", "http"])
async def world(request):
    world = request.param()
    world.handler = Handler()
    running = []

    def start():
        running.append(asyncio.ensure_future(world.stream.run(world.handler)))
        return running[-1]

    world.start = start
    yield world
    await world.stream.stop()
    await asyncio.gather(*running, return_exceptions=True)


def event(name, lane="a", **more):
    return StreamEvent("message.created", {"lane": lane, **more}, name)


async def until(condition):
    """Let the loop turn until ``condition`` holds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def test_events_arrive_in_order_and_move_the_cursor(world):
    world.start()
    for n in range(5):
        world.emit(event(f"e{n}"))
    await until(lambda: len(world.handler.taken) == 5)
    assert world.handler.taken == [f"e{n}" for n in range(5)]
    assert world.stream.health().cursor == "e4"


async def test_field_71_health_tells_when_the_last_byte_came(world):
    assert world.stream.health().last_byte_at is None
    assert world.stream.health().state is StreamState.IDLE
    world.start()
    world.emit(event("e1"))
    await until(lambda: world.handler.taken)
    health = world.stream.health()
    assert (health.state, health.attempts) == (StreamState.LIVE, 1)
    assert health.last_byte_at is not None


async def test_h21_a_slow_conversation_delays_no_other_and_holds_the_cursor(world):
    gate = world.handler.gates["e1"] = asyncio.Event()
    world.start()
    for name, lane in (("e0", "a"), ("e1", "slow"), ("e2", "b"), ("e3", "slow"), ("e4", "a")):
        world.emit(event(name, lane))
    await until(lambda: len(world.handler.taken) == 3)
    assert sorted(world.handler.taken) == ["e0", "e2", "e4"]
    assert world.stream.health().cursor == "e0"
    gate.set()
    await until(lambda: len(world.handler.taken) == 5)
    assert world.handler.taken[3:] == ["e1", "e3"]
    assert world.stream.health().cursor == "e4"


async def test_h17_a_failing_event_harms_no_other_and_its_redelivery_is_not_a_duplicate(world):
    world.handler.failures["e1"] = 2
    world.start()
    world.emit(event("e1"))
    world.emit(event("e2"))
    await until(lambda: world.handler.taken)
    assert world.stream.health().cursor is None
    world.emit(event("e1"))
    await until(lambda: len(world.handler.taken) == 2)
    assert world.handler.taken == ["e2", "e1"]
    assert world.stream.health().cursor == "e2"


async def test_field_65_a_repeated_event_is_handled_once(world):
    world.start()
    for name in ("e1", "e1", "e2", "e1", "e2", "e3"):
        world.emit(event(name))
    await until(lambda: "e3" in world.handler.taken)
    assert world.handler.taken == ["e1", "e2", "e3"]


async def test_events_without_an_id_are_all_handled(world):
    world.start()
    world.emit(event("e1"))
    world.emit(event(None))
    world.emit(event(None))
    world.emit(event("e2"))
    await until(lambda: len(world.handler.taken) == 4)
    assert world.stream.health().cursor == "e2"


async def test_a_dictated_cursor_is_adopted_in_stream_order(world):
    class Confirming(Handler):
        async def handle(self, event):
            if event.name == "replay.expired":
                world.stream.set_cursor(event.data["lastAvailableId"])
            await super().handle(event)

    world.handler = Confirming()
    world.start()
    world.emit(event("e1"))
    world.emit(StreamEvent("replay.expired", {"lastAvailableId": "e900"}))
    await until(lambda: len(world.handler.taken) == 2)
    assert world.stream.health().cursor == "e900"
    world.emit(event("e901"))
    await until(lambda: len(world.handler.taken) == 3)
    assert world.stream.health().cursor == "e901"


async def test_a_refused_key_ends_the_run_for_good(world):
    running = world.start()
    world.emit(event("e1"))
    await until(lambda: world.handler.taken)
    world.refuse()
    with pytest.raises(AuthenticationError):
        await asyncio.wait_for(running, 10)
    assert world.stream.health().state is StreamState.UNAUTHORIZED


async def test_stopping_is_clean_idempotent_and_works_before_running(world):
    await world.stream.stop()
    running = world.start()
    world.emit(event("e1"))
    await until(lambda: world.handler.taken)
    await world.stream.stop()
    await world.stream.stop()
    await asyncio.wait_for(running, 10)
    assert world.stream.health().state is StreamState.STOPPED


async def test_a_handler_may_stop_the_stream_and_still_end(world):
    class Stopping(Handler):
        async def handle(self, event):
            await world.stream.stop()
            await super().handle(event)

    world.handler = Stopping()
    running = world.start()
    world.emit(event("e1"))
    await asyncio.wait_for(running, 10)
    assert world.handler.taken == ["e1"]


async def test_field_82_a_second_run_beside_the_first_is_refused(world):
    world.start()
    world.emit(event("e1"))
    await until(lambda: world.handler.taken)
    with pytest.raises(RuntimeError, match="already runs"):
        await world.stream.run(world.handler)
    world.emit(event("e2"))
    await until(lambda: len(world.handler.taken) == 2)


async def test_a_second_run_goes_on_where_the_first_one_ended(world):
    running = world.start()
    world.emit(event("e1"))
    await until(lambda: world.handler.taken)
    await world.stream.stop()
    await asyncio.wait_for(running, 10)
    world.start()
    world.emit(event("e1"))
    world.emit(event("e2"))
    await until(lambda: len(world.handler.taken) == 2)
    assert world.handler.taken == ["e1", "e2"]


async def test_cancelling_the_run_cancels_what_is_being_handled_and_leaves_no_task(world):
    world.handler.gates["e1"] = asyncio.Event()
    running = world.start()
    world.emit(event("e1"))
    for _ in range(50):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert not names & {"canon-stream-reader", "canon-lane-worker"}
