"""Canon's event stream over HTTP (R18, canon-wire §5): one owner task that connects, reads and connects again.

Decides when a connection is dead and which cursor the next one carries. When to connect again is
:mod:`canon_hermes_plugin.domain.reconnect`, order and duplicates are :mod:`canon_hermes_plugin.domain.inbound.lanes`.
It refuses to know what events mean, but for the one that dictates the cursor.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, final

import httpx
from canon_hermes_plugin.domain.inbound.claims import Claims
from canon_hermes_plugin.domain.inbound.cursor import CursorMark, dictated_cursor
from canon_hermes_plugin.domain.inbound.lanes import MAX_QUEUED, Lanes
from canon_hermes_plugin.domain.reconnect import Backoff, ConnectionEnd, Way
from canon_hermes_plugin.infrastructure.canon.link import CanonLink, Request, translate
from canon_hermes_plugin.infrastructure.canon.sse import MAX_EVENT_BYTES, EventGuard, event_source
from canon_hermes_plugin.ports.canon_stream import EventHandler, StreamEvent, StreamHealth, StreamState
from canon_hermes_plugin.ports.errors import AuthenticationError, CanonApiError, CanonError
from canon_hermes_plugin.ports.time import IdSource
from httpx_sse import SSEError

_log = logging.getLogger(__name__)

EVENTS = "messages%2Ccontacts%2Ctyping_presence%2Cruntime_turn%2Cvoice"
WATCHDOG = 90.0
_CONNECT_TIMEOUT = 15.0
_UNAUTHORIZED = frozenset({401, 403})
_MAX_ID = 512
_BIG = 512 * 1024
_MAX_REFUSAL = 64 * 1024
_DECODER = json.JSONDecoder()
_NAMELESS = "message"
"""What the decoder calls an event without a name. Canon has no event of that name (canon-wire §5.2)."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Bounds of the stream.

    Attributes:
        watchdog: seconds without a byte after which a connection is dead; more than two heartbeats.
        connect_timeout: seconds to open a connection.
        max_event_bytes: a larger event is skipped.
        max_queued: events waiting for their handler before reading pauses.
        stop_grace: seconds that running handlers get to end when the stream is stopped.
    """

    watchdog: float = WATCHDOG
    connect_timeout: float = _CONNECT_TIMEOUT
    max_event_bytes: int = MAX_EVENT_BYTES
    max_queued: int = MAX_QUEUED
    stop_grace: float = 1.0


@final
class CanonSse:
    """Implements :class:`~canon_hermes_plugin.ports.canon_stream.CanonStream`.

    Cursor and claims live as long as this object, so a second :meth:`run` goes on where the first one ended.

    Args:
        link: shared with the request side; not closed here.
        ids: draws the jitter.
        options: bounds.
    """

    def __init__(self, link: CanonLink, ids: IdSource, options: StreamOptions | None = None) -> None:
        self._link = link
        self._clock = link.clock
        self._ids = ids
        self._options = options or StreamOptions()
        self._claims = Claims()
        self._cursor = CursorMark()
        self._backoff = Backoff()
        self._reader: asyncio.Task[None] | None = None
        self._state = StreamState.IDLE
        self._stopped = False
        self._attempts = 0
        self._lived = False
        self._last_byte_at: float | None = None

    async def run(self, handler: EventHandler) -> None:
        if self._reader is not None:
            raise RuntimeError("the stream already runs; one task owns it")
        self._stopped = False
        lanes = Lanes(handler, self._claims, self._cursor, max_queued=self._options.max_queued)
        reader = self._reader = asyncio.get_running_loop().create_task(self._read_on(lanes), name="canon-stream-reader")
        try:
            await asyncio.wait({reader})
        finally:
            # Whoever stops the stream may cancel this task as well, at any step: the lanes are closed all the same.
            await _to_its_end(self._wind_up(reader, lanes))
        if not reader.cancelled() and (error := reader.exception()) is not None:
            raise error

    async def _wind_up(self, reader: asyncio.Task[None], lanes: Lanes) -> None:
        grace = self._options.stop_grace if reader.done() else 0.0
        reader.cancel()
        await asyncio.wait({reader})
        self._reader = None
        await lanes.close(grace)
        if self._state is not StreamState.UNAUTHORIZED:
            self._state = StreamState.STOPPED

    async def stop(self) -> None:
        self._stopped = True
        reader = self._reader
        if reader is None:
            self._state = StreamState.STOPPED
        elif reader is not asyncio.current_task():
            reader.cancel()
            await asyncio.wait({reader})

    def health(self) -> StreamHealth:
        return StreamHealth(self._state, self._last_byte_at, self._attempts, self._cursor.value)

    def set_cursor(self, cursor: str | None) -> None:
        self._cursor.confirm(usable_id(cursor))

    async def _read_on(self, lanes: Lanes) -> None:
        while not self._stopped:
            self._lived = False
            self._attempts += 1
            self._state = StreamState.CONNECTING
            error = await self._connect(lanes)
            way: Way = "refused" if isinstance(error, AuthenticationError) else "failed" if error else "clean"
            end = ConnectionEnd(way, self._lived, error.retry_after if isinstance(error, CanonApiError) else None)
            self._backoff, pause = self._backoff.after(end, self._ids.jitter())
            if pause is None:
                self._state = StreamState.UNAUTHORIZED
                _log.error("the stream stops: %s", error)
                raise error or AuthenticationError(401)
            self._state = StreamState.WAITING
            _log.warning("stream ended (%s), next connection in %.1f s", error or "closed by the server", pause)
            await self._clock.sleep(pause)

    async def _connect(self, lanes: Lanes) -> CanonError | None:
        """Hold one connection to its end; return what ended it, ``None`` for a clean end."""
        options = self._options
        phases = httpx.Timeout(_CONNECT_TIMEOUT, connect=options.connect_timeout, read=options.watchdog)
        try:
            async with self._link.open(self._request(), phases) as response:
                refusal = await self._refusal(response)
                if refusal is None:
                    self._state = StreamState.LIVE
                    await self._read(response, lanes)
                return refusal
        except CanonError as error:
            return error
        except httpx.HTTPError as error:
            return translate(error)
        except (httpx.StreamError, SSEError) as error:
            return CanonError(f"the stream broke ({type(error).__name__})", retryable=True)

    def _request(self) -> Request:
        headers: dict[str, str | bytes] = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if self._cursor.value is not None:
            headers["Last-Event-ID"] = self._cursor.value.encode("utf-8")
        return Request("GET", f"{self._link.environment.stream_url}/agents/stream?events={EVENTS}", headers=headers)

    async def _refusal(self, response: httpx.Response) -> CanonError | None:
        status = response.status_code
        if 200 <= status < 300:  # noqa: PLR2004 - canon-wire §0.4
            if "text/event-stream" in response.headers.get("content-type", "").lower():
                return None
            return CanonError("the stream's address answers with something else than events", retryable=True)
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MAX_REFUSAL:
                break
        error = self._link.refusal(status, response.headers, body)
        if status not in _UNAUTHORIZED:
            return error
        return AuthenticationError(status, error.body, machine_code=error.machine_code, detail=error.detail)

    async def _read(self, response: httpx.Response, lanes: Lanes) -> None:
        guard = EventGuard(self._options.max_event_bytes)
        source = event_source(response.aiter_bytes(), guard, self._stamp)
        async with aclosing(source.aiter_sse()) as events:
            async for event in events:
                name, text, event_id = event.event, event.data, usable_id(event.id)
                if text and name != _NAMELESS:
                    # Most payloads are small: they are decoded here, without another coroutine.
                    data = parse(text) if len(text) < _BIG else await asyncio.to_thread(parse, text)
                    if name == "replay.expired":
                        # Adopted in stream order; the handler confirms it. The event's own id must not move it on.
                        self._cursor.adopt(usable_id(dictated_cursor(data)))
                        event_id = None
                    lanes.offer(StreamEvent(name, data, event_id), len(text))
                    if lanes.full:
                        await lanes.room()
                elif event_id:
                    lanes.skip(event_id)
                if event.retry is not None:
                    self._backoff = self._backoff.hinted(event.retry)

    def _stamp(self) -> None:
        self._last_byte_at = self._clock.monotonic()
        self._lived = True


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Await ``work`` however often the caller is cancelled meanwhile, and only then let it be cancelled."""
    task = asyncio.get_running_loop().create_task(work, name="canon-stream-end")
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    await task


def usable_id(event_id: str | None) -> str | None:
    """Return ``event_id`` when it can stand in a ``Last-Event-ID`` header, else ``None``.

    One unusable id kept as the cursor would make every later connection fail.
    """
    # The only printable blank is the ordinary one.
    if event_id and len(event_id) <= _MAX_ID and event_id.isprintable() and " " not in {event_id[0], event_id[-1]}:
        return event_id
    return None


def parse(text: str) -> Any:  # noqa: ANN401 - decoded JSON or the raw string
    """Return the decoded payload, or the raw string when it is not JSON (canon-wire §5.2)."""
    try:
        # The whole text is one value as a rule; what surrounds it, if anything, is judged by the complete decoder.
        value, end = _DECODER.raw_decode(text)
        return value if end == len(text) else json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
