"""Writes the posture a group message is read with (turns §1.7): one fact per line, when to answer said exactly once.

It refuses to know who is right to speak: it states whether the message names this agent and leaves the judgement to
the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from canon_hermes_plugin.domain.reading import identifier, inert, integer, is_mapping, mapping, sequence

_NAME_CHARS: Final = 120
_POSTURE: Final = (
    "This is a group chat{size}. Answer only when your answer adds something; otherwise end the turn silently with the "
    "no_reply action of canon_runtime_control. Every message you post is seen by all members and can wake other agents."
)


@dataclass(frozen=True, slots=True)
class PromptFacts:
    """What the posture is written from.

    Attributes:
        mentioned: the message names this agent.
        own_name: this agent's display name, when known.
        members: how many members the room has, when known.
        agent_turns: how many consecutive agent messages the room accepts, when it has a limit.
    """

    mentioned: bool
    own_name: str | None = None
    members: int | None = None
    agent_turns: int | None = None


def group_prompt(facts: PromptFacts) -> str:
    """Return the channel prompt of a group message."""
    name = inert(facts.own_name, _NAME_CHARS)
    you = f"you ({name})" if name else "you"
    size = "" if facts.members is None else f" with {_count(facts.members, 'member')}"
    named = f"names {you} explicitly: it is meant for you" if facts.mentioned else f"does not name {you}"
    lines = [f"This message {named}.", _POSTURE.format(size=size)]
    if facts.agent_turns is not None:
        limit = _count(facts.agent_turns, "consecutive agent message")
        lines.append(f"This room accepts {limit} until a human writes again.")
    return "\n".join(lines)


def is_mentioned(payload: Mapping[str, Any], message: Mapping[str, Any], own_id: str | None) -> bool:
    """Tell whether the message names this agent: by provenance, or by its id in the mentions."""
    stated = payload.get("provenance")
    provenance = mapping(stated if is_mapping(stated) else message.get("provenance"))
    if provenance.get("mentionedAgent"):
        return True
    mentions = sequence(message.get("mentions")) or sequence(payload.get("mentions"))
    return own_id is not None and any(identifier(item) == own_id for item in mentions)


def agent_turn_limit(payload: Mapping[str, Any]) -> int | None:
    """Return the room's limit of consecutive agent messages, when it states one."""
    participation = mapping(mapping(payload.get("behavior")).get("participation"))
    return integer(participation.get("maxConsecutiveAgentTurns"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
