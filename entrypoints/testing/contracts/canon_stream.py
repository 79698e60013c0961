"""Canon's event side: what every :class:`canon_hermes_plugin.ports.canon_stream.CanonStream` promises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol, final

import pytest
from canon_hermes_plugin.infrastructure.memory.handler import MemoryEagerHandler, MemoryHandler, MemoryWaitingHandler
from canon_hermes_plugin.ports.canon_stream import CanonStream, StreamEvent, StreamState
from canon_hermes_plugin.ports.errors import AuthenticationError
from canon_hermes_plugin.testing.contracts.base import Contract, on_a_loop, wanted


class CanonStreamDriver(Protocol):
    """The subject and the Canon behind it.

    Attributes:
        stream: the subject.
    """

    stream: CanonStream

    def emit(self, event: StreamEvent) -> None:
        """Let Canon send ``event`` now."""
        ...

    def refuse(self) -> None:
        """Let Canon refuse the key from now on and end the connection."""
        ...


@final
class StreamUnderTest:
    """A driver with its handler and its runs."""

    def __init__(self, driver: CanonStreamDriver) -> None:
        self.stream = driver.stream
        self.emit = driver.emit
        self.refuse = driver.refuse
        self.handler = MemoryHandler()
        self._running: list[asyncio.Future[None]] = []

    @property
    def taken(self) -> list[str | None]:
        """The ids of the events that were handed over, in order."""
        return [taken.event_id for taken in self.handler.taken]

    def start(self) -> asyncio.Future[None]:
        """Begin to run the stream."""
        self._running.append(asyncio.ensure_future(self.stream.run(self.handler)))
        return self._running[-1]

    async def close(self) -> None:
        """Stop it."""
        await self.stream.stop()
        await asyncio.gather(*self._running, return_exceptions=True)


def event(name: str | None, lane: str = "a", kind: str = "message.created") -> StreamEvent:
    """Return an event of a lane."""
    return StreamEvent(kind, {"conversationId": lane}, name)


def _has(handler: MemoryHandler, name: str) -> bool:
    return any(taken.event_id == name for taken in handler.taken)


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until ``condition`` holds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


class CanonStreamContract(Contract[StreamUnderTest]):
    """The suite. Override :meth:`driver`."""

    maker = "driver"
    made = CanonStreamDriver

    def driver(self) -> CanonStreamDriver:
        """Return a fresh driver; called on the test's event loop."""
        raise NotImplementedError(wanted(type(self)))

    def factory(self, tmp_path: Path) -> StreamUnderTest:
        del tmp_path
        return StreamUnderTest(self.driver())

    @on_a_loop
    async def test_events_arrive_in_order_and_move_the_cursor(self, world: StreamUnderTest) -> None:
        world.start()
        for n in range(5):
            world.emit(event(f"e{n}"))
        await until(lambda: len(world.taken) == 5)
        assert world.taken == [f"e{n}" for n in range(5)]
        assert world.stream.health().cursor == "e4"

    @on_a_loop
    async def test_field_71_health_tells_when_the_last_byte_came(self, world: StreamUnderTest) -> None:
        assert world.stream.health().last_byte_at is None
        assert world.stream.health().state is StreamState.IDLE
        world.start()
        world.emit(event("e1"))
        await until(lambda: world.taken)
        health = world.stream.health()
        assert (health.state, health.attempts) == (StreamState.LIVE, 1)
        assert health.last_byte_at is not None

    @on_a_loop
    async def test_h21_a_slow_conversation_delays_no_other_and_holds_the_cursor(self, world: StreamUnderTest) -> None:
        gate = world.handler.gates["e1"] = asyncio.Event()
        world.start()
        for name, lane in (("e0", "a"), ("e1", "slow"), ("e2", "b"), ("e3", "slow"), ("e4", "a")):
            world.emit(event(name, lane))
        await until(lambda: len(world.taken) == 3)
        assert sorted(map(str, world.taken)) == ["e0", "e2", "e4"]
        assert world.stream.health().cursor == "e0"
        gate.set()
        await until(lambda: len(world.taken) == 5)
        assert world.taken[3:] == ["e1", "e3"]
        assert world.stream.health().cursor == "e4"

    @on_a_loop
    async def test_h17_a_failing_event_harms_no_other_and_its_redelivery_is_not_a_duplicate(
        self, world: StreamUnderTest
    ) -> None:
        world.handler.failures["e1"] = 2
        world.start()
        world.emit(event("e1"))
        world.emit(event("e2"))
        await until(lambda: world.taken)
        assert world.stream.health().cursor is None
        world.emit(event("e1"))
        await until(lambda: len(world.taken) == 2)
        assert world.taken == ["e2", "e1"]
        assert world.stream.health().cursor == "e2"

    @on_a_loop
    async def test_field_65_a_repeated_event_is_handled_once(self, world: StreamUnderTest) -> None:
        world.start()
        for name in ("e1", "e1", "e2", "e1", "e2", "e3"):
            world.emit(event(name))
        await until(lambda: "e3" in world.taken)
        assert world.taken == ["e1", "e2", "e3"]

    @on_a_loop
    async def test_events_without_an_id_are_all_handled(self, world: StreamUnderTest) -> None:
        world.start()
        world.emit(event("e1"))
        world.emit(event(None))
        world.emit(event(None))
        world.emit(event("e2"))
        await until(lambda: len(world.taken) == 4)
        assert world.stream.health().cursor == "e2"

    @on_a_loop
    async def test_a_dictated_cursor_is_adopted_in_stream_order(self, world: StreamUnderTest) -> None:
        class Confirming(MemoryHandler):
            async def handle(self, event: StreamEvent) -> None:
                if event.name == "replay.expired":
                    world.stream.set_cursor(event.data["lastAvailableId"])
                await super().handle(event)

        world.handler = Confirming()
        world.start()
        world.emit(event("e1"))
        world.emit(StreamEvent("replay.expired", {"lastAvailableId": "e900"}))
        await until(lambda: len(world.taken) == 2)
        assert world.stream.health().cursor == "e900"
        world.emit(event("e901"))
        await until(lambda: len(world.taken) == 3)
        assert world.stream.health().cursor == "e901"

    @on_a_loop
    async def test_a_refused_key_ends_the_run_for_good(self, world: StreamUnderTest) -> None:
        running = world.start()
        world.emit(event("e1"))
        await until(lambda: world.taken)
        world.refuse()
        with pytest.raises(AuthenticationError):
            await asyncio.wait_for(running, 10)
        assert world.stream.health().state is StreamState.UNAUTHORIZED

    @on_a_loop
    async def test_stopping_is_clean_idempotent_and_works_before_running(self, world: StreamUnderTest) -> None:
        await world.stream.stop()
        running = world.start()
        world.emit(event("e1"))
        await until(lambda: world.taken)
        await world.stream.stop()
        await world.stream.stop()
        await asyncio.wait_for(running, 10)
        assert world.stream.health().state is StreamState.STOPPED

    @on_a_loop
    async def test_a_handler_may_stop_the_stream_and_still_end(self, world: StreamUnderTest) -> None:
        class Stopping(MemoryHandler):
            async def handle(self, event: StreamEvent) -> None:
                await world.stream.stop()
                await super().handle(event)

        world.handler = Stopping()
        running = world.start()
        world.emit(event("e1"))
        await asyncio.wait_for(running, 10)
        assert world.taken == ["e1"]

    @on_a_loop
    async def test_field_82_a_second_run_beside_the_first_is_refused(self, world: StreamUnderTest) -> None:
        world.start()
        world.emit(event("e1"))
        await until(lambda: world.taken)
        with pytest.raises(RuntimeError, match="already runs"):
            await world.stream.run(world.handler)
        world.emit(event("e2"))
        await until(lambda: len(world.taken) == 2)

    @on_a_loop
    async def test_a_second_run_goes_on_where_the_first_one_ended(self, world: StreamUnderTest) -> None:
        running = world.start()
        world.emit(event("e1"))
        await until(lambda: world.taken)
        await world.stream.stop()
        await asyncio.wait_for(running, 10)
        world.start()
        world.emit(event("e1"))
        world.emit(event("e2"))
        await until(lambda: len(world.taken) == 2)
        assert world.taken == ["e1", "e2"]

    @on_a_loop
    async def test_cancelling_the_run_cancels_what_is_being_handled_and_leaves_no_task(
        self, world: StreamUnderTest
    ) -> None:
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

    @on_a_loop
    async def test_an_eager_handler_is_asked_first_and_what_it_takes_moves_the_cursor(
        self, world: StreamUnderTest
    ) -> None:
        handler = world.handler = MemoryEagerHandler("quick")
        world.start()
        for name, kind in (("e1", "quick"), ("e2", "message.created"), ("e3", "quick")):
            world.emit(event(name, kind=kind))
            await until(partial(_has, world.handler, name))
        assert world.taken == ["e1", "e2", "e3"]
        assert [taken.event_id for taken in handler.at_once] == ["e1", "e3"]
        await until(lambda: world.stream.health().cursor == "e3")

    @on_a_loop
    async def test_an_eager_handler_keeps_the_order_of_a_lane_that_is_busy(self, world: StreamUnderTest) -> None:
        handler = world.handler = MemoryEagerHandler("quick")
        gate = handler.gates["e1"] = asyncio.Event()
        world.start()
        world.emit(event("e1", "slow"))
        world.emit(event("e2", "slow", "quick"))
        world.emit(event("e3", "other", "quick"))
        await until(lambda: "e3" in world.taken)
        assert world.taken == ["e3"]
        gate.set()
        await until(lambda: len(world.taken) == 3)
        assert world.taken == ["e3", "e1", "e2"]

    @on_a_loop
    async def test_a_waiting_handler_hears_of_what_is_put_behind_others_of_its_lane(
        self, world: StreamUnderTest
    ) -> None:
        handler = world.handler = MemoryWaitingHandler()
        gate = handler.gates["e1"] = asyncio.Event()
        world.start()
        for name, lane in (("e1", "slow"), ("e2", "slow"), ("e3", "other"), ("e4", "slow")):
            world.emit(event(name, lane))
            await asyncio.sleep(0)
        await until(lambda: "e3" in world.taken and len(handler.behind) == 2)
        assert [waiting.event_id for waiting in handler.behind] == ["e2", "e4"]
        gate.set()
        await until(lambda: len(world.taken) == 4)
        assert world.taken == ["e3", "e1", "e2", "e4"]

    @on_a_loop
    async def test_h17_what_an_eager_handler_fails_at_goes_the_ordinary_way(self, world: StreamUnderTest) -> None:
        class Failing(MemoryEagerHandler):
            def handle_now(self, event: StreamEvent) -> bool:
                raise RuntimeError(event.name)

        world.handler = Failing()
        world.start()
        world.emit(event("e1"))
        world.emit(event("e2"))
        await until(lambda: len(world.taken) == 2)
        assert world.taken == ["e1", "e2"]
        assert world.stream.health().cursor == "e2"

    @on_a_loop
    async def test_h17_an_event_whose_lane_fails_is_in_the_common_one(self, world: StreamUnderTest) -> None:
        class Laneless(MemoryHandler):
            def lane(self, event: StreamEvent) -> str | None:
                if event.event_id == "e1":
                    raise RuntimeError(event.name)
                return None

        world.handler = Laneless()
        world.start()
        world.emit(event("e1"))
        world.emit(event("e2"))
        await until(lambda: len(world.taken) == 2)
        assert world.taken == ["e1", "e2"]
