"""What Canon accepts as one durable message (canon-wire §1.6): checked here, before any request leaves.

Refuses to know why a message is too long or how to split it; that is the chunker's decision.
"""

from __future__ import annotations

import json

from canon_hermes_plugin.ports.canon import OutboundMessage

MAX_TEXT_BYTES = 4096
MAX_MESSAGE_ID_CHARS = 160
MAX_METADATA_UNITS = 4096
MAX_MEDIA_BYTES = 10_485_760


def objection(message: OutboundMessage) -> str | None:
    """Return why Canon would refuse ``message``, or ``None``. The text holds sizes, never content."""
    return _address_objection(message) or _text_objection(message) or _metadata_objection(message)


def _address_objection(message: OutboundMessage) -> str | None:
    if not message.conversation_id.strip():
        return "the message has no conversation"
    if message.message_id is None:
        return None
    if not message.message_id or not message.message_id.isascii():
        return "the message id must be non-empty ASCII"
    if len(message.message_id) > MAX_MESSAGE_ID_CHARS:
        return f"the message id has {len(message.message_id)} characters, at most {MAX_MESSAGE_ID_CHARS} are allowed"
    return None


def _text_objection(message: OutboundMessage) -> str | None:
    if not message.text and not message.attachments:
        return "the message has neither text nor attachments"
    try:
        size = len(message.text.encode("utf-8"))
    except UnicodeEncodeError:
        return "the text holds a lone surrogate and cannot be encoded"
    if size > MAX_TEXT_BYTES:
        return f"the text has {size} UTF-8 bytes, at most {MAX_TEXT_BYTES} are allowed"
    return None


def _metadata_objection(message: OutboundMessage) -> str | None:
    if not message.metadata:
        return None
    try:
        compact = json.dumps(dict(message.metadata), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        units = len(compact.encode("utf-16-le")) // 2
    except (TypeError, ValueError, RecursionError):
        return "the metadata is not plain JSON"
    if units > MAX_METADATA_UNITS:
        return f"the metadata has {units} UTF-16 units of compact JSON, at most {MAX_METADATA_UNITS} are allowed"
    return None
