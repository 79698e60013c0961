"""Events in order per conversation, conversations side by side."""

from __future__ import annotations

import asyncio
import logging

import pytest
from canon_hermes_plugin.domain.inbound import lanes as lanes_module
from canon_hermes_plugin.domain.inbound.claims import Claims
from canon_hermes_plugin.domain.inbound.cursor import CursorMark
from canon_hermes_plugin.domain.inbound.lanes import Lanes
from canon_hermes_plugin.infrastructure.memory.time import settle
from canon_hermes_plugin.ports.canon_stream import StreamEvent


class Handler:
    """Records what it took; a payload may name a gate to wait at or an error to raise."""

    def __init__(self):
        self.taken = []
        self.gates = {}

    def lane(self, event):
        return event.data["lane"]

    async def handle(self, event):
        if gate := self.gates.get(event.data["n"]):
            await gate.wait()
        if error := event.data.get("error"):
            raise error
        self.taken.append(event.data["n"])


def event(n, lane="a", event_id=None, **more):
    return StreamEvent("message.created", {"n": n, "lane": lane, **more}, event_id or f"e{n}")


@pytest.fixture
async def world():
    class World:
        handler, claims, cursor = Handler(), Claims(), CursorMark()

        def lanes(self, **options):
            return Lanes(self.handler, self.claims, self.cursor, **options)

    return World()


async def test_one_conversation_is_handled_in_order_even_when_handling_waits(world):
    lanes = world.lanes()
    world.handler.gates[1] = gate = asyncio.Event()
    for n in range(4):
        lanes.offer(event(n))
    await settle()
    assert world.handler.taken == [0]
    gate.set()
    await lanes.idle()
    assert world.handler.taken == [0, 1, 2, 3]
    await lanes.close()


async def test_h21_a_slow_conversation_never_delays_another(world):
    lanes = world.lanes()
    for n in range(0, 40, 2):
        world.handler.gates[n] = asyncio.Event()
        lanes.offer(event(n, f"slow{n}"))
        lanes.offer(event(n + 1, f"fast{n}"))
    await settle()
    assert sorted(world.handler.taken) == list(range(1, 40, 2))
    lanes.offer(event(100, "later"))
    await settle()
    assert 100 in world.handler.taken
    assert world.cursor.value is None, "the first event is unfinished"
    for gate in world.handler.gates.values():
        gate.set()
    await lanes.idle()
    assert world.cursor.value == "e100"
    await lanes.close()


@pytest.mark.parametrize("error", [ValueError("text"), KeyError("x"), asyncio.CancelledError(), RecursionError()])
async def test_h17_one_failing_event_harms_neither_its_conversation_nor_others(world, error, caplog):
    lanes = world.lanes()
    lanes.offer(event(1, error=error))
    lanes.offer(event(2))
    lanes.offer(event(3, "b"))
    await lanes.idle()
    assert sorted(world.handler.taken) == [2, 3]
    assert "text" not in caplog.text
    assert world.cursor.value is None, "the failed event stays after the cursor"
    await lanes.close()


async def test_h17_an_event_without_a_lane_goes_to_the_common_one(world):
    lanes = world.lanes()
    lanes.offer(StreamEvent("message.created", {"n": 1}, "e1"))
    lanes.offer(event(2))
    await lanes.idle()
    assert world.handler.taken == [1, 2]
    await lanes.close()


async def test_a_failure_of_the_moment_is_handled_again_at_once_and_in_order(world):
    class Once(Handler):
        async def handle(self, event):
            if event.data["n"] == 1 and not self.gates.setdefault("failed", False):
                self.gates["failed"] = True
                raise OSError
            self.taken.append(event.data["n"])

    world.handler = Once()
    lanes = world.lanes()
    lanes.offer(event(1))
    lanes.offer(event(2))
    await lanes.idle()
    assert world.handler.taken == [1, 2]
    assert world.cursor.value == "e2"
    await lanes.close()


async def test_field_63_a_redelivery_after_a_failed_handling_is_handled(world):
    lanes = world.lanes()
    lanes.offer(event(1, error=OSError()))
    await lanes.idle()
    lanes.offer(event(1))
    await lanes.idle()
    assert world.handler.taken == [1]
    assert world.cursor.value == "e1"
    await lanes.close()


async def test_field_65_a_redelivery_is_a_duplicate_while_queued_while_handled_and_afterwards(world):
    lanes = world.lanes()
    world.handler.gates[1] = gate = asyncio.Event()
    for n in (1, 2, 1, 2):
        lanes.offer(event(n))
    await settle()
    lanes.offer(event(1))
    gate.set()
    await lanes.idle()
    lanes.offer(event(2))
    await lanes.idle()
    await lanes.close()
    again = world.lanes()
    again.offer(event(1))
    await again.idle()
    assert world.handler.taken == [1, 2]
    await again.close()


async def test_events_without_an_id_are_never_deduplicated(world):
    lanes = world.lanes()
    for _ in range(2):
        lanes.offer(StreamEvent("typing", {"n": 1, "lane": "a"}))
    await lanes.idle()
    assert world.handler.taken == [1, 1]
    await lanes.close()


async def test_back_pressure_makes_the_reader_wait_until_something_was_taken(world):
    lanes = world.lanes(max_queued=3)
    world.handler.gates[0] = gate = asyncio.Event()
    lanes.offer(event(0))
    await settle()
    for n in range(1, 4):
        lanes.offer(event(n))
    assert lanes.full
    waiting = asyncio.ensure_future(lanes.room())
    await settle()
    assert not waiting.done()
    gate.set()
    await asyncio.wait_for(waiting, 5)
    await lanes.idle()
    assert world.handler.taken == [0, 1, 2, 3]
    await lanes.close()


