"""What happened in a conversation, as lines for people to read.

Decides which of Canon's events are worth a line. Knows nothing of terminals, colours or escaping: texts are remote
and raw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from canon_hermes_plugin.infrastructure.sandbox.records import DurableMessage, Json, as_list, as_object
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon

LineKind = Literal["person", "agent", "note", "done"]

_STATE_NOTES = {
    "thinking": "is thinking",
    "streaming": "is writing",
    "tool": "goes on",
    "waiting_input": "waits for an answer",
    "interrupted": "was interrupted",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One entry. ``who`` is a display name, ``text`` may have several lines; both are remote and must be escaped."""

    kind: LineKind
    who: str
    text: str


@dataclass
class Transcript:
    """Follows one conversation; each :meth:`news` returns what came since the last call."""

    canon: LoopbackCanon
    conversation_id: str
    _messages: int = 0
    _turns: int = 0
    _state: tuple[str, str] = field(default=("", ""))

    def pending(self) -> bool:
        """Whether there is anything new to read."""
        state = self.canon.state
        return len(state.messages) > self._messages or len(state.logs.turns) > self._turns

    def news(self) -> list[Line]:
        """Return the new lines, in an order a reader expects: a turn's state before the message it leads to."""
        state = self.canon.state
        with state.lock:
            messages = state.messages[self._messages :]
            turns = state.logs.turns[self._turns :]
            self._messages, self._turns = len(state.messages), len(state.logs.turns)
        people = [m for m in messages if self._here(m) and m.sender_id != self.canon.identity.agent_id]
        own = [m for m in messages if self._here(m) and m.sender_id == self.canon.identity.agent_id]
        lines = [Line("person", self._name(message), message.text) for message in people]
        for turn in turns:
            lines += self._state_line(turn)
        for message in own:
            lines += self._answer_lines(message)
        return lines

    def _here(self, message: DurableMessage) -> bool:
        return message.conversation_id == self.conversation_id

    def _name(self, message: DurableMessage) -> str:
        return str(message.fields.get("senderName") or message.sender_id)

    def _state_line(self, turn: Json) -> list[Line]:
        if turn.get("conversationId") != self.conversation_id:
            return []
        state = (str(turn.get("turnId")), str(turn.get("state")))
        note = _STATE_NOTES.get(state[1])
        known, self._state = self._state == state, state
        return [] if known or note is None else [Line("note", self.canon.identity.agent_name, note)]

    def _answer_lines(self, message: DurableMessage) -> list[Line]:
        who = self._name(message)
        chunk = as_object(message.metadata.get("messageChunk"))
        if chunk:
            who = f"{who} (part {chunk.get('index')} of {chunk.get('count')})"
        lines = [Line("agent", who, message.text)]
        lines += [Line("agent", who, _attachment(as_object(it))) for it in as_list(message.fields.get("attachments"))]
        for block in map(as_object, as_list(message.metadata.get("turnTrail"))):
            about = " ".join(str(block[key]) for key in ("kind", "title", "status", "text") if block.get(key))
            lines.append(Line("note", "trail", about))
        if message.final:
            lines.append(Line("done", who, "turn_complete"))
        return lines


def _attachment(attachment: Json) -> str:
    name, size = attachment.get("fileName") or "without a name", attachment.get("sizeBytes")
    return f"[{attachment.get('kind', 'file')}: {name}, {size} bytes, {attachment.get('url')}]"
