"""Canon's JSON, in both directions (canon-wire §0.1, §1, §8): pure translation between port values and bodies.

Only the fields named here cross the wire: no bag of options can override a destination (§13 row 14).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, cast

from canon_hermes_plugin.infrastructure.canon.link import encode
from canon_hermes_plugin.ports.canon import (
    AgentIdentity,
    JsonObject,
    NodeWrite,
    OutboundMessage,
    RuntimeSignal,
    SignalKind,
    TurnPublication,
    TypingStatus,
    Upload,
)
from canon_hermes_plugin.ports.errors import MalformedResponseError

VERB_WIRE = "canon.verb-wire.v1"
MAX_BLOCKS = 30
_SIGNALS: Mapping[object, SignalKind] = {
    "interrupt": "interrupt",
    "stop_and_drop": "stop_and_drop",
    "new_session": "new_session",
}
_KINDS = frozenset({"image", "audio", "video"})


def first_of(value: object, *keys: str) -> str | None:
    """Return the string form of the first key whose value is a non-empty string or a number (canon-wire §0.1)."""
    fields = as_object(value)
    for key in keys:
        found = fields.get(key)
        if isinstance(found, str | int | float) and not isinstance(found, bool) and str(found):
            return str(found)
    return None


def as_object(value: object) -> JsonObject:
    """Return ``value`` when it is a JSON object, else an empty one."""
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}


def message_body(message: OutboundMessage) -> dict[str, Any]:
    """R5. Inline attachment data never goes along (canon-wire §6.4)."""
    body: dict[str, Any] = {"conversationId": message.conversation_id, "text": message.text}
    if message.content_type:
        body["contentType"] = message.content_type
    if message.attachments:
        body["attachments"] = [
            {key: value for key, value in attachment.items() if key != "data"} for attachment in message.attachments
        ]
    if message.message_id:
        body["messageId"] = message.message_id
    if message.reply_to:
        body["replyTo"] = message.reply_to
    if message.metadata:
        body["metadata"] = dict(message.metadata)
    return body


def upload_content(upload: Upload) -> bytes:
    """R6, encoded. Works through megabytes: run it off the event loop."""
    body = {
        "conversationId": upload.conversation_id,
        "data": base64.b64encode(upload.data).decode("ascii"),
        "mimeType": upload.mime_type,
    }
    if upload.file_name:
        body["fileName"] = upload.file_name
    return encode(body)


def attachment_of(answer: object, upload: Upload) -> JsonObject:
    """Return R6's attachment object, or the one synthesised from its ``url`` (canon-wire §1.7)."""
    attachment = as_object(as_object(answer).get("attachment"))
    if attachment:
        return attachment
    url = first_of(answer, "url")
    if url is None:
        raise MalformedResponseError("Canon's upload answer names neither an attachment nor an address")
    kind = upload.mime_type.partition("/")[0].lower()
    made: dict[str, Any] = {
        "kind": kind if kind in _KINDS else "file",
        "url": url,
        "mimeType": upload.mime_type,
        "sizeBytes": len(upload.data),
    }
    if upload.file_name:
        made["fileName"] = upload.file_name
    return made


def typing_body(conversation_id: str, status: TypingStatus | None) -> dict[str, Any]:
    """R8. ``None`` hides the indicator."""
    if status is None:
        return {"conversationId": conversation_id, "typing": False}
    return {"conversationId": conversation_id, "typing": True, "status": status}


def node_body(write: NodeWrite) -> dict[str, Any]:
    """R9. Unsent fields stay as they are on the node, so ``blocks`` is sent only when given."""
    body: dict[str, Any] = {
        "conversationId": write.conversation_id,
        "status": write.status,
        "text": write.text,
        "messageId": write.turn_id,
        "turnId": write.turn_id,
    }
    if write.blocks is not None:
        body["blocks"] = [dict(block) for block in write.blocks[:MAX_BLOCKS]]
    return body


def status_body(descriptor: JsonObject) -> dict[str, Any]:
    """R10."""
    body: dict[str, Any] = {"runtime": "hermes", "hostMode": True}
    if descriptor:
        body["runtimeDescriptor"] = dict(descriptor)
    return body


def turn_body(publication: TurnPublication) -> dict[str, Any]:
    """R11."""
    body: dict[str, Any] = {
        "conversationId": publication.conversation_id,
        "state": publication.state,
        "queueDepth": max(0, publication.queue_depth),
        "capabilities": dict(publication.capabilities),
        "turnUpdatedAt": publication.updated_at,
    }
    if publication.turn_id:
        body["turnId"] = publication.turn_id
        if publication.opened_at is not None:
            body["openedAt"] = publication.opened_at
    if publication.active_message_ids:
        body["activeMessageIds"] = list(publication.active_message_ids)
    return body


def identity_of(answer: object) -> AgentIdentity:
    """R3."""
    return AgentIdentity(
        first_of(answer, "agentId", "id", "userId"),
        first_of(answer, "ownerId"),
        first_of(answer, "displayName", "agentName", "name"),
    )


def conversations_of(answer: object) -> Sequence[JsonObject]:
    """R4: a list, or an object holding one; items without an id are left out."""
    listed: object = as_object(answer).get("conversations", answer)
    if not isinstance(listed, list):
        return []
    items = [as_object(item) for item in cast("list[object]", listed)]
    return [item for item in items if first_of(item, "id", "conversationId")]


def signal_of(answer: object) -> RuntimeSignal | None:
    """R12: anything but a known signal is none."""
    fields = as_object(answer)
    named = fields.get("signal")
    kind = _SIGNALS.get(named) if isinstance(named, str) else None
    if fields.get("status") != "signal" or kind is None:
        return None
    return RuntimeSignal(kind, first_of(fields, "updatedBy"))


def verb_body(verb: str, envelope: JsonObject, value: JsonObject) -> dict[str, Any]:
    """R17: routing goes in the envelope, content in the body."""
    return {
        "wire": VERB_WIRE,
        "verb": verb,
        "envelope": dict(envelope),
        "body": {"encoding": "json", "value": dict(value)},
    }


def verb_value(answer: object, verb: str) -> JsonObject:
    """Return ``result.value``; any deviation of the envelope is a hard failure (canon-wire §8.1)."""
    fields = as_object(answer)
    result = as_object(fields.get("result"))
    value = result.get("value")
    if fields.get("wire") != VERB_WIRE or fields.get("verb") != verb or result.get("encoding") != "json":
        raise MalformedResponseError(f"the answer to verb {verb} is not a {VERB_WIRE} answer to it")
    if not isinstance(value, Mapping):
        raise MalformedResponseError(f"the answer to verb {verb} carries no object")
    return cast("JsonObject", value)
