"""Hands events over in order per conversation, conversations side by side, off the read loop (rules 6 and 7).

Decides in which order events reach their handler, what counts as a duplicate, and when the cursor may move. A failing
event never harms the next one (H17), and a slow conversation never delays another (H21). It refuses to know what the
events mean and how they arrive.

A few shared workers walk the conversations that have something to do. Handling that completes without waiting costs no
task and no loop turn per event; a worker whose handler waits is replaced by another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import final

from canon_hermes_plugin.domain.inbound.claims import Claims
from canon_hermes_plugin.domain.inbound.cursor import CursorMark, Position
from canon_hermes_plugin.ports.canon_stream import EagerEventHandler, EventHandler, StreamEvent, WaitingEventHandler

_log = logging.getLogger(__name__)

MAX_QUEUED = 4096
"""Events waiting for a worker before the reader has to wait (back-pressure onto the connection)."""
MAX_QUEUED_CHARS = 64 * 1024 * 1024
"""Payload characters waiting for a worker before the reader has to wait; one event may exceed it alone."""
MAX_WORKERS = 128
"""Conversations that may wait inside their handlers at the same time."""
_FAIR_SHARE = 128
"""Events one worker takes before it lets the loop turn."""
_HANDLING_ATTEMPTS = 2


_Item = tuple[StreamEvent, Position | None, int]
"""An event, its place on the stream, and the size of its payload."""


@dataclass(slots=True, eq=False)
class _Lane:
    queue: deque[_Item] = field(default_factory=deque["_Item"])
    owned: bool = False


@final
class Lanes:
    """The ordered, bounded way from the stream to its handler.

    Claims and cursor outlive a connection and this object: pass the same ones to keep duplicates out after a restart.
    """

    def __init__(
        self, handler: EventHandler, claims: Claims, cursor: CursorMark, *, max_queued: int = MAX_QUEUED
    ) -> None:
        self._handler = handler
        self._handle_now = handler.handle_now if isinstance(handler, EagerEventHandler) else None
        self._waits = handler.waits if isinstance(handler, WaitingEventHandler) else None
        self._claims = claims
        self._cursor = cursor
        self._max_queued = max_queued
        self._lanes: dict[str | None, _Lane] = {}
        self._ready: deque[tuple[str | None, _Lane]] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._idle: list[asyncio.Future[None]] = []
        self._helper_coming = False
        self._queued = 0
        self._queued_chars = 0
        self._unfinished = 0
        self._changed: asyncio.Event | None = None
        self._closed = False

    @property
    def queued(self) -> int:
        """Events that wait for a worker."""
        return self._queued

    @property
    def full(self) -> bool:
        """Whether the reader must wait for :meth:`room` before it offers more."""
        return self._queued >= self._max_queued or self._queued_chars >= MAX_QUEUED_CHARS

    def skip(self, event_id: str) -> None:
        """Move the cursor over an event that holds nothing to hand over (no name or no data)."""
        self._cursor.pass_over(event_id)

    def offer(self, event: StreamEvent, size: int = 0) -> None:
        """Take ``event`` into its lane, unless it is a duplicate. Never waits; ask :attr:`full` first.

        Args:
            event: what arrived.
            size: characters of its payload, for the bound on what waits.
        """
        event_id = event.event_id
        if event_id is not None and (self._claims.known(event_id) or self._cursor.holds(event_id)):
            return
        if not self._handled_at_once(event):
            self._enqueue(event, size)
        elif event_id is not None:
            self._claims.commit(event_id)
            self._cursor.pass_over(event_id)

    def _enqueue(self, event: StreamEvent, size: int) -> None:
        position = None
        if event.event_id is not None:
            self._claims.claim(event.event_id)
            position = self._cursor.open(event.event_id)
        key = self._lane_of(event)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
        lane.queue.append((event, position, size))
        self._queued += 1
        self._queued_chars += size
        self._unfinished += 1
        if not lane.owned:
            lane.owned = True
            self._ready.append((key, lane))
            self._call_helper()
        elif self._waits is not None:
            try:
                self._waits(event)
            except Exception as error:  # noqa: BLE001 - H17: it waits all the same
                _log.error("event %s waits unnoticed: %s", event.event_id, type(error).__name__)

    async def room(self) -> None:
        """Wait until another event fits."""
        while self.full and not self._closed:
            await self._next_change()

    async def idle(self) -> None:
        """Wait until everything offered so far was handled or given up."""
        while self._unfinished and not self._closed:
            await self._next_change()

    async def close(self, grace: float = 0.0) -> None:
        """Stop handling. What was not handed over gives its claim back and stays after the cursor.

        Args:
            grace: seconds that handlers already running get to end by themselves.
        """
        self._closed = True
        self._announce()
        for waiter in self._idle:
            if not waiter.done():
                waiter.set_result(None)
        mine = asyncio.current_task()
        others = {worker for worker in self._workers if worker is not mine}
        if others and grace > 0:
            _, others = await asyncio.wait(others, timeout=grace)
        for worker in others:
            worker.cancel()
        if others:
            await asyncio.wait(others)
        for lane in self._lanes.values():
            while lane.queue:
                self._give_back(*self._take(lane))
        self._lanes.clear()
        self._ready.clear()

    def _handled_at_once(self, event: StreamEvent) -> bool:
        if self._handle_now is None:
            return False
        # While nothing is queued or running there is no order to keep, and the lane need not even be known.
        if self._lanes and self._lane_of(event) in self._lanes:
            return False
        try:
            return self._handle_now(event)
        except Exception as error:  # noqa: BLE001 - H17: the ordinary way isolates and reports it
            _log.debug("event %s could not be handled at once: %s", event.event_id, type(error).__name__)
            return False

    def _lane_of(self, event: StreamEvent) -> str | None:
        try:
            return self._handler.lane(event)
        except Exception as error:  # noqa: BLE001 - H17: one event's shape must not end the stream for everybody
            _log.error("event %s has no lane: %s", event.event_id, type(error).__name__)
            return None

    def _call_helper(self) -> None:
        if self._helper_coming or not self._ready or self._closed:
            return
        while self._idle:
            waiter = self._idle.pop()
            if not waiter.done():
                waiter.set_result(None)
                self._helper_coming = True
                return
        if len(self._workers) < MAX_WORKERS:
            self._helper_coming = True
            worker = asyncio.get_running_loop().create_task(self._work(), name="canon-lane-worker")
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    def _open(self) -> bool:
        return not self._closed

    async def _work(self) -> None:
        while self._open():
            self._helper_coming = False
            await self._serve_ready()
            if self._open():
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._idle.append(waiter)
                await waiter

    async def _serve_ready(self) -> None:
        share = _FAIR_SHARE
        while self._ready and self._open():
            key, lane = self._ready.popleft()
            # Somebody must look after the other conversations if this one's handler waits.
            self._call_helper()
            while lane.queue and share > 0 and self._open():
                share -= 1
                await self._handle(*self._take(lane))
            if lane.queue:
                self._ready.append((key, lane))
            else:
                lane.owned = False
                self._lanes.pop(key, None)
            if share <= 0:
                share = _FAIR_SHARE
                await asyncio.sleep(0)

    def _take(self, lane: _Lane) -> tuple[StreamEvent, Position | None]:
        event, position, size = lane.queue.popleft()
        was_full = self.full
        self._queued -= 1
        self._queued_chars -= size
        if was_full and not self.full:
            self._announce()
        return event, position

    async def _handle(self, event: StreamEvent, position: Position | None) -> None:
        try:
            handed_over = await self._hand_over(event)
        except BaseException:
            self._give_back(event, position)
            raise
        self._unfinished -= 1
        if position is not None:
            if handed_over or self._cursor.fail(position):
                self._claims.commit(position.event_id)
                if handed_over:
                    self._cursor.finish(position)
                else:
                    _log.error("event %s was given up after repeated failures", position.event_id)
            else:
                self._claims.release(position.event_id)
        if not self._unfinished and self._changed is not None:
            self._announce()

    async def _hand_over(self, event: StreamEvent) -> bool:
        for attempt in range(1, _HANDLING_ATTEMPTS + 1):
            try:
                await self._handler.handle(event)
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and _being_cancelled():
                    raise
                _log.error(
                    "handling event %s (%s) failed, attempt %d: %s",
                    event.event_id,
                    event.name[:80],
                    attempt,
                    type(error).__name__,
                )
                # The failure may be of the moment; one loop turn later is the least that can differ.
                await asyncio.sleep(0)
            else:
                return True
        return False

    def _give_back(self, event: StreamEvent, position: Position | None) -> None:
        self._unfinished -= 1
        if position is not None:
            self._claims.release(position.event_id)
            self._cursor.give_back(position)

    async def _next_change(self) -> None:
        if self._changed is None:
            self._changed = asyncio.Event()
        await self._changed.wait()

    def _announce(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None


def _being_cancelled() -> bool:
    """Whether somebody cancels this worker, as opposed to a cancellation that leaked out of a handler."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
