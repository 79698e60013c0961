"""Time, randomness and background work as ports, so that decisions stay reproducible."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol


class Clock(Protocol):
    """Reads and spends time."""

    def now_ms(self) -> int:
        """Wall clock: integer milliseconds since the Unix epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Suspend the calling task for ``seconds`` (0 yields once)."""
        ...


class IdSource(Protocol):
    """Mints random identifiers."""

    def hex(self, digits: int) -> str:
        """Return ``digits`` random lowercase hexadecimal characters (1 to 64)."""
        ...

    def jitter(self) -> float:
        """Return a uniformly random number in [0, 1)."""
        ...


class Tasks(Protocol):
    """Owns background work of one component, so that nothing outlives it."""

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Run ``work`` in the background of the owning event loop; an exception is logged with ``name``, never lost."""
        ...

    async def drain(self, seconds: float) -> None:
        """Wait up to ``seconds`` for running work, then cancel and await the rest."""
        ...
