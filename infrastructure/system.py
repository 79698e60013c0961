"""The running machine behind the time ports: real clock, real randomness, real tasks.

Decides nothing. It refuses to know what the time, the identifiers or the work are for.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, final

_log = logging.getLogger(__name__)
_RESOLUTION = 1 << 53
_MAX_HEX = 64


@final
class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@final
class SystemIds:
    """The operating system's randomness."""

    def hex(self, digits: int) -> str:
        check_hex_digits(digits)
        return secrets.token_hex((digits + 1) // 2)[:digits]

    def jitter(self) -> float:
        return secrets.randbelow(_RESOLUTION) / _RESOLUTION


def check_hex_digits(digits: int) -> None:
    """Raise ``ValueError`` unless ``digits`` lies in the port's bounds (1 to 64)."""
    if not 1 <= digits <= _MAX_HEX:
        raise ValueError(f"digits must lie between 1 and {_MAX_HEX}, got {digits}")


class BackgroundTasks:
    """Background work as asyncio tasks of the running loop. Usable again after :meth:`drain`.

    The work starts in an empty context: what it leaves open, a pooled connection for one, would keep the caller's
    context, and with it a turn that is long over.
    """

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name, context=Context())
        self._running.add(task)
        task.add_done_callback(self._finished)

    async def drain(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self._others() and loop.time() < deadline:
            # Work may spawn more work while it ends, hence the loop.
            await asyncio.wait(self._others(), timeout=max(0.0, deadline - loop.time()))
        while leftovers := self._others():
            for task in leftovers:
                task.cancel()
            await asyncio.wait(leftovers)
            await asyncio.sleep(0)

    def failed(self, name: str, error: BaseException) -> None:
        """Report a failure. The traceback stays out: exception texts of third parties may quote messages."""
        _log.error("background work %s failed: %s", name, type(error).__name__)

    def _others(self) -> set[asyncio.Task[None]]:
        # A drain started from one of our own tasks must not wait for itself.
        return self._running - {asyncio.current_task()}

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failed(task.get_name(), error)
