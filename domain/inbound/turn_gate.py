"""Decides whether an inbound message wakes a turn (turns §1.3, canon-wire §6.5).

Canon's verdict is authoritative in both directions; without one a table over sender, semantics and reply behaviour
decides, and a message of an agent never wakes another agent unless it says that its turn is complete. It refuses to
know conversations, text and sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, cast

from canon_hermes_plugin.domain.inbound.reading import mapping

TurnSemantics = Literal["progress", "turn_complete", "control"]
ReplyBehavior = Literal["allow_auto_reply", "suppress_auto_reply"]
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
    explicit = _semantics(metadata.get("turnSemantics"))
    sender = sender_of(message)
    semantics = explicit or ("turn_complete" if sender == "human" else "progress")
    kind = mapping(payload.get("turnDispatch")).get("kind")
    if isinstance(kind, str) and kind:
        wakes = kind == RUN_TURN
        return GateVerdict(wakes, GateReason.VERDICT_RUN if wakes else GateReason.VERDICT_RECORD, semantics)
    suppressed = metadata.get("replyBehavior") == "suppress_auto_reply"
    rule = next(row for row in FALLBACK if row.matches(sender, explicit, suppressed=suppressed))
    return GateVerdict(rule.wakes, rule.reason, semantics)


def _semantics(value: object) -> TurnSemantics | None:
    known = isinstance(value, str) and value in {"progress", "turn_complete", "control"}
    return cast("TurnSemantics", value) if known else None
