"""The time ports: one suite for the running machine and for the twins."""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar

import pytest
from canon_hermes_plugin.infrastructure.memory.time import RecordedTasks, SeededIds, VirtualClock, settle
from canon_hermes_plugin.infrastructure.system import BackgroundTasks, SystemClock, SystemIds


@pytest.fixture(params=[SystemIds, SeededIds])
def ids(request):
    return request.param()


@pytest.fixture(params=[BackgroundTasks, RecordedTasks])
def tasks(request):
    return request.param()


@pytest.mark.parametrize("digits", [1, 2, 5, 20, 32, 64])
def test_hex_has_exactly_the_asked_digits(ids, digits):
    minted = ids.hex(digits)
    assert len(minted) == digits
    assert set(minted) <= set("0123456789abcdef")


@pytest.mark.parametrize("digits", [0, -1, 65])
def test_hex_refuses_lengths_outside_its_bounds(ids, digits):
    with pytest.raises(ValueError, match="between 1 and 64"):
        ids.hex(digits)


def test_identifiers_do_not_repeat(ids):
    assert len({ids.hex(20) for _ in range(1000)}) == 1000


def test_jitter_stays_in_its_interval(ids):
    assert all(0 <= ids.jitter() < 1 for _ in range(1000))


def test_seeded_identifiers_repeat_for_the_same_seed():
    assert [SeededIds(7).hex(9), SeededIds(7).jitter()] == [SeededIds(7).hex(9), SeededIds(7).jitter()]
    assert SeededIds(7).hex(20) != SeededIds(8).hex(20)


@pytest.mark.parametrize("clock", [SystemClock(), VirtualClock()], ids=["system", "virtual"])
async def test_sleeping_zero_yields_once(clock):
    order = []
    asyncio.get_running_loop().call_soon(order.append, "other")
    await clock.sleep(0)
    order.append("sleeper")
    assert order == ["other", "sleeper"]


@pytest.mark.parametrize("clock", [SystemClock(), VirtualClock()], ids=["system", "virtual"])
def test_the_wall_clock_counts_milliseconds_since_the_epoch(clock):
    assert isinstance(clock.now_ms(), int)
    assert clock.now_ms() > 1_600_000_000_000


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


async def test_background_failures_are_logged_with_the_name_and_never_lost(tasks, caplog):
    async def fail():
        raise RuntimeError("the text of a message")

    with caplog.at_level(logging.ERROR):
        tasks.spawn(fail(), name="release-retry")
        await settle()
    assert "release-retry" in caplog.text
    assert "the text of a message" not in caplog.text


async def test_drain_waits_for_work_that_ends_in_time(tasks):
    done = []

    async def work():
        await asyncio.sleep(0)
        done.append(True)

    tasks.spawn(work(), name="short")
    await tasks.drain(5)
    assert done == [True]


async def test_drain_cancels_and_awaits_the_rest(tasks):
    ended = []

    async def stuck():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    tasks.spawn(stuck(), name="stuck")
    await settle()
    await tasks.drain(0)
    assert ended == [True]


async def test_drain_also_ends_work_started_while_draining(tasks):
    ended = []

    async def second():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("second")

    async def first():
        tasks.spawn(second(), name="second")

    tasks.spawn(first(), name="first")
    await tasks.drain(0.01)
    assert ended == ["second"]


async def test_a_task_may_drain_its_siblings_without_waiting_for_itself(tasks):
    drained = []

    async def closer():
        await tasks.drain(0)
        drained.append(True)

    tasks.spawn(closer(), name="closer")
    await asyncio.wait_for(settle(50), 1)
    assert drained == [True]
    await tasks.drain(1)


async def test_work_sees_nothing_of_the_context_it_was_spawned_in(tasks):
    """A connection that it opens and that stays pooled would keep whatever the caller's context names."""
    caller, seen = ContextVar("caller"), []

    async def work():
        seen.append(caller.get(None))

    caller.set("a turn")
    tasks.spawn(work(), name="apart")
    await tasks.drain(1)
    assert seen == [None]
