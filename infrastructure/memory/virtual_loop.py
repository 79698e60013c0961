"""An event loop whose time is made up: it passes when everything waits, and no further than it may.

Every timer of asyncio, time limits included, runs on it, so hours pass in milliseconds and the same run gives the same
order every time. While a thread does real work for the loop, time stands still, however long the work takes: what the
thread reads on the clock does not depend on the machine. It refuses to know what runs on it.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from contextvars import Context, ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, final

_T = TypeVar("_T")

PATIENCE = 10.0
"""Real seconds without any made-up time passing after which something is stuck."""

THREADS = 64
"""Threads at once. They mostly sleep; one that had to wait for another's end would hold the time it waits for."""


class StuckError(RuntimeError):
    """Every task waits and nothing will ever wake one."""


class _TimeSkipper(selectors.DefaultSelector):
    """Waits for nothing real as long as made-up time can pass instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0) or self._loop.skip(timeout):
            return ready
        if self._loop.limit < math.inf:
            return super().select(None)
        ready = super().select(PATIENCE)  # threads may still be at work
        if not ready:
            raise StuckError("every task waits and nothing will wake one")
        return ready


@dataclass(eq=False, slots=True)
class Worker:
    """A thread that works for a loop.

    Attributes:
        waits: what it waits for on the loop right now; it does real work while this is 0.
        wakes: when its sleeps end, in the loop's time.
    """

    waits: int
    wakes: list[float]


_WORKER: ContextVar[Worker | None] = ContextVar("canon_testing_worker", default=None)
"""The worker whose code this is."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """Somebody who waits until nothing is left to do before time passes on.

    Attributes:
        done: is resolved then.
        heed_threads: wait for the workers' ends as well.
    """

    done: Future[None]
    heed_threads: bool


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop. ``limit`` is how far its time may pass by itself, in seconds; infinite by default."""

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit
        self._now = 0.0
        self._resting: list[_Rest] = []
        self._workers: set[Worker] = set()
        self._at_rest: deque[Callable[[], object]] = deque()
        super().__init__(_TimeSkipper(self))
        self.set_default_executor(ThreadPoolExecutor(THREADS, "canon-testing-worker"))

    def time(self) -> float:
        return self._now

    def skip(self, timeout: float | None) -> bool:
        """Let time pass to the next timer, which is ``timeout`` seconds away; ``False`` when it may not."""
        if any(not worker.waits for worker in self._workers):
            return False
        if self._at_rest and (self._resting or self.limit == math.inf):
            self.call_soon(self._at_rest.popleft(), context=Context())
            return True
        target = math.inf if timeout is None else max(self._now + timeout, math.nextafter(self._now, math.inf))
        if target <= max(self.limit, self._granted()) and target < math.inf:
            self._now = target
            return True
        if self.limit < math.inf:
            self._now = max(self._now, self.limit)
            self._report_rest()
        return False

    def pass_time(self, seconds: float, done: Future[None], *, heed_threads: bool) -> None:
        """Let ``seconds`` more pass; ``done`` is resolved when they have and nothing is ready to run any more."""
        self.limit = max(self.limit, self._now) + seconds
        self._resting.append(_Rest(done, heed_threads))

    def when_at_rest(self, work: Callable[[], object], seconds: float = 0.0) -> None:
        """Call ``work`` ``seconds`` after nothing is ready to run any more and no thread at work; on the loop.

        What came first is called first, and what follows from it happens before the next one is called. So it does not
        depend on the machine what a thread has done by then. It runs in a context of its own.
        """
        self._at_rest.append(work if seconds <= 0 else lambda: self.call_later(seconds, work, context=Context()))

    def plight(self) -> str:
        """Return how far time got and why it does not get any further, in words; any thread."""
        workers = list(self._workers)
        busy = sum(not worker.waits for worker in workers)
        if busy:
            why = f"{busy} of the threads that run tools and scripts did not end and wait for nothing made up"
        elif workers:
            why = "a tool waits for something that does not come"
        else:
            why = "something runs again and again, or waits for something real"
        goal = f" of {self.limit:,.0f} s" if self.limit < math.inf else ""
        return f"made-up time stands still at {self._now:,.0f} s{goal} since {PATIENCE:.0f} real seconds: {why}"

    # --- threads that work for the loop; all but `waiting` is called on it ------------------------------------------

    def thread_begins(self, context: Context) -> Worker:
        """A thread works for this loop in ``context``: time stands still unless the thread waits on the loop."""
        worker = Worker(0, [])
        self._workers.add(worker)
        context.run(_WORKER.set, worker)
        return worker

    def thread_ends(self, worker: Worker) -> None:
        """The thread's work is over."""
        self._workers.discard(worker)

    async def waiting(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run ``work`` for the calling worker, if it is one: time may pass meanwhile."""
        worker = _WORKER.get()
        if worker is None:
            return await work
        worker.waits += 1
        try:
            return await work
        finally:
            worker.waits -= 1

    async def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass for the calling worker; whoever heeds threads grants it the time."""
        worker, wake = _WORKER.get(), self._now + seconds
        if worker is not None:
            worker.wakes.append(wake)
        try:
            await self.waiting(asyncio.sleep(seconds))
        finally:
            if worker is not None:
                worker.wakes.remove(wake)

    def _granted(self) -> float:
        """Return how far time may pass for sleeping workers."""
        wakes = [wake for worker in self._workers for wake in worker.wakes]
        heeded = any(rest.heed_threads for rest in self._resting)
        return min(wakes) if wakes and heeded else self._now

    def _report_rest(self) -> None:
        ready = [rest for rest in self._resting if not (rest.heed_threads and self._workers)]
        self._resting = [rest for rest in self._resting if rest not in ready]
        for rest in ready:
            if not rest.done.cancelled():  # who asked gave up
                rest.done.set_result(None)


@final
class LoopClock:
    """The clock of a loop; reading is allowed from any thread.

    Args:
        loop: whose time it shows and spends.
        start_ms: the wall clock when that time was zero.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, start_ms: int = 1_700_000_000_000) -> None:
        self._loop = loop
        self._start_ms = start_ms

    def now_ms(self) -> int:
        return self._start_ms + round(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@final
class LoopThread:
    """Runs a :class:`VirtualLoop` in a thread of its own, for callers with or without an event loop.

    Attributes:
        barred: why nobody may use it now; ``None`` when it may be used. All but :meth:`close` raises RuntimeError then.
    """

    def __init__(self) -> None:
        self.barred: str | None = None
        self._loop = VirtualLoop(limit=0.0)
        self._thread = threading.Thread(target=self._serve, name="canon-testing", daemon=True)
        self._thread.start()

    @property
    def loop(self) -> VirtualLoop:
        """The loop."""
        self.check()
        return self._loop

    def check(self) -> None:
        """Raise RuntimeError when nobody may use it now."""
        if self.barred is not None:
            raise RuntimeError(self.barred)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run ``work`` on the loop and return its result; no made-up time passes.

        Raises:
            TimeoutError: it waits for time or for somebody.
        """
        try:
            self.check()
        except RuntimeError:
            work.close()
            raise
        return self._outcome(asyncio.run_coroutine_threadsafe(work, self._loop))

    def advance(self, seconds: float = 0.0) -> None:
        """Let time pass and return when nothing is left to do before it passes on, threads included.

        Raises:
            TimeoutError: the loop does not come to rest.
        """
        self._pass_time(seconds, heed_threads=True)

    def wait(self, seconds: float) -> None:
        """Let time pass for the caller: one of the loop's workers, or somebody who drives the loop.

        Raises:
            TimeoutError: the loop does not come to rest.
        """
        if _WORKER.get() is None:
            self._pass_time(seconds, heed_threads=False)
        else:
            self._outcome(asyncio.run_coroutine_threadsafe(self.loop.sleep(seconds), self.loop), beyond=True)

    def close(self) -> None:
        """Cancel what still runs and end the thread; idempotent."""
        if self._loop.is_closed():
            return
        self._outcome(asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)

    def _pass_time(self, seconds: float, *, heed_threads: bool) -> None:
        done: Future[None] = Future()
        loop = self.loop
        loop.call_soon_threadsafe(lambda: loop.pass_time(seconds, done, heed_threads=heed_threads))
        self._outcome(done)

    def _outcome(self, future: Future[_T], *, beyond: bool = False) -> _T:
        """Wait as long as made-up time gets on, ``beyond`` the granted time or up to it, however long that takes."""
        seen = self._loop.time()
        while not wait_for_futures([future], PATIENCE).done:
            reached = self._loop.time() if beyond else min(self._loop.time(), self._loop.limit)
            if reached <= seen:
                future.cancel()
                raise TimeoutError(self._loop.plight())
            seen = reached
        return future.result()

    def _serve(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
