"""What Canon says to the plugin: one long-lived stream of events (canon-wire §5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable


class StreamEvent(NamedTuple):
    """One decoded event. A named tuple, because one is made for every event and a frozen class is four times slower.

    Attributes:
        name: the event's name, for example ``message.created``.
        data: the decoded JSON payload, or the raw string when it is not JSON. Remote and untrusted.
        event_id: the cursor value this event moves to once handed over, or ``None``.
    """

    name: str
    data: Any
    event_id: str | None = None


class StreamState(Enum):
    """Where the stream stands; *connected* is told by :attr:`StreamHealth.last_byte_at`, not by a flag."""

    IDLE = "idle"
    CONNECTING = "connecting"
    LIVE = "live"
    WAITING = "waiting"
    STOPPED = "stopped"
    UNAUTHORIZED = "unauthorized"


@dataclass(frozen=True, slots=True)
class StreamHealth:
    """A snapshot for doctors and logs. Times are monotonic seconds."""

    state: StreamState
    last_byte_at: float | None
    attempts: int
    cursor: str | None


class EventHandler(Protocol):
    """Receives the stream's events."""

    def lane(self, event: StreamEvent) -> str | None:
        """Return the conversation the event belongs to: events of one lane are handled in order, lanes side by side.

        ``None`` puts the event in the common lane. Never raises, whatever the payload.
        """
        ...

    async def handle(self, event: StreamEvent) -> None:
        """Take one event over. Returning normally hands it over: its id is committed and the cursor may move.

        Raising releases the event's claim; the stream goes on, and a redelivery is not a duplicate.
        """
        ...


@runtime_checkable
class EagerEventHandler(Protocol):
    """An event handler that can take some events over without waiting."""

    def handle_now(self, event: StreamEvent) -> bool:
        """Take ``event`` over completely and return ``True``, or do nothing and return ``False``.

        Called on the read loop when nothing of the event's lane is queued or running, so order is kept. It must be
        quick. After ``False``, or an exception, the event goes the ordinary way through :meth:`EventHandler.handle`.
        """
        ...


@runtime_checkable
class WaitingEventHandler(Protocol):
    """An event handler that wants to know what waits behind an event it is still busy with."""

    def waits(self, event: StreamEvent) -> None:
        """Take note that ``event`` was put behind others of its lane; :meth:`EventHandler.handle` follows later.

        Called on the read loop. It must be quick.
        """
        ...


class CanonStream(Protocol):
    """The reading side of Canon."""

    async def run(self, handler: EventHandler) -> None:
        """Connect, read, hand over and reconnect until :meth:`stop` or a permanent refusal.

        Raises:
            AuthenticationError: Canon refuses the key (401, 403). Not retried.
        """
        ...

    async def stop(self) -> None:
        """End :meth:`run` and release the connection; idempotent, safe from any task of the loop."""
        ...

    def health(self) -> StreamHealth:
        """Return a snapshot of the stream's state."""
        ...

    def set_cursor(self, cursor: str | None) -> None:
        """Adopt a cursor Canon dictates (``replay.expired``)."""
        ...
