"""Decides what a ``message.created`` event is: not for us, a receipt, background, or work (turns §1.2).

Two pure steps with the duplicate check between them: :func:`screen` before the message id is claimed, :func:`decide`
after. A message is validated before its id is marked as seen (H18), and every field is read by type (H16). It refuses
to know hosts, downloads and approval stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from canon_hermes_plugin.domain.inbound import text as composition
from canon_hermes_plugin.domain.inbound.background import Overheard, overhear
from canon_hermes_plugin.domain.inbound.turn_gate import GateVerdict, judge
from canon_hermes_plugin.domain.reading import identifier, is_mapping, mapping

APPROVAL_REPLY: Final = "approval_reply"
CONTROL_TYPES: Final = frozenset({APPROVAL_REPLY, "approval_outcome", "runtime_input_reply", "runtime_input_outcome"})
"""Metadata types that carry control messages, never chat."""


class DropReason(Enum):
    """Why a message is not looked at any further; for logs."""

    MALFORMED = "no message object"
    OWN = "own message"
    CONTROL = "control message"
    NO_CONVERSATION = "no conversation id"
    EMPTY = "nothing to read"


@dataclass(frozen=True, slots=True)
class Drop:
    """The message is not for us."""

    reason: DropReason


@dataclass(frozen=True, slots=True)
class Receipt:
    """The message answers an approval: offer it to the approvals service, then drop it as chat."""

    approval_id: str


class Screened(NamedTuple):
    """A message that may be looked at, once its id proves new. ``message_id`` is ``None`` when it cannot repeat."""

    conversation_id: str
    message_id: str | None
    payload: Mapping[str, Any]
    message: Mapping[str, Any]


class Suppress(NamedTuple):
    """The message wakes nobody; what it said is background."""

    overheard: Overheard
    verdict: GateVerdict


@dataclass(frozen=True, slots=True)
class Admit:
    """The message becomes work. ``text`` is its composed text, before attachments."""

    text: str
    verdict: GateVerdict


def screen(payload: object, own_id: str | None) -> Drop | Receipt | Screened:
    """Return what can be said before the message id is looked at (steps 1 to 4 and 6)."""
    body = mapping(payload)
    found = body.get("message")
    if not is_mapping(found):
        return Drop(DropReason.MALFORMED)
    message = found
    if own_id is not None and identifier(message.get("senderId")) == own_id:
        return Drop(DropReason.OWN)
    metadata = mapping(message.get("metadata"))
    kind = metadata.get("type")
    if isinstance(kind, str) and kind in CONTROL_TYPES:
        approval_id = identifier(metadata.get("approvalId")) if kind == APPROVAL_REPLY else None
        return Drop(DropReason.CONTROL) if approval_id is None else Receipt(approval_id)
    conversation_id = identifier(body.get("conversationId"))
    if conversation_id is None:
        return Drop(DropReason.NO_CONVERSATION)
    return Screened(conversation_id, identifier(message.get("id")), body, message)


def decide(screened: Screened) -> Drop | Suppress | Admit:
    """Return what becomes of a new message (steps 9 to 11)."""
    text = composition.compose(screened.message)
    if not text:
        return Drop(DropReason.EMPTY)
    verdict = judge(screened.payload, screened.message)
    if verdict.wakes:
        return Admit(text, verdict)
    return Suppress(overhear(screened.message, text), verdict)
