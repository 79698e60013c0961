"""The time ports: one suite for the running machine and for the twins."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest
from canon_hermes_plugin.infrastructure.memory.time import RecordedTasks, SeededIds, VirtualClock, settle
from canon_hermes_plugin.infrastructure.memory.virtual_loop import LoopClock
from canon_hermes_plugin.infrastructure.system import BackgroundTasks, SystemClock, SystemIds
from canon_hermes_plugin.testing.contracts import ClockContract, IdSourceContract, TasksContract


@pytest.fixture(params=[BackgroundTasks, RecordedTasks])
def tasks(request):
    return request.param()


def test_seeded_identifiers_repeat_for_the_same_seed():
    assert [SeededIds(7).hex(9), SeededIds(7).jitter()] == [SeededIds(7).hex(9), SeededIds(7).jitter()]
    assert SeededIds(7).hex(20) != SeededIds(8).hex(20)


async def test_virtual_time_wakes_sleepers_at_their_exact_time_and_in_order():
    clock, woken = VirtualClock(), []

    async def nap(seconds):
        await clock.sleep(seconds)
        woken.append((seconds, clock.monotonic()))

    naps = [asyncio.ensure_future(nap(seconds)) for seconds in (5, 1, 3)]
    await clock.advance(4)
    assert woken == [(1, 1), (3, 3)]
    assert (clock.monotonic(), clock.sleepers, clock.next_wake) == (4, 1, 1)
    await clock.advance(60)
    assert woken[-1] == (5, 5)
    await asyncio.gather(*naps)


async def test_virtual_time_lets_a_woken_task_sleep_again_inside_one_advance():
    clock, ticks = VirtualClock(), []

    async def tick():
        while True:
            await clock.sleep(2)
            ticks.append(clock.now_ms())

    start, task = clock.now_ms(), asyncio.ensure_future(tick())
    await clock.advance(7)
    task.cancel()
    assert [tick - start for tick in ticks] == [2000, 4000, 6000]


async def test_a_cancelled_sleeper_is_forgotten():
    clock = VirtualClock()
    task = asyncio.ensure_future(clock.sleep(3))
    await settle()
    task.cancel()
    await clock.advance(5)
    assert task.cancelled()
    assert clock.sleepers == 0


async def test_work_sees_nothing_of_the_context_it_was_spawned_in(tasks):
    """A connection that it opens and that stays pooled would keep whatever the caller's context names."""
    caller, seen = ContextVar("caller"), []

    async def work():
        seen.append(caller.get(None))

    caller.set("a turn")
    tasks.spawn(work(), name="apart")
    await tasks.drain(1)
    assert seen == [None]


class TestSystemClock(ClockContract):
    subject = SystemClock

    def factory(self):
        return SystemClock()


class TestVirtualClock(ClockContract):
    subject = VirtualClock

    def factory(self):
        return VirtualClock()


class TestSystemIds(IdSourceContract):
    subject = SystemIds

    def factory(self):
        return SystemIds()


class TestSeededIds(IdSourceContract):
    subject = SeededIds

    def factory(self):
        return SeededIds()


class TestBackgroundTasks(TasksContract):
    subject = BackgroundTasks

    def factory(self):
        return BackgroundTasks()


class TestRecordedTasks(TasksContract):
    subject = RecordedTasks

    def factory(self):
        return RecordedTasks()


class TestLoopClock(ClockContract):
    subject = LoopClock

    def factory(self):
        return LoopClock(asyncio.get_running_loop())
