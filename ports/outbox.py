"""Keeps what is being delivered, so that an answer outlives the process that began to send it (turns §4.3).

The port knows messages and their order. It refuses to know turns, retries and how often something is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from canon_hermes_plugin.ports.canon import OutboundMessage


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One durable operation, fixed before its first message is sent.

    Attributes:
        operation_id: names the operation; never blank.
        messages: what is sent, in order; at least one, all to one conversation, each with an id of its own.
        kept_at: when it was fixed, milliseconds since the epoch.
        turn_id: the turn it ends, if any.
        opened_at: when that turn was opened, milliseconds since the epoch.
        session_key: the host's session of that turn.
    """

    operation_id: str
    messages: tuple[OutboundMessage, ...]
    kept_at: int
    turn_id: str | None = None
    opened_at: int | None = None
    session_key: str | None = None

    @property
    def conversation_id(self) -> str:
        """Where it goes."""
        return self.messages[0].conversation_id


class Outbox(Protocol):
    """The operations of one agent in one environment that are not known to be over."""

    async def keep(self, entry: OutboxEntry) -> None:
        """Store ``entry`` behind everything kept before; durable when this returns. The same operation replaces.

        Raises:
            OutboxError: it is not known to be stored; nothing else is affected. Also for an entry that could not be
                sent as it is after a crash, of which nothing is stored: one without a message, with a message that
                has no id, or with something that JSON cannot hold.
        """
        ...

    async def forget(self, operation_id: str) -> None:
        """Remove an operation; one that is not there is fine. A crash may bring it back.

        Raises:
            OutboxError: it is not known to be removed.
        """
        ...

    async def leftover(self) -> Sequence[OutboxEntry]:
        """Return what is stored, in the order kept. What cannot be read stays where it is and is left out.

        Raises:
            OutboxError: the store as a whole cannot be read.
        """
        ...
