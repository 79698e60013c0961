"""An event loop whose time is made up: it passes when everything waits, and no further than it may.

Every timer of asyncio, time limits included, runs on it, so hours pass in milliseconds and the same run gives the same
order every time. It refuses to know what runs on it.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar, final

_T = TypeVar("_T")

PATIENCE = 10.0
"""Real seconds a caller waits for the loop, and the loop for its threads, before something is stuck."""


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


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop. ``limit`` is how far its time may pass by itself, in seconds; infinite by default."""

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit
        self._now = 0.0
        self._idle: list[tuple[Future[None], bool]] = []
        self._busy = 0
        super().__init__(_TimeSkipper(self))

    def time(self) -> float:
        return self._now

    def skip(self, timeout: float | None) -> bool:
        """Let time pass to the next timer, which is ``timeout`` seconds away; ``False`` when it may not."""
        target = math.inf if timeout is None else max(self._now + timeout, math.nextafter(self._now, math.inf))
        threads = self._busy and self.limit == math.inf
        if target <= self.limit and target < math.inf and not threads:
            self._now = target
            return True
        if self.limit < math.inf:
            self._now = max(self._now, self.limit)
            self._report_idle()
        return False

    def pass_time(self, seconds: float, done: Future[None], *, heed_threads: bool) -> None:
        """Let ``seconds`` more pass; ``done`` is resolved when they have and nothing is ready to run any more."""
        self.limit = max(self.limit, self._now) + seconds
        self._idle.append((done, heed_threads))

    def thread_begins(self) -> None:
        """A thread works for this loop: it is not idle meanwhile."""
        self._busy += 1

    def thread_ends(self) -> None:
        """The thread's work is over."""
        self._busy -= 1

    def _report_idle(self) -> None:
        ready = [(done, heed) for done, heed in self._idle if not (heed and self._busy)]
        self._idle = [item for item in self._idle if item not in ready]
        for done, _ in ready:
            done.set_result(None)


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
    """Runs a :class:`VirtualLoop` in a thread of its own, for callers with or without an event loop."""

    def __init__(self) -> None:
        self.loop = VirtualLoop(limit=0.0)
        self._thread = threading.Thread(target=self._serve, name="canon-testing", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run ``work`` on the loop and return its result; no made-up time passes.

        Raises:
            TimeoutError: it waits for time or for somebody.
        """
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(PATIENCE)
        except TimeoutError:
            future.cancel()
            raise

    def advance(self, seconds: float = 0.0, *, heed_threads: bool = True) -> None:
        """Let time pass and return when nothing is left to do before it passes on.

        Raises:
            TimeoutError: the loop does not come to rest.
        """
        done: Future[None] = Future()
        self.loop.call_soon_threadsafe(lambda: self.loop.pass_time(seconds, done, heed_threads=heed_threads))
        done.result(PATIENCE)

    def close(self) -> None:
        """Cancel what still runs and end the thread; idempotent."""
        if self.loop.is_closed():
            return
        self.run(_cancel_others())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)

    def _serve(self) -> None:
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
