"""The host's side of a message: how a suite hands messages over, and sees what turns came of them.

What a driver of :class:`canon_hermes_plugin.ports.host.HostInbox` or :class:`canon_hermes_plugin.ports.host.HostLanes`
offers, and the words both suites share (turns §1.9, §2.1, §2.6; hermes-host §3.7).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, final

from canon_hermes_plugin.domain.turns.model import Outcome, TurnStart
from canon_hermes_plugin.ports.host import HostInbox, HostLanes, InboundMessage
from canon_hermes_plugin.testing.contracts.base import Driver

_T = TypeVar("_T")

DIRECT: Final = "conv_direct"
"""A direct conversation. Every conversation but :data:`GROUP` is one."""
GROUP: Final = "conv_group"
"""The only conversation that the host knows as a group."""
OWNER: Final = "user_owner"
"""The agent's owner."""
DANA: Final = "user_dana"
BOB: Final = "user_bob"

PATIENCE: Final = 5.0
"""Seconds of real time until something that must happen counts as missing."""


@dataclass(eq=False, slots=True)
class HostTurn:
    """A turn the host ran.

    Attributes:
        start: what it was opened with.
        text: what the run was given; ``None`` until it runs.
        outcome: how it ended; ``None`` while it is open.
    """

    start: TurnStart
    text: str | None = None
    outcome: Outcome | None = None

    @property
    def runs(self) -> bool:
        """Whether the agent works in it."""
        return self.text is not None and self.outcome is None


@final
class TurnLog:
    """What the host of a driver did: the driver reports, the suite reads.

    Attributes:
        turns: every turn in the order of their starts.
        overlaps: session keys of turns that were opened while another one of their session was open.
    """

    def __init__(self) -> None:
        self.turns: list[HostTurn] = []
        self.overlaps: list[str] = []

    def opened(self, start: TurnStart) -> HostTurn:
        """A turn was opened."""
        self.overlaps += [
            start.session_key
            for turn in self.turns
            if turn.outcome is None and turn.start.session_key == start.session_key
        ]
        self.turns.append(HostTurn(start))
        return self.turns[-1]

    @property
    def ran(self) -> list[str]:
        """The texts that were given to the agent, in the order of their turns."""
        return [turn.text for turn in self.turns if turn.text is not None]

    @property
    def outcomes(self) -> list[tuple[str | None, Outcome | None]]:
        """Message id and outcome of every turn the agent worked in."""
        return [(turn.start.message_id, turn.outcome) for turn in self.turns if turn.text is not None]


class HostInboxDriver(Driver, Protocol):
    """The subject, and the host behind it.

    Attributes:
        inbox: the subject. Its agent belongs to :data:`OWNER`; a group has one session per user.
        log: the turns of the host. Their runs do nothing, and end by :meth:`finish` or because they are interrupted.
    """

    inbox: HostInbox
    log: TurnLog

    @property
    def released(self) -> Sequence[str]:
        """Return the ids of the messages taken off the queued shelf, each time one was."""
        ...

    @property
    def refused(self) -> Sequence[str]:
        """Return the ids of the messages whose senders were told that they were not taken."""
        ...

    @property
    def renewed(self) -> Sequence[str]:
        """Return the keys of the sessions that were begun anew, each time one was."""
        ...

    def finish(self, turn: HostTurn) -> None:
        """Let a run end by itself."""
        ...

    def disconnect(self) -> None:
        """Begin the time between two connections of the host."""
        ...

    def connect(self) -> None:
        """End it."""
        ...


class HostLanesDriver(HostInboxDriver, Protocol):
    """The sessions of a host, and how messages get into them.

    Attributes:
        lanes: the subject.
    """

    lanes: HostLanes

    def joined(self, turn: HostTurn) -> Sequence[str]:
        """Return the texts that were put into a running turn."""
        ...

    def refreshes_typing(self, conversation_id: str) -> bool:
        """Return whether the host would go on showing that the agent types there."""
        ...


# --- words the suites share -----------------------------------------------------------------------------------------


def message(number: int, conversation_id: str = DIRECT, **fields: Any) -> InboundMessage:  # noqa: ANN401 - any field
    """Return message ``number`` of Dana, ``text <number>``, which lies on the queued shelf."""
    kind = "group" if conversation_id == GROUP else "direct"
    values: dict[str, Any] = {
        "user_id": DANA,
        "message_id": f"msg_{number}",
        "queued": True,
        "chat_kind": kind,
        **fields,
    }
    return InboundMessage(conversation_id, values.pop("text", f"text {number}"), **values)


async def say(host: HostInboxDriver, numbers: Iterable[int], conversation_id: str = DIRECT, **fields: Any) -> None:  # noqa: ANN401
    """Hand over messages one after another."""
    for number in numbers:
        await host.inbox.hand_over(message(number, conversation_id, **fields))


def wake(number: int) -> InboundMessage:
    """Return a message that the plugin made, such as an approval's decision."""
    return message(number, message_id=f"canon-wake-{number}", synthetic=True, queued=False)


async def until(found: Callable[[], _T], what: str) -> _T:
    """Wait until ``found`` returns something true, and return it."""
    deadline = time.monotonic() + PATIENCE
    while not (result := found()):
        assert time.monotonic() < deadline, f"never happened: {what}"
        await asyncio.sleep(0.002)
    return result


async def running(host: HostInboxDriver, number: int) -> HostTurn:
    """Wait until the agent works on message ``number``."""

    def found() -> list[HostTurn]:
        return [turn for turn in host.log.turns if turn.runs and turn.text == f"text {number}"]

    return (await until(found, f"the run of message {number}; turns: {host.log.outcomes}"))[-1]


async def run_through(host: HostInboxDriver, numbers: Iterable[int]) -> None:
    """Let the runs of messages end, one after another."""
    for number in numbers:
        turn = await running(host, number)
        host.finish(turn)
        await until(lambda: turn.outcome, f"the end of message {number}")  # noqa: B023 - awaited at once


async def passed(host: HostInboxDriver) -> None:
    """Let a message of another conversation start and end: what else would happen by now has happened."""
    before = len(host.log.turns)
    await say(host, [99], f"conv_other_{before}", user_id="user_other", queued=False)
    turn = await running(host, 99)
    host.finish(turn)
    await until(lambda: turn.outcome, "the end of a message elsewhere")
    host.log.turns.remove(turn)
