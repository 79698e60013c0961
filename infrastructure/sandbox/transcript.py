"""What happened in a conversation, as lines for people to read.

Decides which of Canon's events are worth a line. Knows nothing of terminals, colours or escaping: texts are remote
and raw.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final, Literal

from canon_hermes_plugin.infrastructure.sandbox.interactions import Interaction
from canon_hermes_plugin.infrastructure.sandbox.participant import actions_of, choices_of
from canon_hermes_plugin.infrastructure.sandbox.records import DurableMessage, Json, as_list, as_object
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon

LineKind = Literal["person", "agent", "note", "ask", "done"]

TRAIL_CHARS: Final = 100
"""Characters of what a tool returned that the readable transcript shows."""
TITLE_CHARS: Final = 60
"""Characters of a running tool's name that the line about it shows."""
_PAIR: Final = re.compile(r'"(\w+)":\s*("(?:[^"\\]|\\.)*"?|[^\s,\[\]{}"]+)')

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
    """Follows one conversation; each :meth:`news` returns what came since the last call.

    Attributes:
        canon: where.
        conversation_id: which conversation.
        raw: show trail and metadata of each answer as the JSON Canon keeps.
    """

    canon: LoopbackCanon
    conversation_id: str
    raw: bool = False
    _messages: int = 0
    _turns: int = 0
    _asked: int = 0
    _verbs: int = 0
    _state: tuple[str, str] = field(default=("", ""))
    _ended: set[str] = field(default_factory=set[str])
    _cards: list[Interaction] = field(default_factory=list[Interaction])

    def pending(self) -> bool:
        """Whether there is anything new to read."""
        state = self.canon.state
        seen = (self._messages, self._turns, self._asked, self._verbs)
        logs = state.logs
        there = (len(state.messages), len(logs.turns), len(self.canon.interactions.all()), len(logs.verbs))
        return there != seen or any(card.status != "open" for card in self._cards)

    def activity(self, step: int = 1) -> str:
        """Return what the live node shows the agent doing now; nothing when it shows nothing.

        Args:
            step: a growing answer counts in steps of so many characters.
        """
        with self.canon.state.lock:
            node = self.canon.state.nodes.get(self.conversation_id) or {}
            blocks, text = [as_object(block) for block in as_list(node.get("blocks"))], str(node.get("text") or "")
        running = [_title(block) for block in blocks if block.get("status") == "running"]
        size = len(text) // step * step
        return f"is using {running[-1]}" if running else f"is writing ({size:,} characters)" if size else ""

    def news(self) -> list[Line]:
        """Return the new lines, in an order a reader expects: a turn's state before the message it leads to."""
        state = self.canon.state
        with state.lock:
            messages = [message for message in state.messages[self._messages :] if self._here(message)]
            turns, verbs = state.logs.turns[self._turns :], state.logs.verbs[self._verbs :]
            asked = self.canon.interactions.all()[self._asked :]
            self._messages, self._turns = len(state.messages), len(state.logs.turns)
            self._asked, self._verbs = self._asked + len(asked), len(state.logs.verbs)
        own = self.canon.identity.agent_id
        lines = [_person_line(message) for message in messages if message.sender_id != own]
        lines += self._picked_lines()
        for turn in turns:
            lines += self._state_line(turn)
        for made in asked:
            lines += self._question_lines(made)
        for message in messages:
            lines += _answer_lines(message, raw=self.raw) if message.sender_id == own else []
        self._ended |= {str(message.metadata.get("turnId")) for message in messages if message.final}
        name = self.canon.identity.agent_name
        silenced = [verb for verb in verbs if verb["verb"] == "no_reply"]
        return lines + [Line("done", name, "chose not to answer") for _ in silenced]

    def _here(self, message: DurableMessage) -> bool:
        return message.conversation_id == self.conversation_id

    def _state_line(self, turn: Json) -> list[Line]:
        if turn.get("conversationId") != self.conversation_id:
            return []
        state = (str(turn.get("turnId")), str(turn.get("state")))
        # The state of a turn travels beside its messages and may arrive behind the one that ended it.
        note = None if state[0] in self._ended else _STATE_NOTES.get(state[1])
        known, self._state = self._state == state, state
        return [] if known or note is None else [Line("note", self.canon.identity.agent_name, note)]

    def _question_lines(self, made: Interaction) -> list[Line]:
        if made.conversation_id != self.conversation_id:
            return []
        self._cards += [made] if made.kind == "card" else []
        return [Line("ask", self.canon.identity.agent_name, "\n".join(_question(made)))]

    def _picked_lines(self) -> list[Line]:
        """Cards are answered without a message, so their answers are looked up."""
        settled = [card for card in self._cards if card.status != "open"]
        self._cards = [card for card in self._cards if card.status == "open"]
        names = [self.canon.state.people[card.responder].name for card in settled]
        picks = [str(card.result.get("actionId") or card.status) for card in settled]
        return [Line("note", name, f"card: {pick}") for name, pick in zip(names, picks, strict=True)]


