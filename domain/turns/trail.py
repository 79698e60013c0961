"""The activity shown in a turn's margin (turns §6, H15).

Decides which blocks exist, what they say and which fit. Refuses to know hooks, threads and ports; the owning turn
serialises every call.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from canon_hermes_plugin.domain.chunker import replace_lone_surrogates
from canon_hermes_plugin.domain.turns.model import SubagentEnd, ToolEnd, ToolStart
from canon_hermes_plugin.domain.turns.redaction import head, is_secret_key, redact
from canon_hermes_plugin.ports.canon import JsonObject

FINAL_BLOCKS = 20
FINAL_BYTES = 2500
LIVE_BLOCKS = 30
STORED_BLOCKS = 200

_ID_CHARS = 120
_TITLE_CHARS = 80
_TEXT_CHARS = 280
_SUMMARY_CHARS = 120
_RAW_CHARS = 4_000
"""How much of a string is looked at at all: a preview needs 280 characters of it."""

_JSON_CHARS = 65_536
"""A longer JSON text is not decoded for redaction; its beginning is redacted as plain text."""

_TEXT_STEPS = (_TEXT_CHARS, 200, 140, 100, 70, 45, 25, 0)
_FAILED_STATUSES = frozenset({"failed", "error", "blocked"})


@dataclass(slots=True)
class Block:
    """One line of activity."""

    id: str
    kind: str
    sequence: int
    title: str
    status: str = "running"
    text: str = ""
    summary: str = ""


class Trail:
    """The activity of one turn.

    Args:
        turn_id: the turn every block names.
        contents: whether viewers may see what tools receive and return; otherwise they see argument names.
    """

    def __init__(self, turn_id: str, *, contents: bool) -> None:
        self._turn_id = turn_id
        self._contents = contents
        self._blocks: dict[str, Block] = {}
        self._open: defaultdict[str, deque[Block]] = defaultdict(deque)
        self._sequence = 0

    def tool_started(self, start: ToolStart) -> None:
        """Record the start of a call. A start told after the end of the same call changes nothing."""
        name = start.name or "tool"
        block_id = _call_block_id(start.call_id)
        known = self._blocks.get(block_id) if block_id else None
        if known is not None:
            known.text = known.text or self._arguments(start.arguments)
            return
        block = self._new(block_id or f"tool:{name}:{self._sequence + 1}", "tool", name)
        block.text = self._arguments(start.arguments)
        if not block_id:
            self._open[name].append(block)

    def tool_finished(self, end: ToolEnd) -> None:
        """Record the end of a call; parallel calls of one name without ids end in the order they began."""
        block = self._ending_block(end)
        block.status = _final_status(end.status)
        result = self._excerpt(end.result) if self._contents else ""
        block.text = result or block.text or self._arguments(end.arguments)
        block.summary = _duration(end.duration_ms) or block.summary

    def subagent_finished(self, end: SubagentEnd) -> None:
        """Record the end of a foreground sub-agent."""
        role = end.role or "subagent"
        block_id = f"subagent:{(end.session_id or role).strip()}"
        block = self._blocks.get(block_id) or self._new(block_id, "status", role)
        block.status = _final_status(end.status)
        if self._contents and isinstance(end.summary, str):
            block.text = self._excerpt(end.summary)
        block.summary = _duration(end.duration_ms) or block.summary

    def live(self) -> tuple[JsonObject, ...]:
        """Return the newest 30 blocks for the node."""
        return tuple(self._compact(block, _TEXT_CHARS) for block in list(self._blocks.values())[-LIVE_BLOCKS:])

    def final(self) -> tuple[JsonObject, ...]:
        """Return the blocks for the durable answer: at most 20, at most 2,500 bytes, in order.

        Texts are shortened before a block is dropped, and the oldest blocks that did not fail are dropped first.
        """
        kept = list(self._blocks.values())
        while len(kept) > FINAL_BLOCKS:
            kept.remove(_least_wanted(kept))
        while kept:
            for limit in _TEXT_STEPS:
                blocks = tuple(self._compact(block, limit, ended=True) for block in kept)
                if _encoded_bytes(blocks) <= FINAL_BYTES:
                    return blocks
            kept.remove(_least_wanted(kept))
        return ()

    def _new(self, block_id: str, kind: str, title: str) -> Block:
        self._sequence += 1
        block = Block(block_id, kind, self._sequence, _line(title, _TITLE_CHARS))
        self._blocks[block_id] = block
        if len(self._blocks) > STORED_BLOCKS:
            del self._blocks[_least_wanted(self._blocks.values()).id]
        return block

    def _ending_block(self, end: ToolEnd) -> Block:
        name = end.name or "tool"
        block_id = _call_block_id(end.call_id)
        if block_id:
            return self._blocks.get(block_id) or self._new(block_id, "tool", name)
        waiting = self._open[name]
        return waiting.popleft() if waiting else self._new(f"tool:{name}:{self._sequence + 1}", "tool", name)

    def _arguments(self, arguments: object) -> str:
        if self._contents:
            return self._excerpt(arguments)
        if isinstance(arguments, Mapping):
            names = cast("Mapping[Any, object]", arguments)
            first = (str(name) for name in islice(names, _TEXT_CHARS))
            return _line(", ".join(name for name in first if not is_secret_key(name)), _TEXT_CHARS)
        return ""

    @staticmethod
    def _excerpt(value: object) -> str:
        if value is None:
            return ""
        if not (isinstance(value, str) and _is_json(value) and len(value) <= _JSON_CHARS):
            value = head(value, _RAW_CHARS)
        shown: object = redact(value)
        return _line(shown if isinstance(shown, str) else _json(shown), _TEXT_CHARS)

    def _compact(self, block: Block, text_chars: int, *, ended: bool = False) -> JsonObject:
        """Render one block, keys in the contract's order (turns §6.1)."""
        status = "completed" if ended and block.status == "running" else block.status
        shown: dict[str, Any] = {
            "id": _clip(block.id, _ID_CHARS),
            "turnId": self._turn_id,
            "kind": block.kind,
            "status": status,
            "sequence": block.sequence,
        }
        optional = {"title": block.title, "text": _clip(block.text, text_chars), "summary": block.summary}
        return {**shown, **{key: value for key, value in optional.items() if value}}


def _call_block_id(call_id: str | None) -> str:
    trimmed = (call_id or "").strip()
    return f"tool:{replace_lone_surrogates(trimmed)}" if trimmed else ""


def _final_status(status: str) -> str:
    return "failed" if status in _FAILED_STATUSES else "completed"


def _duration(milliseconds: object) -> str:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int) or milliseconds < 0:
        return ""
    return _clip(f"{milliseconds} ms", _SUMMARY_CHARS)


def _least_wanted(blocks: Iterable[Block]) -> Block:
    """Return the oldest block that did not fail and is not the newest, else the oldest."""
    ordered = list(blocks)
    return next((block for block in ordered[:-1] if block.status != "failed"), ordered[0])


def _clip(text: str, chars: int) -> str:
    if len(text) <= chars:
        return text
    return text[: chars - 3] + "..." if chars > len("...") else ""


def _line(text: str, chars: int) -> str:
    return _clip(" ".join(replace_lone_surrogates(text[:_RAW_CHARS]).split()), chars)


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in {"{", "["}


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _encoded_bytes(blocks: tuple[JsonObject, ...]) -> int:
    return len(json.dumps({"turnTrail": blocks}, ensure_ascii=False, separators=(",", ":")).encode())
