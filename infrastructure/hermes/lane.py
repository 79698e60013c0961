"""What is known about one session of the host: what runs in it, what waits, what was put into the running turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock

from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.hermes.compat import HostObject


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


def unread(steered: list[HostObject], leftover: str) -> Iterator[HostObject]:
    """Yield, oldest first, the events whose texts make up the end of what a run left unread."""
    late: list[HostObject] = []
    rest = leftover.strip()
    for event in reversed(steered):
        text = event.text.strip()
        if not rest or not rest.endswith(text):
            break
        late.append(event)
        rest = rest[: len(rest) - len(text)].rstrip("\n")
    yield from reversed(late)
