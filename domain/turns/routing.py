"""What becomes of one text the host hands over (turns §4.1; H3, H8, H9, H11, H39).

Decides from the marks of the text and a few facts about its turn. Refuses to know how a turn is found and how anything
is delivered.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from canon_hermes_plugin.domain.turns.model import HostText
from canon_hermes_plugin.domain.turns.plan import real_message_id

NOTE = "hermes-note-"
"""Prefix of the ids of acknowledged chatter: an edit naming one is chatter too."""

DRAFT = "hermes-draft-"
"""Prefix of the ids of previews that belong to no turn."""


class Route(Enum):
    """Where a text goes."""

    STAGE = "part of the turn's output"
    ANSWER = "the turn's complete answer, although the host did not mark it"
    CHATTER = "acknowledged and forgotten"
    PREVIEW = "a preview nobody owns: acknowledged and forgotten"
    LATE = "the stream of a turn that is over: acknowledged and forgotten"
    SILENCED = "declined because its turn is silent"
    DELIVER = "a durable message of its own"
    ASIDE = "a durable message beside a running turn that wakes nobody"


@dataclass(frozen=True, slots=True)
class TextFacts:
    """What is known about the turn of a text.

    Attributes:
        owned: an open turn owns the call.
        confirmed: the text is the answer the host confirmed for that turn's run.
        late: the call carries a turn that is over.
        silenced: the call carries an open turn that is silent.
        beside: some turn of the conversation is open, or another one's answer is on its way.
    """

    owned: bool = False
    confirmed: bool = False
    late: bool = False
    silenced: bool = False
    beside: bool = False


def route(text: HostText, facts: TextFacts) -> Route:
    """Return where ``text`` goes; the first rule that applies wins."""
    if text.bubble and text.bubble.startswith(NOTE):
        return Route.CHATTER
    if text.job_id is not None:
        return Route.DELIVER
    if text.foreign_loop:
        return Route.SILENCED if facts.silenced else Route.DELIVER
    if facts.owned:
        return _owned(text, facts)
    if facts.late and (text.expect_edits or text.finalize is not None):
        return Route.LATE
    return _edit(text, facts) if text.finalize is not None else _send(text, facts)


def _owned(text: HostText, facts: TextFacts) -> Route:
    if text.expect_edits or text.notify or text.finalize is not None:
        return Route.STAGE
    return Route.ANSWER if facts.confirmed else Route.CHATTER


def _edit(text: HostText, facts: TextFacts) -> Route:
    if not text.finalize:
        return Route.PREVIEW
    if real_message_id(text.bubble) is None:
        # The bubble outlived its turn.
        return Route.LATE
    return Route.ASIDE if facts.beside else Route.DELIVER


def _send(text: HostText, facts: TextFacts) -> Route:
    if text.notify:
        return Route.ASIDE if facts.beside else Route.DELIVER
    return Route.PREVIEW if text.expect_edits else Route.DELIVER
