"""The stored form of an operation that is being delivered: versioned JSON, exact to the byte on the wire.

Decides what a readable entry is. Refuses to know where it is stored; a document that is not exactly ours is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from canon_hermes_plugin.ports.canon import OutboundMessage
from canon_hermes_plugin.ports.outbox import OutboxEntry

FORMAT = "canon-hermes-plugin/outbox/1"

_ENTRY: Mapping[str, tuple[type, ...]] = {
    "scope": (str,),
    "order": (int,),
    "operationId": (str,),
    "turnId": (str, type(None)),
    "openedAt": (int, type(None)),
    "sessionKey": (str, type(None)),
    "keptAt": (int,),
    "messages": (list,),
}
_MESSAGE: Mapping[str, tuple[type, ...]] = {
    "conversationId": (str,),
    "text": (str,),
    "messageId": (str,),
    "replyTo": (str, type(None)),
    "metadata": (dict,),
    "contentType": (str, type(None)),
    "attachments": (list,),
}


def encode(entry: OutboxEntry, *, scope: str, order: int) -> bytes:
    """Return the document of ``entry``.

    Args:
        entry: what to store.
        scope: whose it is; :func:`decode` gives it to nobody else.
        order: grows with every entry of the scope.

    Raises:
        ValueError: it is not an entry, or it holds a value that JSON has no form for.
    """
    document = {
        "format": FORMAT,
        "scope": scope,
        "order": order,
        "operationId": entry.operation_id,
        "turnId": entry.turn_id,
        "openedAt": entry.opened_at,
        "sessionKey": entry.session_key,
        "keptAt": entry.kept_at,
        "messages": [_message(message) for message in entry.messages],
    }
    try:
        raw = json.dumps(document, separators=(",", ":")).encode("ascii")
    except (TypeError, RecursionError) as error:
        raise ValueError(f"an operation cannot be stored ({type(error).__name__})") from None
    decode(raw, scope=scope)
    return raw


def decode(raw: bytes, *, scope: str) -> tuple[int, OutboxEntry]:
    """Return the order and the entry of a document.

    Raises:
        ValueError: it is cut, damaged, of another version or of another scope. The text holds nothing of it.
    """
    try:
        found: object = json.loads(raw)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON document") from None
    fields = _fields(found, _ENTRY, also={"format"})
    if fields["format"] != FORMAT:
        raise ValueError("its format is another one")
    if fields["scope"] != scope:
        raise ValueError("it belongs to another agent or environment")
    messages = tuple(_read_message(item) for item in fields["messages"])
    entry = OutboxEntry(
        fields["operationId"],
        messages,
        fields["keptAt"],
        turn_id=fields["turnId"],
        opened_at=fields["openedAt"],
        session_key=fields["sessionKey"],
    )
    if not entry.operation_id or not messages or len({message.conversation_id for message in messages}) != 1:
        raise ValueError("it names no operation")
    return fields["order"], entry


def _message(message: OutboundMessage) -> dict[str, Any]:
    return {
        "conversationId": message.conversation_id,
        "text": message.text,
        "messageId": message.message_id,
        "replyTo": message.reply_to,
        "metadata": dict(message.metadata),
        "contentType": message.content_type,
        "attachments": [dict(attachment) for attachment in message.attachments],
    }


def _read_message(found: object) -> OutboundMessage:
    fields = _fields(found, _MESSAGE)
    if not fields["messageId"] or not all(isinstance(item, dict) for item in fields["attachments"]):
        raise ValueError("a message of it is none")
    return OutboundMessage(
        fields["conversationId"],
        fields["text"],
        message_id=fields["messageId"],
        reply_to=fields["replyTo"],
        metadata=fields["metadata"],
        content_type=fields["contentType"],
        attachments=tuple(fields["attachments"]),
    )


def _fields(
    found: object, kinds: Mapping[str, tuple[type, ...]], also: frozenset[str] | set[str] = frozenset()
) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - one kind of refusal for every damage
    fields = cast("dict[str, Any]", found)
    if fields.keys() != kinds.keys() | also:
        raise ValueError("its fields are others")
    for name, allowed in kinds.items():
        if type(fields[name]) not in allowed:
            raise ValueError("a field of it has another kind")
    return fields
