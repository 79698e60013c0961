"""One turn: everything that belongs to one lifecycle of the host, in one object with one lock (turns §2).

Holds the state and the rules for changing it together. Refuses to know ports, tasks and time: the coordinator acts on
what it reads here. Methods are thread-safe; none waits for anything but the lock.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from canon_hermes_plugin.domain.turns.delivery import DeliveryBook
from canon_hermes_plugin.domain.turns.media import PendingMedia
from canon_hermes_plugin.domain.turns.model import HostText, SubagentEnd, ToolEnd, ToolStart, TurnStart
from canon_hermes_plugin.domain.turns.output import Output
from canon_hermes_plugin.domain.turns.plan import Answer, real_message_id
from canon_hermes_plugin.domain.turns.preview import preview
from canon_hermes_plugin.domain.turns.silence import Silence
from canon_hermes_plugin.domain.turns.states import INITIAL_STATE, TurnEvent, advance, is_closed
from canon_hermes_plugin.domain.turns.trail import Trail
from canon_hermes_plugin.ports.canon import JsonObject, NodeStatus, NodeWrite, TurnState


@dataclass(slots=True)
class NodeProgress:
    """What this turn did to the conversation's node.

    Attributes:
        written: a write of this turn succeeded.
        blank: every write since the last empty one that succeeded was empty: clearing salvages nothing of this turn.
        blocks: some write carried blocks and may have landed, so later ones must say when there are none.
    """

    written: bool = False
    blank: bool = False
    blocks: bool = False


@dataclass(slots=True)
class _Extras:
    """What callers add to the answer besides its text; later values win (turns §3.3)."""

    reply_to: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    options: dict[str, Any] = field(default_factory=dict[str, Any])


class Turn:
    """A turn from its opening to its close.

    Attributes:
        id: ``hermes-`` and 20 hexadecimal digits.
        start: what opened it.
        opened_at: milliseconds since the epoch.
        book: its durable operations; used by the gateway loop only.
        node: what it wrote to the node; used by the gateway loop only.
        media: the files it sends with its answer; used by the gateway loop only.
    """

    def __init__(self, turn_id: str, start: TurnStart, opened_at: int, *, seal_bytes: int) -> None:
        self.id = turn_id
        self.start = start
        self.opened_at = opened_at
        self.book = DeliveryBook(start.conversation_id, turn_id)
        self.node = NodeProgress()
        self._lock = threading.Lock()
        self._state: TurnState = INITIAL_STATE
        self._output = Output(turn_id, seal_bytes=seal_bytes)
        self._trail = Trail(turn_id, contents=start.kind == "direct")
        self._silence = Silence()
        self._extras = _Extras()
        self._waits = 0
        self.media: list[PendingMedia] = []
        self._revision = 0

    def __repr__(self) -> str:
        return f"Turn({self.id}, {self._state})"

    @property
    def conversation_id(self) -> str:
        """The conversation it belongs to."""
        return self.start.conversation_id

    @property
    def state(self) -> TurnState:
        """The public state."""
        with self._lock:
            return self._state

    @property
    def closed(self) -> bool:
        """Whether the turn is over: nothing changes it any more."""
        return is_closed(self.state)

    @property
    def silenced(self) -> bool:
        """Whether nothing of it may be shown or delivered."""
        with self._lock:
            return self._silence.active

    @property
    def revision(self) -> int:
        """A number that grows with every change a viewer could see."""
        with self._lock:
            return self._revision

    def owns(self, bubble: str) -> bool:
        """Return whether ``bubble`` is one of its bubbles."""
        with self._lock:
            return self._output.owns(bubble)

    def stage(self, text: HostText) -> str | None:
        """Take a marked text in and return its bubble id; ``None`` when the turn is over or has no such bubble."""
        with self._lock:
            if is_closed(self._state):
                return None
            bubble = self._place(text)
            if bubble is not None:
                self._remember_extras(text)
                self._touch()
                if not self._silence.active:
                    self._state = advance(self._state, TurnEvent.PREVIEWED)
            return bubble

    def is_confirmed_answer(self, content: str) -> bool:
        """Return whether ``content`` is the final text the host confirmed for the current run (H3)."""
        with self._lock:
            return self._output.matches_confirmed(content)

    def tool_started(self, start: ToolStart) -> bool:
        """Record the start of a tool call; ``False`` when the turn is over."""
        with self._lock:
            if is_closed(self._state):
                return False
            self._output.tool_started(start.call_id or start.name)
            self._trail.tool_started(start)
            self._touch()
            return True

    def tool_finished(self, end: ToolEnd) -> bool:
        """Record the end of a tool call; ``False`` when the turn is over."""
        with self._lock:
            if is_closed(self._state):
                return False
            self._output.tool_finished(end.call_id or end.name)
            self._trail.tool_finished(end)
            self._touch()
            return True

    def subagent_finished(self, end: SubagentEnd) -> bool:
        """Record the end of a sub-agent; ``False`` when the turn is over."""
        with self._lock:
            if is_closed(self._state):
                return False
            self._trail.subagent_finished(end)
            self._touch()
            return True

    def confirm(self, text: str) -> bool:
        """Take the run's authoritative final text; ``False`` when the turn is over."""
        with self._lock:
            if is_closed(self._state):
                return False
            self._output.confirm(text)
            self._silence.mark(text)
            self._touch()
            return True

    def silence(self) -> bool:
        """Silence the turn; ``False`` when it is over."""
        with self._lock:
            if is_closed(self._state):
                return False
            self._silence.request()
            self._touch()
            return True

    def lift_silence(self) -> bool:
        """Let the turn speak again; what it said under silence stays unsaid. ``False`` when it was not silent."""
        with self._lock:
            if is_closed(self._state) or not self._silence.active:
                return False
            self._silence.lift()
            self._output.retreat()
            self._touch()
            return True

    def wait(self, waiting: bool) -> bool:
        """Enter or leave the wait for a human; requests nest. Return whether the public state changed."""
        with self._lock:
            before = self._state
            self._waits = max(0, self._waits + (1 if waiting else -1))
            if waiting:
                self._state = advance(before, TurnEvent.ASKED)
            elif self._waits == 0:
                self._state = advance(before, TurnEvent.ANSWERED)
            return self._state != before

    def close(self, event: TurnEvent) -> bool:
        """End the turn; ``False`` when it was over already."""
        with self._lock:
            if is_closed(self._state):
                return False
            self._state = advance(self._state, event)
            return True

    def reply_to(self, message_id: str) -> None:
        """Remember what the answer replies to."""
        with self._lock:
            self._extras.reply_to = message_id

    def answer(self) -> Answer:
        """Return what the turn delivers if it succeeded; its text is blank when there is nothing to say."""
        with self._lock:
            extras = self._extras
            return Answer(
                text="" if self._silence.active else self._output.answer() or "",
                reply_to=real_message_id(extras.reply_to) or self.start.message_id,
                turn_id=self.id,
                trail=self._trail.final() if self.start.verbosity == "verbose" else (),
                metadata=dict(extras.metadata),
                options=dict(extras.options),
            )

    def view(self) -> NodeWrite:
        """Return what viewers should see now: the end of a long text, and nothing of a quiet or silent turn."""
        with self._lock:
            hidden = self._silence.active or self.start.verbosity == "quiet"
            text = "" if hidden else preview(self._output.shown())
            blocks: tuple[JsonObject, ...] = () if hidden else self._trail.live()
        return self._write(text, blocks)

    def blank(self) -> NodeWrite:
        """Return the write that empties the node."""
        return self._write("", ())

    def _write(self, text: str, blocks: tuple[JsonObject, ...]) -> NodeWrite:
        # A field that is not sent stays as it was, so the first and every empty write name the blocks (H26).
        named = bool(blocks) or self.node.blocks or not self.node.written or not text
        status: NodeStatus = "streaming" if text else "thinking"
        return NodeWrite(self.conversation_id, self.id, text, status, blocks if named else None)

    def _place(self, text: HostText) -> str | None:
        if text.finalize is not None:
            known = self._output.edit(text.bubble or "", text.content, finalized=text.finalize)
            return text.bubble if known else None
        if text.expect_edits:
            return self._output.open(text.content, finalized=text.notify)
        return self._output.append(text.content)

    def _remember_extras(self, text: HostText) -> None:
        self._extras.reply_to = text.reply_to or self._extras.reply_to
        _merge(self._extras.metadata, text.metadata)
        _merge(self._extras.options, text.options)

    def _touch(self) -> None:
        self._revision += 1


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    into.update(values)
