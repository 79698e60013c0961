"""The durable messages of one operation, fixed before the first is sent (turns §4.2, §4.3, §5.3, §5.4).

Decides ids, parts and metadata. Refuses to know when and how often a message is sent.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from canon_hermes_plugin.domain.chunker import split
from canon_hermes_plugin.ports.canon import JsonObject, OutboundMessage

_log = logging.getLogger(__name__)

MAX_ID_CHARS = 160
MAX_METADATA_UNITS = 4096
"""UTF-16 code units of compact JSON that Canon accepts as metadata."""

_CHUNK_RESERVE = 160
"""UTF-16 units of the metadata kept free for ``messageChunk``."""

_SCHEME = "canon-hermes-plugin/durable-operation/1"
_OWNED_KEYS = ("turnSemantics", "turnComplete", "turnTrail", "messageChunk", "replyBehavior")
_NOT_CANON_IDS = re.compile(r"canon-control:|canon-detached-approval:|hermes-[0-9a-f]{20}(\.|\Z)")

COMPLETE: JsonObject = {"turnSemantics": "turn_complete", "turnComplete": True}
PROGRESS: JsonObject = {"turnSemantics": "progress", "replyBehavior": "suppress_auto_reply"}


def operation_id(conversation_id: str, scope: str, ordinal: int) -> str:
    """Return the stable, opaque id of an operation: 45 ASCII characters, equal for equal arguments only (turns §4.3).

    Args:
        conversation_id: where it goes.
        scope: the turn id, or a random token for an operation outside any turn.
        ordinal: 1 for the first operation of the scope.

    Raises:
        ValueError: ``ordinal`` is not a positive integer, or ``scope`` is blank.
    """
    if type(ordinal) is not int or ordinal < 1:
        raise ValueError("an operation's ordinal is a positive integer")
    if not scope:
        raise ValueError("an operation needs a turn id or a token")
    digest = hashlib.sha256()
    for component in (_SCHEME, conversation_id, scope, str(ordinal)):
        encoded = component.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return f"hermes-final-{digest.hexdigest()[:32]}"


def part_id(base_id: str, suffix: str) -> str:
    """Return the id of one message of an operation, at most 160 characters."""
    return f"{base_id[: MAX_ID_CHARS - len(suffix)]}{suffix}"


def real_message_id(value: str | None) -> str | None:
    """Return ``value`` unless it is blank or an id that only this plugin knows: Canon may refuse those as targets."""
    return None if not value or _NOT_CANON_IDS.match(value) else value


def metadata_units(metadata: Mapping[str, Any]) -> int:
    """Return the size of ``metadata`` as Canon counts it."""
    text = json.dumps(metadata, ensure_ascii=False, separators=(",", ":"), default=str)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True)
class MediaItem:
    """One uploaded file of an operation.

    Attributes:
        attachment: the attachment object as Canon returned it, kind and duration corrected.
        content_type: ``image``, ``audio``, ``video`` or ``file``.
        caption: text that belongs to this file; may be blank.
    """

    attachment: JsonObject
    content_type: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one operation says.

    Attributes:
        text: the whole text; blank when the media are the answer.
        media: files in order. Those with a caption precede the text, the others travel with it.
        marks: ``COMPLETE`` for an answer, ``PROGRESS`` for what must wake nobody.
        turn_id: the turn it ends, if any.
        trail: the activity to show with it.
        metadata: the caller's own keys; the plugin's keys win.
        options: the caller's ``contentType`` and ``attachments`` for the last message; any other key is ignored.
    """

    text: str
    media: tuple[MediaItem, ...] = ()
    reply_to: str | None = None
    marks: JsonObject = field(default_factory=lambda: COMPLETE)
    turn_id: str | None = None
    trail: Sequence[JsonObject] = ()
    metadata: JsonObject = field(default_factory=dict[str, Any])
    options: JsonObject = field(default_factory=dict[str, Any])

    @property
    def content_type(self) -> str | None:
        """The caller's content type."""
        value = self.options.get("contentType")
        return value if isinstance(value, str) else None

    @property
    def attachments(self) -> tuple[JsonObject, ...]:
        """The caller's attachment objects."""
        value = self.options.get("attachments")
        items = cast("list[object]", value) if isinstance(value, list) else []
        return tuple(cast("JsonObject", item) for item in items if isinstance(item, dict))


