"""Twins of the time ports: a clock that moves only when told, seeded identifiers, tasks that keep a record.

With these a test of hours runs in milliseconds and gives the same result every time.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from typing import final

from canon_hermes_plugin.infrastructure.system import BackgroundTasks, check_hex_digits

_SETTLE_ROUNDS = 25
"""Turns of the event loop that let a chain of ready tasks run to its next real wait."""


async def settle(rounds: int = _SETTLE_ROUNDS) -> None:
    """Give every ready task of the loop ``rounds`` chances to run."""
    for _ in range(rounds):
        await asyncio.sleep(0)


@final
class VirtualClock:
    """A clock whose time passes through :meth:`advance` alone; sleepers wake in the order of their deadlines.

    Args:
        start_ms: the wall clock's first reading.
        instant: every sleep moves the clock and returns at once, for code whose waits are not the subject.
    """

    def __init__(self, start_ms: int = 1_700_000_000_000, *, instant: bool = False) -> None:
        self._instant = instant
        self._start_ms = start_ms
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now_ms(self) -> int:
        return self._start_ms + round(self._elapsed * 1000)

    def monotonic(self) -> float:
        return self._elapsed

    @property
    def sleepers(self) -> int:
        """Tasks that sleep on this clock right now."""
        return sum(not future.done() for _, _, future in self._sleepers)

    @property
    def next_wake(self) -> float | None:
        """Seconds until the next sleeper wakes, or ``None`` when nobody sleeps."""
        deadlines = [deadline for deadline, _, future in self._sleepers if not future.done()]
        return min(deadlines) - self._elapsed if deadlines else None

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0 or self._instant:
            self._elapsed += max(0.0, seconds)
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass, stopping at each deadline on the way so that woken tasks see the exact time."""
        await settle()
        target = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= target:
            deadline, _, future = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, deadline)
            if not future.done():
                future.set_result(None)
                await settle()
        self._elapsed = target
        await settle()


@final
class SeededIds:
    """Identifiers and jitter that repeat for the same ``seed``."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose, never used for secrets

    def hex(self, digits: int) -> str:
        check_hex_digits(digits)
        return f"{self._random.getrandbits(4 * digits):0{digits}x}"

    def jitter(self) -> float:
        return self._random.random()


@final
class RecordedTasks(BackgroundTasks):
    """Background tasks that remember what was started and what failed, for tests to look at."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[tuple[str, BaseException]] = []

    def failed(self, name: str, error: BaseException) -> None:
        super().failed(name, error)
        self.failures.append((name, error))
