"""Made-up time and the threads that work in it: the clock shows them the same on a slow machine and on a fast one."""

from __future__ import annotations

import asyncio
import contextvars
import time

import pytest
from canon_hermes_plugin.infrastructure.memory.virtual_loop import LoopThread

REAL = [0.0, 0.05]
"""Seconds of real work on a thread."""


@pytest.fixture
def machine():
    made = LoopThread()
    yield made
    made.close()


async def on_thread(machine, work):
    """Run ``work`` on a thread of the loop, as a scripted tool does."""
    context = contextvars.copy_context()
    worker = machine.loop.thread_begins(context)
    try:
        return await asyncio.get_running_loop().run_in_executor(None, context.run, work)
    finally:
        machine.loop.thread_ends(worker)


def later(machine, seconds, work):
    """Start ``work`` on a thread once ``seconds`` have passed."""

    async def whole():
        await asyncio.sleep(seconds)
        await on_thread(machine, work)

    return asyncio.run_coroutine_threadsafe(whole(), machine.loop)


@pytest.mark.parametrize("real", REAL)
def test_time_stands_still_while_a_thread_works(machine, real):
    seen = []

    def work():
        for _ in range(3):
            seen.append(machine.loop.time())
            time.sleep(real)

    later(machine, 10, work)
    machine.advance(600)
    assert seen == [10, 10, 10]
    assert machine.loop.time() == 600


@pytest.mark.parametrize("real", REAL)
def test_a_thread_that_waits_lets_exactly_its_time_pass(machine, real):
    seen = []

    def work():
        for _ in range(3):
            time.sleep(real)
            machine.wait(50)
            time.sleep(real)
            seen.append(machine.loop.time())

    later(machine, 10, work)
    machine.advance(100)
    assert seen == [60, 110, 160], "what is waited for is waited for, also beyond the time the caller lets pass"
    assert machine.loop.time() == 160


@pytest.mark.parametrize(("slow", "fast"), [(0.0, 0.04), (0.04, 0.0)])
def test_the_order_of_two_threads_is_that_of_their_waits(machine, slow, fast):
    seen = []

    def work(name, real, seconds):
        for _ in range(2):
            time.sleep(real)
            machine.wait(seconds)
            seen.append((name, machine.loop.time()))

    later(machine, 1, lambda: work("slow", slow, 7))
    later(machine, 2, lambda: work("fast", fast, 4))
    machine.advance(600)
    assert seen == [("fast", 6), ("slow", 8), ("fast", 10), ("slow", 15)]
    assert machine.loop.time() == 600


def test_time_may_pass_for_what_a_thread_waits_for_on_the_loop(machine):
    def work():
        waiting = machine.loop.waiting(asyncio.sleep(20, "done"))
        seen.append((asyncio.run_coroutine_threadsafe(waiting, machine.loop).result(5), machine.loop.time()))

    seen = []
    later(machine, 10, work)
    machine.advance(600)
    assert seen == [("done", 30)]


def test_who_drives_the_loop_waits_for_its_own_time_alone(machine):
    seen = []

    def work():
        machine.wait(300)
        seen.append(machine.loop.time())

    later(machine, 1, work)
    machine.wait(5)
    assert (seen, machine.loop.time()) == ([], 5)
    machine.advance()
    assert seen == [301]