def _title(block: Json) -> str:
    return " ".join(str(block.get("title") or "a tool").split())[:TITLE_CHARS]


def _name(message: DurableMessage) -> str:
    return str(message.fields.get("senderName") or message.sender_id)


def _person_line(message: DurableMessage) -> Line:
    control = bool(message.metadata.get("type"))
    return Line("note" if control else "person", _name(message), message.text)


def _answer_lines(message: DurableMessage, *, raw: bool) -> list[Line]:
    who = _name(message)
    chunk = as_object(message.metadata.get("messageChunk"))
    if chunk:
        who = f"{who} (part {chunk.get('index')} of {chunk.get('count')})"
    trail, show = map(as_object, as_list(message.metadata.get("turnTrail"))), _json if raw else _activity
    lines = [Line("note", "trail", show(block)) for block in trail]
    if message.text:
        lines.append(Line("agent", who, message.text))
    lines += [Line("agent", who, _attachment(as_object(it))) for it in as_list(message.fields.get("attachments"))]
    if raw:
        about = {key: value for key, value in message.metadata.items() if key != "turnTrail"}
        lines.append(Line("note", "metadata", _json(about)))
    if message.final:
        lines.append(Line("done", who, "turn_complete" if raw else "has finished (turn_complete)"))
    return lines


def _activity(block: Json) -> str:
    """Return one line about a step: what it was, how it ended and how long it took, and the beginning of its result."""
    title, status = str(block.get("title") or block.get("kind") or "step"), str(block.get("status") or "")
    took, text = str(block.get("summary") or ""), _plain(str(block.get("text") or ""))
    head = f"{title} {status}".strip() + (f" in {took}" if took else "")
    return f"{head}: {text}" if text else head


def _plain(text: str) -> str:
    """Return a tool's result without the punctuation of JSON, which may be cut off anywhere."""
    pairs = _PAIR.findall(text) if text.lstrip().startswith("{") else []
    shown = [f"{name} {value.strip(chr(34))}" for name, value in pairs if value not in {"null", '""'}]
    line = " ".join((", ".join(shown) or text).replace("\\n", " ").split())
    return line if len(line) <= TRAIL_CHARS else line[: TRAIL_CHARS - 3] + "..."


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _attachment(attachment: Json) -> str:
    name, size = attachment.get("fileName") or "without a name", attachment.get("sizeBytes")
    return f"[{attachment.get('kind', 'file')}: {name}, {size} bytes, {attachment.get('url')}]"


def _question(made: Interaction) -> list[str]:
    body = made.body
    if made.kind == "approval":
        rows = [as_object(row) for row in as_list(body.get("details"))]
        details = [f"  {row.get('label')}: {row.get('value')}" for row in rows]
        return [f"asks for approval: {body.get('toolSummary')}", *details, "  answers: /allow  /deny"]
    if made.kind == "card":
        card = as_object(body.get("card"))
        actions = [f"/{action.get('id')} ({action.get('label')})" for action in actions_of(made)]
        shown = [f"shows a card: {card.get('title')}", f"  {card.get('fallbackText')}"]
        return [*shown, "  answers: " + "  ".join(actions)] if actions else shown
    labels = [f"  {number}. {choice.get('label')}" for number, choice in enumerate(choices_of(made), 1)]
    return [f"asks: {body.get('prompt') or body.get('title')}", *labels]
