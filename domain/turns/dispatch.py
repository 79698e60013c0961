"""The one way of durable operations to Canon: kept first, then sent, forgotten when over (turns §4.3; field fault 90).

Decides what happens around the sending: nothing is sent before it is kept, and nothing new overtakes for long what an
earlier process left unsaid. Refuses to know what a failure means for the operation: its owner replays or forgets it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import replace

from canon_hermes_plugin.domain.turns.delivery import Operation, transmit
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.domain.turns.world import World
from canon_hermes_plugin.ports.errors import OutboxError
from canon_hermes_plugin.ports.outbox import OutboxEntry

DISK_PATIENCE = 5.0
"""Seconds an answer waits for the disk; then it goes out without being kept."""

BEHIND = 10.0
"""Seconds an answer waits for what an earlier process left unsaid in its conversation."""

_log = logging.getLogger(__name__)


class Dispatch:
    """Keeps, sends and forgets operations. Used by the gateway loop only."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._reading: asyncio.Task[Sequence[OutboxEntry]] | None = None
        self._ahead: dict[str, asyncio.Event] = {}
        """The conversations in which an earlier process left something unsaid."""
        self._early: set[str] = set()
        """What was kept here before what earlier processes left was read."""

    async def send(self, operation: Operation, turn: Turn | None = None) -> None:
        """Keep ``operation`` and send all of it, for ``turn`` if it ends one.

        A disk that fails costs the insurance, never the answer.

        Raises:
            DeliveryError: it did not settle and is still kept: the caller has it replayed, or forgets it. The same goes
                for a cancellation.
        """
        try:
            await self.look()  # before the first write, so that what is read there is never our own
            await self._keep(operation, turn)
        except asyncio.CancelledError:
            # Its owner has it replayed, in this process or the next one: it must lie there by then.
            self._world.tasks.spawn(self._keep(operation, turn), name=f"keep {operation.id}")
            raise
        await self._let_pass(operation.conversation_id)
        await transmit(self._world.canon, operation)
        self._world.tasks.spawn(self.forget(operation), name=f"forget {operation.id}")

    async def forget(self, operation: Operation) -> None:
        """Keep ``operation`` no longer: it is over."""
        try:
            await self._world.outbox.forget(operation.id)
        except OutboxError as error:
            # A replay after a restart is answered by Canon with the message it has.
            _log.warning("operation id=%s is over but still kept: %s", operation.id, error)

    async def leftovers(self) -> Sequence[OutboxEntry]:
        """Return what earlier processes left, in the order kept: read once, before anything of this one is kept."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="read outbox", context=Context())
        return await asyncio.shield(self._reading)

    def caught_up(self, conversation_id: str) -> None:
        """Let new answers of the conversation pass: what was left there is said, or will not be soon."""
        event = self._ahead.pop(conversation_id, None)
        if event is not None:
            event.set()

    async def _read(self) -> Sequence[OutboxEntry]:
        try:
            found = await self._world.outbox.leftover()
        except OutboxError as error:
            _log.error("what an earlier process left unsaid stays so: %s", error)
            return ()
        # A slow disk may have been written to while it was read.
        found = [entry for entry in found if entry.operation_id not in self._early]
        self._ahead = {entry.conversation_id: asyncio.Event() for entry in found}
        return found

    async def look(self) -> Sequence[OutboxEntry]:
        """Return what :meth:`leftovers` does, or nothing when the disk is slow."""
        found: Sequence[OutboxEntry] = ()
        with suppress(TimeoutError):
            async with asyncio.timeout(DISK_PATIENCE):
                found = await self.leftovers()
        return found

    async def _let_pass(self, conversation_id: str) -> None:
        if (event := self._ahead.get(conversation_id)) is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(BEHIND):
                    await event.wait()

    async def _keep(self, operation: Operation, turn: Turn | None) -> None:
        entry = OutboxEntry(operation.id, operation.messages, self._world.clock.now_ms())
        if turn is not None:
            entry = replace(entry, turn_id=turn.id, opened_at=turn.opened_at, session_key=turn.start.session_key)
        if self._reading is None or not self._reading.done():
            self._early.add(operation.id)
        try:
            async with asyncio.timeout(DISK_PATIENCE):
                await self._world.outbox.keep(entry)
        except (OutboxError, TimeoutError) as error:
            _log.error("operation id=%s is sent without being kept: %s", operation.id, str(error) or "the disk is slow")
