"""The stream cursor as a low-water mark: decides which ``Last-Event-ID`` may be sent next (rule 6, canon-wire §5.3).

Conversations are handled side by side, so events finish out of order. The cursor moves only to the newest event before
which everything is finished: a reconnect asks again for anything that is not. It refuses to know what an event holds.

Two bounds keep one bad event from holding the cursor for ever. An event that failed :data:`MAX_FAILURES` deliveries is
passed over, and when more than ``capacity`` events wait behind the oldest one, the oldest is passed over. Work that is
passed over while it runs still runs to its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast, final

MAX_FAILURES = 3
CAPACITY = 4096
_UNCONFIRMED = 8


@dataclass(slots=True, eq=False)
class Position:
    """One event's place on the stream."""

    event_id: str
    working: bool = True
    finished: bool = False
    failures: int = 0


@final
class CursorMark:
    """Tracks the events after the cursor. ``value`` is what a reconnect may ask after, ``None`` for no cursor."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.value: str | None = None
        self._capacity = capacity
        self._unconfirmed: deque[str | None] = deque(maxlen=_UNCONFIRMED)
        self._waiting: deque[Position] = deque()
        self._by_id: dict[str, Position] = {}

    @property
    def waiting(self) -> int:
        """Events after the cursor."""
        return len(self._waiting)

    def holds(self, event_id: str) -> bool:
        """Whether the same event is in work, or finished and still after the cursor: a duplicate."""
        known = self._by_id.get(event_id)
        return known is not None and (known.working or known.finished)

    def open(self, event_id: str) -> Position | None:
        """Take an event's place; ``None`` when the same event is in work or finished already: a duplicate."""
        known = self._by_id.get(event_id)
        if known is not None:
            if known.working or known.finished:
                return None
            known.working = True
            return known
        position = Position(event_id)
        self._waiting.append(position)
        self._by_id[event_id] = position
        if len(self._waiting) > self._capacity:
            self._waiting[0].finished = True
            self._advance()
        return position

    def pass_over(self, event_id: str) -> None:
        """An event was handed over at once: the same as opening and finishing its place."""
        if not self._waiting:
            self.value = event_id
            return
        position = self.open(event_id)
        if position is not None:
            self.finish(position)

    def finish(self, position: Position) -> None:
        """The event was handed over, or there was nothing to hand over."""
        position.working = False
        position.finished = True
        self._advance()

    def fail(self, position: Position) -> bool:
        """The hand-over failed: the cursor stays before the event. ``True`` when the event is given up instead."""
        position.working = False
        position.failures += 1
        if position.failures < MAX_FAILURES:
            return False
        self.finish(position)
        return True

    def give_back(self, position: Position) -> None:
        """The event was not handled at all (shutdown); the cursor stays before it."""
        position.working = False

    def adopt(self, cursor: str | None) -> None:
        """Take the cursor Canon dictates (``replay.expired``), in stream order; earlier events no longer matter."""
        self._unconfirmed.append(cursor)
        self.value = cursor
        self._waiting.clear()
        self._by_id.clear()

    def confirm(self, cursor: str | None) -> None:
        """The handler of ``replay.expired`` says which cursor it read. One that was adopted already changes nothing."""
        if cursor in self._unconfirmed:
            self._unconfirmed.remove(cursor)
            return
        self.adopt(cursor)
        self._unconfirmed.clear()

    def _advance(self) -> None:
        while self._waiting and self._waiting[0].finished:
            passed = self._waiting.popleft()
            del self._by_id[passed.event_id]
            self.value = passed.event_id


def dictated_cursor(payload: object) -> str | None:
    """Return the cursor a ``replay.expired`` payload dictates, ``None`` to clear it (canon-wire §5.5)."""
    if not isinstance(payload, Mapping):
        return None
    value = cast("Mapping[str, object]", payload).get("lastAvailableId")
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None
