"""What the next process is told about the stream: decides from where it reads on, and which messages it skips.

A message counts as done when the host has it in its own history, or when it was dropped; one that still waits behind a
running turn does not, and holds the cursor before it. So a restart, orderly or not, brings back what waited and what
was written meanwhile, and repeats nothing the host knows (rule 6; field rows 63, 65, 67). Refuses to know how a
checkpoint is stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Protocol, final

from canon_hermes_plugin.domain.inbound.claims import WINDOW, Claims
from canon_hermes_plugin.ports.canon_stream import StreamHealth
from canon_hermes_plugin.ports.checkpoints import Checkpoint, CheckpointStore
from canon_hermes_plugin.ports.errors import CheckpointError
from canon_hermes_plugin.ports.time import Clock, Tasks

_log = logging.getLogger(__name__)

MAX_AGE_MS: Final = 3_600_000
"""A longer gap is not caught up with; the host continues conversations for as long (hermes-host §4.7)."""

_LATEST: Final = WINDOW // 2
"""Messages that may be done behind a waiting one before it stops holding the cursor: all of them must be remembered.
Messages that wake nobody do not count."""


class ResumableStream(Protocol):
    """The part of the stream that says and takes a place on it."""

    def health(self) -> StreamHealth:
        """Return cursor and time of the last byte."""
        ...

    def set_cursor(self, cursor: str | None) -> None:
        """Read on after this event."""
        ...


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a message lies: the cursor before it, and how many messages were done when it came."""

    cursor: str | None
    done: int


@final
class CheckpointKeeper:
    """Saves the checkpoint whenever it changes, and takes the last process's up once.

    Args:
        store: keeps it.
        stream: whose place it is.
        claims: the message ids that are done or in work.
        clock: time.
        tasks: owns the writing.

    Attributes:
        waiting: returns the ids of messages that were taken and are not safe with the host yet.
    """

    def __init__(
        self, store: CheckpointStore, stream: ResumableStream, claims: Claims, clock: Clock, tasks: Tasks
    ) -> None:
        self._store = store
        self._stream = stream
        self._claims = claims
        self._clock = clock
        self._tasks = tasks
        self._places: dict[str, _Place] = {}
        self._restored = False
        self._due = False
        self._writing = asyncio.Lock()
        self.waiting: Callable[[], Collection[str]] = frozenset

    async def restore(self) -> None:
        """Read on where the last process left off; only the first call of a process does anything."""
        if self._restored:
            return
        self._restored = True
        saved = await self._store.load()
        if saved is None:
            return
        self._claims.remember(saved.done)
        gap = self._clock.now_ms() - saved.heard_at
        if abs(gap) > MAX_AGE_MS:
            _log.warning("nothing was read for %d minutes; what was written meanwhile is not answered", gap // 60_000)
        elif saved.cursor is not None:
            _log.info("reading on after %d s, %d messages are known", gap // 1000, len(saved.done))
            self._stream.set_cursor(saved.cursor)

    def taking(self, message_id: str) -> None:
        """A message is about to be handed over: until its turn begins, it must come back after a crash."""
        self._places.pop(message_id, None)
        self._places[message_id] = _Place(self._stream.health().cursor, self._claims.total)
        self.changed()

    def changed(self) -> None:
        """A message was handed over, began or was dropped: save soon. Never waits; bursts are saved once."""
        if not self._due:
            self._due = True
            self._tasks.spawn(self.save(), name="checkpoint")

    async def save(self) -> None:
        """Save the present state. Failures are logged: the next save makes up for one."""
        async with self._writing:
            self._due = False
            checkpoint = self._checkpoint()
            if checkpoint is None:
                return
            try:
                await self._store.save(checkpoint)
            except CheckpointError as error:
                _log.warning("the place on the stream was not saved: %s", error)

    def _checkpoint(self) -> Checkpoint | None:
        health = self._stream.health()
        if health.last_byte_at is None:
            return None  # nothing was heard in this process: what the last one saved is still the truth
        waiting = frozenset(self.waiting())
        held = next((place for key, place in self._places.items() if key in waiting and self._holds(place)), None)
        self._places = {
            key: place for key, place in self._places.items() if key in waiting or self._claims.in_work(key)
        }
        return Checkpoint(
            cursor=held.cursor if held is not None else health.cursor,
            done=tuple(key for key in self._claims.recent if key not in waiting),
            heard_at=self._clock.now_ms() - round((self._clock.monotonic() - health.last_byte_at) * 1000),
        )

    def _holds(self, place: _Place) -> bool:
        return self._claims.total - place.done < _LATEST
