"""The twin of Canon's stream: a test emits events, the handler receives them by the rules of the real stream."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import final

from canon_hermes_plugin.domain.inbound.claims import Claims
from canon_hermes_plugin.domain.inbound.cursor import CursorMark, dictated_cursor
from canon_hermes_plugin.domain.inbound.lanes import Lanes
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.ports.canon_stream import EventHandler, StreamEvent, StreamHealth, StreamState
from canon_hermes_plugin.ports.errors import AuthenticationError
from canon_hermes_plugin.ports.time import Clock


@final
class MemoryCanonStream:
    """Events by hand. What is emitted while nobody runs the stream is delivered when somebody does."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or VirtualClock()
        self._claims = Claims()
        self._cursor = CursorMark()
        self._backlog: deque[StreamEvent] = deque()
        self._lanes: Lanes | None = None
        self._end: asyncio.Future[None] | None = None
        self._state = StreamState.IDLE
        self._last_byte_at: float | None = None
        self._attempts = 0

    def emit(self, event: StreamEvent) -> None:
        """Let Canon send ``event`` now."""
        if self._lanes is None:
            self._backlog.append(event)
            return
        self._last_byte_at = self._clock.monotonic()
        if event.name == "replay.expired":
            self._cursor.adopt(dictated_cursor(event.data))
            event = event._replace(event_id=None)
        if event.name and event.data is not None:
            self._lanes.offer(event)
        elif event.event_id is not None:
            self._lanes.skip(event.event_id)

    async def settled(self) -> None:
        """Wait until everything emitted was handled or given up."""
        if self._lanes is not None:
            await self._lanes.idle()

    def refuse(self) -> None:
        """Let Canon refuse the key: :meth:`run` ends with an :class:`AuthenticationError`."""
        if self._end is not None and not self._end.done():
            self._end.set_exception(AuthenticationError(401))

    async def run(self, handler: EventHandler) -> None:
        if self._lanes is not None:
            raise RuntimeError("the stream already runs")
        end = self._end = asyncio.get_running_loop().create_future()
        lanes = self._lanes = Lanes(handler, self._claims, self._cursor)
        self._attempts += 1
        self._state = StreamState.LIVE
        while self._backlog:
            self.emit(self._backlog.popleft())
        try:
            await end
            self._state = StreamState.STOPPED
        except AuthenticationError:
            self._state = StreamState.UNAUTHORIZED
            raise
        finally:
            if self._state is StreamState.LIVE:
                self._state = StreamState.STOPPED
            self._lanes = None
            await lanes.close()

    async def stop(self) -> None:
        if self._end is not None and not self._end.done():
            self._end.set_result(None)
        self._state = StreamState.STOPPED

    def health(self) -> StreamHealth:
        return StreamHealth(self._state, self._last_byte_at, self._attempts, self._cursor.value)

    def set_cursor(self, cursor: str | None) -> None:
        self._cursor.confirm(cursor)
