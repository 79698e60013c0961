"""Decides whether an inbound message wakes a turn (turns §1.3, canon-wire §6.5).

Canon's verdict is authoritative in both directions; without one a table over sender, semantics and reply behaviour
decides, and a message of an agent never wakes another agent unless it says that its turn is complete. It refuses to
know conversations, text and sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from canon_hermes_plugin.domain.reading import mapping

TurnSemantics = Literal["progress", "turn_complete", "control"]
Sender = Literal["human", "agent"]

RUN_TURN: Final = "run_turn"
"""The only verdict that wakes."""

HUMAN: Final = "human"
"""The only sender type that counts as a person; anything else, absence included, is an agent."""


class GateReason(Enum):
    """Why the gate decided as it did; for logs."""

    VERDICT_RUN = "server verdict: run"
    VERDICT_RECORD = "server verdict: do not run"
    SUPPRESSED = "sender asked for no reply"
    HUMAN = "a human is always answered"
    AGENT_PROGRESS = "progress of an agent"
    AGENT_COMPLETED = "completed turn or control of an agent"


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The gate's answer: whether to wake, why, and what the message's semantics are taken to be."""

    wakes: bool
    reason: GateReason
    semantics: TurnSemantics


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the fallback table; ``None`` matches anything. ``semantics`` compares the *explicit* value."""

    sender: Sender | None
    semantics: tuple[TurnSemantics | None, ...] | None
    suppressed: bool | None
    wakes: bool
    reason: GateReason

    def matches(self, sender: Sender, semantics: TurnSemantics | None, *, suppressed: bool) -> bool:
        """Tell whether the row applies."""
        return (
            self.sender in {None, sender}
            and (self.semantics is None or semantics in self.semantics)
            and self.suppressed in {None, suppressed}
        )


FALLBACK: Final = (
    Rule(None, None, True, False, GateReason.SUPPRESSED),
    Rule("human", None, None, True, GateReason.HUMAN),
    Rule("agent", (None, "progress"), None, False, GateReason.AGENT_PROGRESS),
    Rule("agent", ("turn_complete", "control"), None, True, GateReason.AGENT_COMPLETED),
)
"""The rule without a server verdict; the first matching row wins and every combination matches one."""


def sender_of(message: Mapping[str, Any]) -> Sender:
    """Return who wrote ``message``, failing closed to *agent*."""
    return "human" if message.get("senderType") == HUMAN else "agent"


def judge(payload: Mapping[str, Any], message: Mapping[str, Any]) -> GateVerdict:
    """Return the verdict on one ``message.created`` payload. Total: no JSON value makes it raise."""
    metadata = mapping(message.get("metadata"))
    semantics = metadata.get("turnSemantics")
    explicit = semantics if isinstance(semantics, str) and semantics in _KNOWN else None
    sender = sender_of(message)
    kind = mapping(payload.get("turnDispatch")).get("kind")
    if isinstance(kind, str) and kind:
        return _BY_VERDICT[kind == RUN_TURN, sender, explicit]
    return _BY_RULE[sender, explicit, metadata.get("replyBehavior") == "suppress_auto_reply"]


_SENDERS: Final[tuple[Sender, ...]] = ("human", "agent")
_EXPLICIT: Final[tuple[TurnSemantics | None, ...]] = (None, "progress", "turn_complete", "control")
_KNOWN: Final = frozenset(_EXPLICIT)


def _by_rule(sender: Sender, explicit: TurnSemantics | None, *, suppressed: bool) -> GateVerdict:
    rule = next(row for row in FALLBACK if row.matches(sender, explicit, suppressed=suppressed))
    return GateVerdict(rule.wakes, rule.reason, _derived(sender, explicit))


def _by_verdict(sender: Sender, explicit: TurnSemantics | None, *, wakes: bool) -> GateVerdict:
    reason = GateReason.VERDICT_RUN if wakes else GateReason.VERDICT_RECORD
    return GateVerdict(wakes, reason, _derived(sender, explicit))


def _derived(sender: Sender, explicit: TurnSemantics | None) -> TurnSemantics:
    return explicit or ("turn_complete" if sender == "human" else "progress")


# Every answer the gate can give, made once: most messages of a busy room only pass by.
_BY_RULE: Final = {
    (sender, explicit, suppressed): _by_rule(sender, explicit, suppressed=suppressed)
    for sender in _SENDERS
    for explicit in _EXPLICIT
    for suppressed in (True, False)
}
_BY_VERDICT: Final = {
    (wakes, sender, explicit): _by_verdict(sender, explicit, wakes=wakes)
    for wakes in (True, False)
    for sender in _SENDERS
    for explicit in _EXPLICIT
}