def plan(answer: Answer, conversation_id: str, base_id: str) -> tuple[OutboundMessage, ...]:
    """Return the messages of ``answer`` in sending order; only the last carries its marks and trail.

    The result is empty when the answer has neither a visible character nor a file.
    """
    texts = split(answer.text)
    attached = [item for item in answer.media if not item.caption.strip()]
    if not texts and not attached and not answer.media:
        return ()
    metadata = _final_metadata(answer, base_id)
    if not texts and not attached:
        # A captioned file is the whole answer.
        return _captioned(answer, metadata, conversation_id, base_id, final=True)
    leading = _captioned(answer, metadata, conversation_id, base_id, final=False)
    files = (*answer.attachments, *(item.attachment for item in attached))
    last = OutboundMessage(
        conversation_id,
        "",
        reply_to=real_message_id(answer.reply_to),
        metadata=metadata,
        content_type=attached[0].content_type if attached else answer.content_type,
        attachments=files,
    )
    return (*leading, *_parts(texts or [""], last, base_id))


def _captioned(
    answer: Answer, metadata: JsonObject, conversation_id: str, base_id: str, *, final: bool
) -> tuple[OutboundMessage, ...]:
    items = [item for item in answer.media if item.caption.strip()]
    messages: list[OutboundMessage] = []
    for position, item in enumerate(items, start=1):
        ends = final and position == len(items)
        last = OutboundMessage(
            conversation_id,
            "",
            reply_to=real_message_id(answer.reply_to),
            metadata=metadata if ends else _leading_metadata(metadata),
            content_type=item.content_type,
            attachments=(item.attachment,),
        )
        group = base_id if ends else part_id(base_id, f"-media-{position}")
        messages += _parts(split(item.caption), last, group)
    return tuple(messages)


def _parts(texts: Sequence[str], last: OutboundMessage, base_id: str) -> list[OutboundMessage]:
    """Spread ``texts`` over messages; ``last`` is the model of the final one."""
    total = len(texts)
    if total == 1:
        return [replace(last, text=texts[0], message_id=base_id)]
    parts: list[OutboundMessage] = []
    for index, text in enumerate(texts, start=1):
        chunk = {"messageChunk": {"type": "text", "index": index, "count": total, "groupId": base_id}}
        metadata = {**(last.metadata if index == total else _leading_metadata(last.metadata)), **chunk}
        model = last if index == total else replace(last, content_type=None, attachments=())
        parts.append(replace(model, text=text, message_id=part_id(base_id, f"-part-{index}"), metadata=metadata))
    return parts


def _leading_metadata(final: JsonObject) -> dict[str, Any]:
    return {**{key: value for key, value in final.items() if key not in _OWNED_KEYS}, **PROGRESS}


def _final_metadata(answer: Answer, base_id: str) -> dict[str, Any]:
    """Build the final's metadata; what does not fit is left out, the trail first, never the message (turns §6.3)."""
    owned: dict[str, Any] = dict(answer.marks)
    if answer.turn_id:
        owned["turnId"] = answer.turn_id
    caller = {key: value for key, value in answer.metadata.items() if key not in _OWNED_KEYS}
    if metadata_units({**caller, **owned}) > MAX_METADATA_UNITS - _CHUNK_RESERVE:
        caller = {}
    whole = {**caller, **owned}
    if answer.trail:
        with_trail = {**whole, "turnTrail": [dict(block) for block in answer.trail]}
        units = metadata_units(with_trail)
        if units <= MAX_METADATA_UNITS - _CHUNK_RESERVE:
            return with_trail
        _log.debug(
            "%s of turn %s: trail dropped for size, %d blocks, %d units",
            base_id,
            answer.turn_id,
            len(answer.trail),
            units,
        )
    return whole
