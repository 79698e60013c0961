"""What is known about one session of the host: what runs in it, what waits, what was put into the running turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from canon_hermes_plugin.domain.turns.model import Ack, HostText, Outcome
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
        starting: the event that is being handed to the host, until its lifecycle begins.
        current: the event of the newest lifecycle.
        turn: its turn.
        recorded: the host keeps the message of ``current`` in its own history: it asks the model now.
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
    recorded: bool = False
    interrupted: bool = False
    steered: list[HostObject] = field(default_factory=list[HostObject])
    steerable: bool = False
    lock: Lock = field(default_factory=Lock)

    @property
    def run(self) -> HostObject | None:
        """The event the host works on or is about to, if any."""
        return self.current if self.open else self.starting

    @property
    def newest(self) -> HostObject | None:
        """The event the session is busy with: what runs, or else what waits first."""
        return self.run or (self.waiting[0] if self.waiting else None)

    @property
    def conversation_id(self) -> str | None:
        """The conversation of what runs, waits or ran last."""
        event = self.newest or self.current
        return None if event is None else str(event.source.chat_id)

    @property
    def user_id(self) -> str | None:
        """Whom :attr:`newest` is from."""
        return None if self.newest is None else self.newest.source.user_id

    @property
    def occupied(self) -> bool:
        """Whether something of the session runs, as far as this plugin saw it."""
        return bool(self.open or self.unwinding) or self.starting is not None

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return not (self.occupied or self.waiting)

    def begin(self, event: HostObject) -> bool:
        """The lifecycle of ``event`` begins; returns whether it was interrupted before it did."""
        ended = self.starting is event and self.interrupted
        if self.starting is event:
            self.starting = None
        self.open += 1
        self.current, self.turn, self.recorded, self.interrupted = event, None, False, False
        with self.lock:
            self.steered.clear()
            self.steerable = True
        return ended

    def outcome(self, told: Outcome, *, draining: bool) -> Outcome:
        """Return how the lifecycle ended, of which the host told ``told``.

        What an interrupted one has to say must never be published. A stopping host waits for runs, and cancels what is
        left of their lifecycles: the answer of a run that ended by itself is whole.
        """
        if self.interrupted:
            return "cancelled"
        return "success" if told == "cancelled" and draining and not self.steerable else told

    def steered_in(self) -> list[HostObject]:
        """Take out what was steered into the run, which reads nothing any more."""
        with self.lock:
            self.steerable = False
            events = list(self.steered)
            self.steered.clear()
        return events

    def unread(self, take_leftover: Callable[[], str]) -> tuple[str, list[HostObject]]:
        """Take out what the ended run left unread of it, and text of unknown origin before that; any thread."""
        with self.lock:
            self.steerable = False
            rest, late = unread(self.steered, take_leftover())
            del self.steered[len(self.steered) - len(late) :]
        return rest, late

    def clear(self, keep: Callable[[HostObject], bool]) -> list[HostObject]:
        """Take out what waits but for what ``keep`` says, and return it."""
        taken: list[HostObject] = []
        for _ in range(len(self.waiting)):  # in place: an agent thread may put something in front meanwhile
            event = self.waiting.popleft()
            (self.waiting if keep(event) else taken).append(event)
        return taken


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


def busy_in(lanes: Iterable[Lane], conversation_id: str) -> list[Lane]:
    """Return the sessions of a conversation in which something runs or waits."""
    return [lane for lane in lanes if lane.newest is not None and lane.conversation_id == conversation_id]


def waiting_in(lanes: Iterable[Lane]) -> list[HostObject]:
    """Return the events that would be lost with the process: they wait, start, or are not known to the host's history.

    What was put into a running run is among them until that run ends: only then it is known to be read.
    """
    unsafe = ((*lane.steered, *(() if lane.recorded else (lane.current,))) for lane in lanes if lane.open)
    waiting = ((lane.starting, *lane.waiting) for lane in lanes)
    return [event for events in (*unsafe, *waiting) for event in events if event is not None]