async def test_back_pressure_also_counts_what_the_waiting_events_weigh(world, monkeypatch):
    monkeypatch.setattr(lanes_module, "MAX_QUEUED_CHARS", 1000)
    lanes = world.lanes()
    world.handler.gates[0] = gate = asyncio.Event()
    lanes.offer(event(0), 900)
    await settle()
    assert not lanes.full
    lanes.offer(event(1), 999)
    assert not lanes.full
    lanes.offer(event(2), 1)
    assert lanes.full
    waiting = asyncio.ensure_future(lanes.room())
    await settle()
    assert not waiting.done()
    gate.set()
    await asyncio.wait_for(waiting, 5)
    await lanes.idle()
    assert world.handler.taken == [0, 1, 2]
    await lanes.close()


async def test_more_waiting_conversations_than_workers_are_served_as_workers_come_free(world, monkeypatch):
    monkeypatch.setattr(lanes_module, "MAX_WORKERS", 2)
    lanes = world.lanes()
    for n in range(5):
        world.handler.gates[n] = asyncio.Event()
        lanes.offer(event(n, f"lane{n}"))
    await settle()
    for n in range(5):
        world.handler.gates[n].set()
        await settle()
    assert sorted(world.handler.taken) == [0, 1, 2, 3, 4]
    await lanes.close()


async def test_closing_gives_unhandled_events_back_and_leaves_no_task(world):
    lanes = world.lanes()
    world.handler.gates[2] = asyncio.Event()
    for n in (1, 2, 3):
        lanes.offer(event(n))
    await settle()
    before = world.cursor.value
    await lanes.close()
    assert before == "e1"
    assert world.claims.working == 0
    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "canon-lane-worker"] == []
    world.handler.gates.clear()
    again = world.lanes()
    for n in (2, 3):
        again.offer(event(n))
    await again.idle()
    assert world.handler.taken == [1, 2, 3]
    assert world.cursor.value == "e3"
    await again.close()


async def test_a_handler_may_close_the_lanes_it_runs_in(world):
    class Closing(Handler):
        async def handle(self, event):
            await lanes.close()
            self.taken.append(event.data["n"])

    world.handler = Closing()
    lanes = world.lanes()
    lanes.offer(event(1))
    lanes.offer(event(2))
    await settle()
    assert world.handler.taken == [1]
    assert world.cursor.value == "e1"


async def test_handling_that_never_waits_costs_no_task_per_event(world):
    lanes = world.lanes()
    started = []
    loop = asyncio.get_running_loop()
    loop.set_task_factory(lambda owner, work, **options: started.append(1) or asyncio.Task(work, loop=owner, **options))
    for n in range(1000):
        lanes.offer(event(n, f"lane{n % 50}"))
    await lanes.idle()
    loop.set_task_factory(None)
    assert len(world.handler.taken) == 1000
    assert len(started) <= 10
    await lanes.close()


async def test_an_empty_event_moves_the_cursor_in_its_turn(world):
    lanes = world.lanes()
    world.handler.gates[1] = gate = asyncio.Event()
    lanes.offer(event(1))
    lanes.skip("e2")
    await settle()
    assert world.cursor.value is None
    gate.set()
    await lanes.idle()
    assert world.cursor.value == "e2"
    await lanes.close()


async def test_failures_are_logged_with_id_and_kind_only(world, caplog):
    lanes = world.lanes()
    with caplog.at_level(logging.ERROR):
        lanes.offer(event(1, error=ValueError("what the user wrote")))
        await lanes.idle()
    assert "e1" in caplog.text
    assert "ValueError" in caplog.text
    assert "what the user wrote" not in caplog.text
    await lanes.close()


class Eager(Handler):
    """Takes events that say so at once; others wait their turn."""

    def __init__(self):
        super().__init__()
        self.at_once = []

    def handle_now(self, event):
        if error := event.data.get("now_error"):
            raise error
        if event.data.get("now"):
            self.at_once.append(event.data["n"])
            self.taken.append(event.data["n"])
            return True
        return False


async def test_an_event_that_can_be_taken_at_once_is_committed_at_once(world):
    world.handler = Eager()
    lanes = world.lanes()
    lanes.offer(event(1, now=True))
    assert (world.handler.taken, world.cursor.value, world.claims.committed("e1")) == ([1], "e1", True)
    lanes.offer(event(1, now=True))
    assert world.handler.taken == [1], "a redelivery is a duplicate"
    await lanes.close()


async def test_nothing_overtakes_within_a_conversation_and_others_are_still_taken_at_once(world):
    world.handler = Eager()
    world.handler.gates[1] = gate = asyncio.Event()
    lanes = world.lanes()
    lanes.offer(event(1))
    lanes.offer(event(2, now=True))
    await settle()
    lanes.offer(event(3, now=True))
    lanes.offer(event(4, "b", now=True))
    assert world.handler.at_once == [4]
    assert world.cursor.value is None
    gate.set()
    await lanes.idle()
    assert world.handler.taken == [4, 1, 2, 3]
    assert world.cursor.value == "e4"
    await lanes.close()


async def test_h17_an_event_that_fails_at_once_goes_the_ordinary_way(world):
    world.handler = Eager()
    lanes = world.lanes()
    lanes.offer(event(1, now_error=ValueError("text")))
    lanes.offer(event(2, now_error=ValueError("text"), error=OSError()))
    lanes.offer(event(3, now=True))
    await lanes.idle()
    assert world.handler.taken == [1, 3]
    assert world.cursor.value == "e1"
    assert world.claims.working == 0
    await lanes.close()
