"""What is known about the conversations we are in, and the one place that decides their kind (turns §14 H19).

It learns from the conversation list, from updates and from every message. It refuses to know why somebody asks: session
key, prompt and verbosity all take the kind from here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from canon_hermes_plugin.domain.reading import (
    identifier,
    inert,
    is_mapping,
    is_sequence,
    mapping,
    sequence,
    string,
    word,
)
from canon_hermes_plugin.ports.host import ConversationKind

CAPACITY: Final = 4096
"""Conversations remembered; the one unheard of for the longest time leaves first."""

_NAME_CHARS: Final = 200
_KINDS: Final[Mapping[str, ConversationKind]] = {"direct": "direct", "dm": "direct", "group": "group"}


@dataclass(slots=True)
class _Known:
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stated: ConversationKind = "unknown"


class ConversationFacts:
    """The cache of conversations. Owned by one event loop."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._capacity = capacity

    def learn(self, conversation_id: str, payload: Mapping[str, Any]) -> None:
        """Take in what one message payload tells: conversation object and provenance (turns §1.2 steps 7, 8)."""
        known = self._entry(conversation_id)
        conversation = payload.get("conversation")
        if is_mapping(conversation):
            known.facts = conversation
        stated = mapping(mapping(payload.get("provenance")).get("conversation")).get("type")
        if stated != known.stated:
            kind = _KINDS.get(word(stated) or "")
            if kind is not None:
                known.stated = kind

    def merge(self, conversation_id: str, changes: object) -> None:
        """Merge the ``changes`` of a ``conversation.updated`` event; an unknown conversation is created."""
        known = self._entry(conversation_id)
        known.facts = {"id": conversation_id, **known.facts, **mapping(changes)}

    def replace(self, conversations: Iterable[Mapping[str, Any]]) -> None:
        """Take in the conversation list; entries it does not name stay."""
        for conversation in conversations:
            conversation_id = conversation_id_of(conversation)
            if conversation_id is not None:
                self._entry(conversation_id).facts = conversation

    def ids(self) -> tuple[str, ...]:
        """Return the ids of the known conversations."""
        return tuple(self._known)

    def kind(self, conversation_id: str) -> ConversationKind:
        """Return the conversation's kind: what messages state, else what the cached object says (turns §8)."""
        known = self._known.get(conversation_id)
        if known is None:
            return "unknown"
        if known.stated != "unknown":
            return known.stated
        cached = string(known.facts.get("type"))
        if cached is None:
            return "unknown"
        return "group" if cached == "group" else "direct"

    def chat_kind(self, conversation_id: str) -> Literal["direct", "group"]:
        """Return the kind as the host knows kinds: an unknown conversation is direct."""
        return "group" if self.kind(conversation_id) == "group" else "direct"

    def name(self, conversation_id: str) -> str:
        """Return the display name: name, else topic, else the id. One line, untrusted."""
        facts = self._facts(conversation_id)
        return inert(facts.get("name"), _NAME_CHARS) or inert(facts.get("topic"), _NAME_CHARS) or conversation_id

    def member_count(self, conversation_id: str) -> int | None:
        """Return how many members the conversation has, everybody counted, or ``None``."""
        members = self._facts(conversation_id).get("memberIds")
        return len(sequence(members)) if is_sequence(members) else None

    def _facts(self, conversation_id: str) -> Mapping[str, Any]:
        known = self._known.get(conversation_id)
        return known.facts if known is not None else {}

    def _entry(self, conversation_id: str) -> _Known:
        known = self._known.get(conversation_id)
        if known is None:
            known = self._known[conversation_id] = _Known()
            if len(self._known) > self._capacity:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(conversation_id)
        return known


def conversation_id_of(conversation: Mapping[str, Any]) -> str | None:
    """Return the id of a conversation object: ``id``, else ``conversationId`` (canon-wire §6.3)."""
    return identifier(conversation.get("id")) or identifier(conversation.get("conversationId"))
