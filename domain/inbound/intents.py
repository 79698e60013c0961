"""Decides what happens to a message that meets a busy session (turns §1.8, §1.9).

Facts go in, one decision comes out; the table below is the whole rule, and the first row that matches wins. It refuses
to know how the facts were probed and how the decision is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar, cast

from canon_hermes_plugin.domain.reading import mapping, word
from canon_hermes_plugin.ports.host import DeliveryIntent

_S = TypeVar("_S")

MAX_WAITING: Final = 32
"""Messages that may wait in one session; the next one is refused visibly (field row 68)."""

QUEUE_FULL: Final = (
    f"{MAX_WAITING} messages are waiting here already. This one was not taken; please send it again later."
)
"""What the sender of a refused message is told."""

INTENTS: Final = frozenset({"queue", "interrupt", "interleave", "stop"})

APPROVAL_WORDS: Final = frozenset({
    "approve", "yes", "ok", "okay", "confirm", "y", "\U0001f44d", "deny", "no", "reject", "cancel", "n", "\U0001f44e",
    "always", "approve always", "always approve", "session", "approve session", "session approve",
})  # fmt: skip
"""Whole texts that answer a blocking dangerous-command approval."""


class BusyDecision(Enum):
    """What to do with the message; exactly one of them happens."""

    NOT_HANDLED = "not handled"
    """Nobody is there to decide; the host does what it does by default."""
    DELEGATE = "delegate"
    """The host's own busy handler decides."""
    STOP = "stop"
    """Drop what waits, keep this message, interrupt the running turn."""
    INTERRUPT = "interrupt"
    """Keep this message and interrupt the running turn."""
    STEER = "steer"
    """Give the text to the running turn; if it does not take it, keep this message behind it."""
    QUEUE = "queue"
    """Keep this message behind the running turn."""


@dataclass(frozen=True, slots=True)
class RunnerFacts:
    """What the host says at the moment of the decision.

    Attributes:
        delegate: the host installed a busy handler.
        gate: the host's internals needed for intents are all there.
        internal: the host made the event itself.
        command: the event is a slash command, and none that the host carries out while it is busy.
        draining: the host is shutting down.
        authorized: the sender may talk to the agent; ``None`` when the check failed.
        approval_pending: a dangerous-command approval blocks this session.
        agent_live: an agent is really running, not merely announced.
        can_steer: the running agent takes in text.
        subagents: the agent has active sub-agents; ``None`` when the probe failed.
        compressing: context compression is in flight; ``None`` when the probe failed.
    """

    delegate: bool = True
    gate: bool = True
    internal: bool = False
    command: bool = False
    draining: bool = False
    authorized: bool | None = True
    approval_pending: bool = False
    agent_live: bool = True
    can_steer: bool = True
    subagents: bool | None = False
    compressing: bool | None = False


@dataclass(frozen=True, slots=True)
class BusyMessage:
    """The message that meets the busy session. ``human`` is whether a person sent it: nobody else answers approvals."""

    text: str
    intent: DeliveryIntent | None = None
    human: bool = True


Condition = Callable[[RunnerFacts, BusyMessage], bool]


@dataclass(frozen=True, slots=True)
class BusyRow:
    """One row of the table. ``name`` says the condition for logs and documentation."""

    name: str
    applies: Condition
    decision: BusyDecision


def demoted(facts: RunnerFacts) -> bool:
    """Tell whether an interrupt must wait: sub-agents or compression are at work, or a probe could not tell."""
    return facts.subagents is not False or facts.compressing is not False


def answers_approval(text: str) -> bool:
    """Tell whether the whole text is an answer to a blocking approval."""
    return text.strip().lower() in APPROVAL_WORDS


def _steerable(facts: RunnerFacts, message: BusyMessage) -> bool:
    return not facts.command and bool(message.text.strip()) and facts.agent_live and facts.can_steer


BUSY_TABLE: Final = (
    BusyRow("no delegate", lambda f, _: not f.delegate, BusyDecision.NOT_HANDLED),
    BusyRow("intents unavailable", lambda f, _: not f.gate, BusyDecision.DELEGATE),
    BusyRow("internal event", lambda f, _: f.internal, BusyDecision.DELEGATE),
    BusyRow("sender not authorised", lambda f, _: f.authorized is not True, BusyDecision.DELEGATE),
    BusyRow(
        "answer to an approval",
        lambda f, m: f.approval_pending and m.human and answers_approval(m.text),
        BusyDecision.DELEGATE,
    ),
    BusyRow("stop", lambda _, m: m.intent == "stop", BusyDecision.STOP),
    BusyRow("interrupt, demoted", lambda f, m: m.intent == "interrupt" and demoted(f), BusyDecision.QUEUE),
    BusyRow("interrupt", lambda _, m: m.intent == "interrupt", BusyDecision.INTERRUPT),
    # The host would refuse it; where it waits, it holds the checkpoint, and the next process answers it.
    BusyRow("host shutting down", lambda f, _: f.draining, BusyDecision.QUEUE),
    BusyRow(
        "interleave",
        lambda f, m: m.intent == "interleave" and _steerable(f, m),
        BusyDecision.STEER,
    ),
    BusyRow("queue", lambda _f, _m: True, BusyDecision.QUEUE),
)
"""The busy routing of turns §1.9; the first row that applies decides, and the last always does.

A command is asked about here only when the host does not know it, or not while it is busy (a plugin's, a skill's). It
waits like a message: the host's busy handler would give its text to the run it interrupts, which answers it, and then
run it as a command, which answers it again.
"""


def route(facts: RunnerFacts, message: BusyMessage) -> BusyRow:
    """Return the row that decides about ``message``."""
    return next(row for row in BUSY_TABLE if row.applies(facts, message))


def delivery_intent(message: Mapping[str, Any]) -> DeliveryIntent | None:
    """Return the sender's intent, or ``None`` when there is none that we know (turns §1.8)."""
    value = word(mapping(message.get("metadata")).get("deliveryIntent"))
    return cast("DeliveryIntent", value) if value in INTENTS else None


def admitted_intent(intent: DeliveryIntent | None, *, media_registered: bool, hidden: bool) -> DeliveryIntent | None:
    """Return the intent a message is admitted with.

    A steer injects text only; it would strand authenticated bytes that the model is not shown. Such a message queues.
    """
    return "queue" if intent == "interleave" and media_registered and hidden else intent


def reached(
    sessions: Sequence[_S], user_of: Callable[[_S], str | None], *, sender: str | None, owner: str | None
) -> list[_S]:
    """Return the busy sessions of a conversation that a control signal reaches (turns §14 H29).

    Canon consumed the signal, so its sender may control the runtime here. The owner, or a sender without a name,
    reaches every session; anybody else their own, or every one when they have none: the host grants the same to whoever
    says /stop in a shared thread.
    """
    own = [session for session in sessions if sender not in {None, owner} and user_of(session) == sender]
    return own or list(sessions)
