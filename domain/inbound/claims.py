"""Claim, handle, commit: decides whether an inbound id is new, in work, or done (rule 6, field faults 63 and 65).

Inbound is at least once: an id whose handling failed is released and its redelivery is new again. Refuses to know what
the ids stand for: event ids of the stream and message ids share this one rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import final

WINDOW = 1024
"""Committed ids that are remembered; the oldest leaves first (canon-wire §5.6 step 5)."""


@final
class Claims:
    """Ids in work and the last ``capacity`` committed ones."""

    def __init__(self, capacity: int = WINDOW) -> None:
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self._capacity = capacity
        self._working: set[str] = set()
        self._done: set[str] = set()
        self._order: deque[str] = deque()
        self._total = 0

    def known(self, key: str) -> bool:
        """Whether ``key`` is in work or was committed: a duplicate."""
        return key in self._done or key in self._working

    def in_work(self, key: str) -> bool:
        """Whether ``key`` is claimed right now."""
        return key in self._working

    def claim(self, key: str) -> bool:
        """Claim ``key`` for handling; ``False`` when it is in work or was committed: a duplicate."""
        if key in self._working or key in self._done:
            return False
        self._working.add(key)
        return True

    def commit(self, key: str) -> None:
        """Remember ``key`` as handled. A repeated commit does not refresh its place in the window."""
        if self._working:
            self._working.discard(key)
        if key in self._done:
            return
        self._total += 1
        self._done.add(key)
        self._order.append(key)
        if len(self._order) > self._capacity:
            self._done.discard(self._order.popleft())

    def release(self, key: str) -> None:
        """Give a claim back after a failed hand-over; a committed id stays committed."""
        self._working.discard(key)

    def committed(self, key: str) -> bool:
        """Whether ``key`` was committed and is still remembered."""
        return key in self._done

    def remember(self, keys: Iterable[str]) -> None:
        """Commit ids that were committed elsewhere, oldest first."""
        for key in keys:
            self.commit(key)

    @property
    def recent(self) -> tuple[str, ...]:
        """The committed ids that are remembered, oldest first."""
        return tuple(self._order)

    @property
    def total(self) -> int:
        """How many ids were committed so far."""
        return self._total

    @property
    def working(self) -> int:
        """Number of ids in work."""
        return len(self._working)
