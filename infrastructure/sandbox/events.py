"""The loopback Canon's event log and its live readers (canon-wire §5).

Decides: ids, the replay window, what a reader gets on connecting. Knows nothing of messages or turns.
Everything is called with the store's lock held; readers live on the server's event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field

from canon_hermes_plugin.infrastructure.sandbox.records import Json

DEFAULT_WINDOW = 2_000
"""Events kept for replay after ``Last-Event-ID``."""


@dataclass(frozen=True, slots=True)
class Abort:
    """Tells a reader's connection to end: with a clean end of the body, or by tearing the transport down."""

    clean: bool


Item = bytes | Abort


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """One event of the log."""

    number: int
    name: str
    data: Json | str

    @property
    def id(self) -> str:
        """The id of its frame."""
        return event_id(self.number)


@dataclass(slots=True)
class Framing:
    r"""How frames are put on the wire.

    Attributes:
        newline: ``"\n"``, ``"\r\n"`` or ``"\r"``.
        split: write every frame in two pieces, cut inside its last line end (between CR and LF when there is one).
        byte_by_byte: write every byte on its own.
    """

    newline: str = "\n"
    split: bool = False
    byte_by_byte: bool = False

    def pieces(self, frame: bytes) -> list[bytes]:
        """Cut one frame into the chunks to be written one after another."""
        if self.byte_by_byte:
            return [bytes([byte]) for byte in frame]
        return [frame[:-1], frame[-1:]] if self.split else [frame]


@dataclass(eq=False, slots=True)
class Reader:
    """One open stream connection."""

    loop: asyncio.AbstractEventLoop
    queue: asyncio.Queue[Item] = field(default_factory=asyncio.Queue[Item])

    def push(self, item: Item) -> None:
        """Hand an item to the connection; safe from any thread, harmless after the loop ended."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.queue.put_nowait, item)


def event_id(number: int) -> str:
    """Return the frame id of position ``number``; position 0 is before the first event."""
    return f"evt_{number:08d}"


def frame(name: str | None, data: Json | str, frame_id: str | None, newline: str = "\n") -> bytes:
    """Encode one frame. A string payload is sent as it is, line by line."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    if not isinstance(data, str) and any("\ud800" <= char <= "\udfff" for char in text):
        text = json.dumps(data, separators=(",", ":"))  # a lone surrogate travels as its escape
    lines = [] if frame_id is None else [f"id: {frame_id}"]
    if name is not None:
        lines.append(f"event: {name}")
    lines += [f"data: {line}" for line in text.split("\n")]
    return (newline.join([*lines, "", ""])).encode("utf-8")


class EventLog:
    """An append-only log with a bounded replay window and live readers."""

    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        self.events: deque[LoggedEvent] = deque(maxlen=window)
        self.readers: list[Reader] = []
        self.framing = Framing()
        self.silent = False
        self.opened = 0
        self._last = 0

    @property
    def last_id(self) -> str:
        """The id of the newest event (the base position when there is none)."""
        return event_id(self._last)

    def append(self, name: str, data: Json | str) -> LoggedEvent:
        """Log one event and hand it to every reader, unless the stream is silenced."""
        self._last += 1
        event = LoggedEvent(self._last, name, data)
        self.events.append(event)
        if not self.silent:
            self.raw(self._encode(event))
        return event

    def raw(self, data: bytes) -> None:
        """Write bytes to every open connection without logging them."""
        for reader in self.readers:
            reader.push(data)

    def repeat(self, count: int = 1) -> None:
        """Send the newest ``count`` events once more, ids included."""
        for event in list(self.events)[-count:]:
            self.raw(self._encode(event))

    def end(self, *, clean: bool) -> int:
        """End every open connection; return how many there were."""
        for reader in self.readers:
            reader.push(Abort(clean=clean))
        return len(self.readers)

    def forget(self) -> None:
        """Drop the replay window: every cursor but the newest position is now too old."""
        self.events.clear()

    def open(self, reader: Reader, cursor: str | None) -> None:
        """Attach a reader and queue what it must see first."""
        self.opened += 1
        backlog = self._after(cursor)
        if backlog is None:
            reader.push(frame("replay.expired", {"lastAvailableId": self.last_id}, self.last_id, self.framing.newline))
        else:
            position = self.last_id if cursor is None else cursor
            reader.push(frame("connected", {}, position, self.framing.newline))
            for event in backlog:
                reader.push(self._encode(event))
        self.readers.append(reader)

    def close(self, reader: Reader) -> None:
        """Detach a reader; idempotent."""
        if reader in self.readers:
            self.readers.remove(reader)

    def _after(self, cursor: str | None) -> list[LoggedEvent] | None:
        """Return the events after ``cursor``, nothing for a first connection, ``None`` when the cursor is no use."""
        if cursor is None or cursor == self.last_id:
            return []
        first = self.events[0].number if self.events else self._last + 1
        known = {event_id(number) for number in range(first - 1, self._last + 1)}
        if cursor not in known:
            return None
        return [event for event in self.events if event.id > cursor]

    def _encode(self, event: LoggedEvent) -> bytes:
        return frame(event.name, event.data, event.id, self.framing.newline)
