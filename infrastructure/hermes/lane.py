"""What is known about one session of the host: what runs in it, what waits, what was put into the running turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from canon_hermes_plugin.domain.turns.model import Ack, HostText
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.hermes.compat import HostObject


class TurnControls(Protocol):
    """What the queue asks of the turns."""

    def lift_silence(self, turn: Turn) -> None:
        """A further message was put into the open turn: it deserves an answer (turns §7.4)."""
        ...

    def queue_changed(self, turn: Turn) -> None:
        """The number of messages waiting behind the open turn changed."""
        ...

    async def text(self, turn: Turn | None, text: HostText) -> Ack:
        """Deliver a text outside every turn; never raises."""
        ...


@dataclass(slots=True)
class Lane:
    """One session.

    Attributes:
        key: the host's routing key.
        waiting: events that wait for their turn, oldest first.
        open: lifecycles between start and completion; more than one only across a reconnect.
        unwinding: lifecycles that completed and whose task has not ended yet.
        starting: the event that is being handed to the host.
        current: the event of the newest lifecycle.
        turn: its turn.
        interrupted: somebody interrupted it.
        steered: events put into the running run, oldest first.
        steerable: the run still reads what is put into it. Guarded by ``lock``, like ``steered``.
    """

    key: str
    waiting: deque[HostObject] = field(default_factory=deque[HostObject])
    open: int = 0
    unwinding: int = 0
    starting: HostObject | None = None
    current: HostObject | None = None
    turn: Turn | None = None
    interrupted: bool = False
    steered: list[HostObject] = field(default_factory=list[HostObject])
    steerable: bool = False
    lock: Lock = field(default_factory=Lock)

    @property
    def occupied(self) -> bool:
        """Whether something of the session runs, as far as this plugin saw it."""
        return bool(self.open or self.unwinding) or self.starting is not None

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return not (self.occupied or self.waiting)


def unread(steered: list[HostObject], leftover: str) -> tuple[str, list[HostObject]]:
    """Split what a run left unread: text of unknown origin first, then the events whose texts make up its end."""
    late: list[HostObject] = []
    rest = leftover.strip()
    for event in reversed(steered):
        text = event.text.strip()
        if not rest.endswith(text) or not text:
            break
        late.append(event)
        rest = rest[: len(rest) - len(text)].rstrip("\n")
    late.reverse()
    return rest, late


def reached(lanes: Iterable[Lane], conversation_id: str, user_id: str | None) -> list[Lane]:
    """Return the running sessions of a conversation that a signal reaches (turns §14 H29).

    Canon consumed the signal, so its sender may control the runtime here. Nobody in particular (``None``: the owner, or
    a sender without a name) reaches every run; anybody else their own runs, or every run of the conversation when they
    have none: the host grants the same to whoever says /stop in a shared thread.
    """
    running = [
        lane
        for lane in lanes
        if lane.current is not None and lane.open and str(lane.current.source.chat_id) == conversation_id
    ]
    own = [lane for lane in running if lane.current is not None and lane.current.source.user_id == user_id]
    return own if user_id is not None and own else running
