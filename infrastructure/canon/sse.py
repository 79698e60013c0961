"""A byte stream made safe for the event decoder (canon-wire §5.2, field fault 76).

Decides, on bytes and incrementally: all three line ends, also when a chunk border cuts CRLF; a leading byte order mark
is dropped; an event reaches the decoder only whole; one that grows beyond the bound is skipped up to its end without
harm to the next. It refuses to know what fields mean: that is httpx-sse's part.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable
from typing import final

import httpx
from httpx_sse import EventSource

_log = logging.getLogger(__name__)

MAX_EVENT_BYTES = 8 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_PIECE = 64 * 1024
_HEAD = 4096
_ID = re.compile(rb"(?:^|\n)id: ?([^\n\0]+)\n")
_END = b"\n\n"
# The decoder remembers the last id for ever. Starting every event with an empty one tells an event that has no id from
# an event that repeats the id before it.
_NO_ID = b"id:\n"
_WITH_ID = b"id:"
_NEXT_WITHOUT_ID = re.compile(rb"\n\n(?!id:)")
_HEADERS = {"content-type": "text/event-stream; charset=utf-8"}


@final
class EventGuard:
    """Cuts a byte stream into runs of complete events.

    Args:
        max_event_bytes: an event up to this size always passes; one beyond twice this size is always skipped.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.skipped = 0
        self._max = max_event_bytes
        self._piece = min(_PIECE, max_event_bytes)
        self._head: bytes | None = b""
        self._after_cr = False
        self._after_newline = False
        self._pending: list[bytes] = []
        self._size = 0
        self._skipping = False
        self._owed = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes; return what completes events, with LF line ends, or nothing."""
        chunk = self._fold(self._without_bom(chunk))
        if len(chunk) <= self._piece:
            return self._cut(chunk)
        return b"".join(self._cut(chunk[at : at + self._piece]) for at in range(0, len(chunk), self._piece))

    def _without_bom(self, chunk: bytes) -> bytes:
        if self._head is None:
            return chunk
        head = self._head + chunk
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(_BOM)

    def _fold(self, chunk: bytes) -> bytes:
        if not chunk:
            return chunk
        if self._after_cr and chunk.startswith(b"\n"):
            # The first half of this CRLF was folded with the chunk before.
            chunk = chunk[1:]
            self._after_cr = False
            return self._fold(chunk)
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk

    def _cut(self, piece: bytes) -> bytes:
        if not piece:
            return b""
        end_at_border = self._after_newline and piece.startswith(b"\n")
        last_end = piece.rfind(_END)
        cut = last_end + len(_END) if last_end >= 0 else int(end_at_border)
        self._after_newline = piece.endswith(b"\n")
        if not cut:
            self._keep(piece)
            return b""
        ready, rest = piece[:cut], piece[cut:]
        if self._skipping:
            self._skipping = False
            ready = ready[1 if end_at_border else ready.find(_END) + len(_END) :]
        elif self._pending:
            ready = b"".join([*self._pending, ready])
        ready = self._owed + ready if self._owed else ready
        self._owed, self._pending, self._size = b"", [], 0
        if rest:
            self._keep(rest)
        return _marked(ready)

    def _keep(self, piece: bytes) -> None:
        if self._skipping:
            return
        self._pending.append(piece)
        self._size += len(piece)
        if self._size > self._max:
            self.skipped += 1
            _log.warning("an event of more than %d bytes is skipped", self._max)
            found = _ID.search(b"".join(self._pending)[:_HEAD])
            if found:
                # Its id still moves the cursor, or the same event would come again on every reconnect.
                self._owed += b"id: " + found[1] + _END
            self._skipping = True
            self._pending, self._size = [], 0


def _marked(events: bytes) -> bytes:
    """Start every event with an empty id, unless each one starts with an id of its own anyway."""
    if events.startswith(_WITH_ID) and _NEXT_WITHOUT_ID.search(events, 0, len(events) - 1) is None:
        return events
    return _NO_ID + events.replace(_END, _END + _NO_ID)


@final
class _Guarded(httpx.AsyncByteStream):
    def __init__(self, chunks: AsyncIterator[bytes], guard: EventGuard, on_bytes: Callable[[], None]) -> None:
        self._chunks = chunks
        self._guard = guard
        self._on_bytes = on_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            self._on_bytes()
            if events := self._guard.feed(chunk):
                yield events


def event_source(chunks: AsyncIterator[bytes], guard: EventGuard, on_bytes: Callable[[], None]) -> EventSource:
    """Return httpx-sse's decoder over the guarded ``chunks``, read as UTF-8 whatever the server declares.

    Args:
        chunks: the body, content encoding already undone.
        guard: keeps the state of one connection.
        on_bytes: called for every chunk that arrives, heartbeats included.
    """
    return EventSource(httpx.Response(200, headers=_HEADERS, stream=_Guarded(chunks, guard, on_bytes)))
