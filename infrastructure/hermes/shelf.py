"""Takes inbound messages off the sender's queued shelf, in the background (turns §1.10, H28, H37).

Decides when to try again; refuses to know why a message left the shelf. Nothing here ever delays a turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import final

from canon_hermes_plugin.ports.canon import DispositionPort
from canon_hermes_plugin.ports.errors import CanonError
from canon_hermes_plugin.ports.host import InboundMessage
from canon_hermes_plugin.ports.time import Clock, Tasks

_LOG = logging.getLogger(__name__)

RETRY_AFTER = (2.0, 8.0, 30.0)
"""Seconds before each further attempt to release one message."""


def _nothing() -> None:
    """Nobody wants to know."""


@final
class Shelf:
    """Releases queued messages and marks conversations as read.

    Attributes:
        port: Canon's dispositions.
        tasks: owns the background work.
        clock: spends the pauses.
        changed: called whenever a message began or was dropped.
    """

    def __init__(
        self, port: DispositionPort, tasks: Tasks, clock: Clock, changed: Callable[[], None] = _nothing
    ) -> None:
        self._port = port
        self._tasks = tasks
        self._clock = clock
        self.changed = changed

    def started(self, message: InboundMessage) -> None:
        """The message is being worked on: in its own turn, or steered into a running one."""
        self.changed()
        self._tasks.spawn(self._settle(message), name=f"accept {message.message_id}")

    def dropped(self, message: InboundMessage) -> None:
        """The message will never be worked on: somebody dropped the queue, or it was full."""
        self.changed()
        self._tasks.spawn(self._settle(message), name=f"drop {message.message_id}")

    async def _settle(self, message: InboundMessage) -> None:
        if message.queued and message.message_id is not None:
            await self._release(message.conversation_id, message.message_id)
        try:
            await self._port.mark_read(message.conversation_id)
        except CanonError as error:
            _LOG.debug("conversation %s not marked as read: %s", message.conversation_id, error)

    async def _release(self, conversation_id: str, message_id: str) -> None:
        for pause in (*RETRY_AFTER, None):
            try:
                await self._port.release_message(conversation_id, message_id)
            except CanonError as error:
                if pause is None:
                    _LOG.warning("message %s in %s stays on the queued shelf: %s", message_id, conversation_id, error)
                    return
                await self._clock.sleep(pause)
            else:
                return
