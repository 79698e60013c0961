"""When to connect again (canon-wire §5.4, H38): a pure policy that knows no network and no clock.

The pause lies between a floor (1 s, or what the server asks for with ``retry:``) and a ceiling that doubles with every
connection that did not live, up to 30 s; where in between is drawn from the caller's random number. A clean end pauses
like a failure. Only a connection on which something arrived resets the ceiling. A refused key ends everything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

BASE = 1.0
CAP = 30.0
_MAX_DOUBLINGS = 16

Way = Literal["clean", "failed", "refused"]


@dataclass(frozen=True, slots=True)
class ConnectionEnd:
    """How one connection ended.

    Attributes:
        way: ``clean`` when the server closed it, ``refused`` for 401 and 403, else ``failed``.
        lived: a frame or heartbeat arrived on it.
        retry_after: seconds the server asked to wait with its refusal, already bounded.
    """

    way: Way
    lived: bool = False
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Backoff:
    """The policy's memory: ends in a row that did not live, and the floor the server asked for."""

    failures: int = 0
    floor: float = BASE

    def hinted(self, milliseconds: int) -> Backoff:
        """Adopt a ``retry:`` field, bounded to 1 to 30 s."""
        return replace(self, floor=min(max(milliseconds / 1000, BASE), CAP))

    @property
    def ceiling(self) -> float:
        """The longest pause of the next draw, seconds."""
        return max(self.floor, min(CAP, BASE * 2.0 ** min(self.failures, _MAX_DOUBLINGS)))

    def after(self, end: ConnectionEnd, jitter: float) -> tuple[Backoff, float | None]:
        """Return the new memory and the pause in seconds, or ``None`` to stop for good.

        Args:
            end: how the connection ended.
            jitter: a uniformly random number in [0, 1).
        """
        if end.way == "refused":
            return self, None
        memory = replace(self, failures=1 if end.lived else self.failures + 1)
        pause = memory.floor + jitter * (memory.ceiling - memory.floor)
        return memory, max(pause, min(end.retry_after or 0.0, CAP))
