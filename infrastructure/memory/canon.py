"""The twin of Canon's request side: stores, replays, conflicts and refuses as Canon does, and fails when told to.

Every attribute without an underscore is for tests to read. Faults are ordered through :attr:`MemoryCanon.faults`; the
operation names are the method names of :class:`~canon_hermes_plugin.ports.canon.CanonApi`.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

from canon_hermes_plugin.domain import message_limits
from canon_hermes_plugin.infrastructure.memory.faults import Fault, Faults
from canon_hermes_plugin.infrastructure.memory.interactions import InteractionStore
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.ports.canon import (
    AgentIdentity,
    JsonObject,
    NodeWrite,
    OutboundMessage,
    RuntimeSignal,
    StoredMessage,
    TurnPublication,
    TypingStatus,
    Upload,
)
from canon_hermes_plugin.ports.errors import DeliveryError
from canon_hermes_plugin.ports.time import Clock

_T = TypeVar("_T")
_MAX_BLOCKS = 30


@dataclass(slots=True)
class Node:
    """The ephemeral node of a conversation."""

    turn_id: str = ""
    text: str = ""
    status: str = "streaming"
    blocks: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One call that reached the twin, in order of arrival; ``subject`` is its value or conversation."""

    operation: str
    subject: Any = None


@dataclass(slots=True)
class _Shelf:
    messages: dict[str, OutboundMessage] = field(default_factory=dict[str, OutboundMessage])
    prints: dict[str, str] = field(default_factory=dict[str, str])


@final
class MemoryCanon:
    """Canon in this process.

    Attributes:
        faults: orders for failing or delayed calls.
        calls: every call in order, failed ones included.
        nodes: the ephemeral node of each conversation.
        typing: the indicator of each conversation.
        turns, statuses, released, read, uploads, verbs: what was published, in order.
        conversations: what ``list_conversations`` answers.
        verb_answers: ``result.value`` per verb; an unknown verb answers ``{"status": "acknowledged"}``.
    """

    def __init__(self, identity: AgentIdentity | None = None, clock: Clock | None = None) -> None:
        self.identity = identity or AgentIdentity("agent_self", "user_owner", "Hermes")
        self.faults = Faults()
        self.calls: list[Call] = []
        self.nodes: dict[str, Node] = {}
        self.typing: dict[str, bool] = {}
        self.turns: list[TurnPublication] = []
        self.statuses: list[JsonObject] = []
        self.released: list[tuple[str, str]] = []
        self.read: list[str] = []
        self.uploads: list[Upload] = []
        self.verbs: list[tuple[str, JsonObject, JsonObject]] = []
        self.conversations: list[JsonObject] = []
        self.verb_answers: dict[str, JsonObject] = {}
        self.interactions = InteractionStore(clock or VirtualClock(), self.identity.owner_id or "user_owner")
        self.closed = False
        self._shelf = _Shelf()
        self._signals: defaultdict[str, deque[RuntimeSignal]] = defaultdict(deque)
        self._server_ids = itertools.count(1)

    @property
    def messages(self) -> list[OutboundMessage]:
        """Every stored durable message, in order, salvaged ones included."""
        return list(self._shelf.messages.values())

    @property
    def notifications(self) -> list[OutboundMessage]:
        """The stored messages that notified somebody: one per ``turn_complete``."""
        return [stored for stored in self.messages if stored.metadata.get("turnSemantics") == "turn_complete"]

    def operations(self) -> list[str]:
        """Return the names of :attr:`calls`."""
        return [call.operation for call in self.calls]

    def put_signal(self, conversation_id: str, signal: RuntimeSignal) -> None:
        """Leave a signal for the conversation's runtime."""
        self._signals[conversation_id].append(signal)

    async def send(self, message: OutboundMessage) -> StoredMessage:
        reason = message_limits.objection(message)
        if reason is not None:
            self.calls.append(Call("send", message))
            raise DeliveryError(reason, certainty="definitive", status_code=400)
        return await self._perform("send", message, lambda: self._store(message))

    async def write_node(self, write: NodeWrite) -> None:
        await self._perform("write_node", write, lambda: self._merge(write))

    async def clear_node(self, conversation_id: str) -> None:
        await self._perform("clear_node", conversation_id, lambda: self._delete(conversation_id))

    async def publish_turn(self, publication: TurnPublication) -> None:
        await self._perform("publish_turn", publication, lambda: self.turns.append(publication))

    async def publish_status(self, descriptor: JsonObject) -> None:
        await self._perform("publish_status", descriptor, lambda: self.statuses.append(descriptor))

    async def set_typing(self, conversation_id: str, *, typing: bool, status: TypingStatus = "thinking") -> None:
        subject = (conversation_id, typing, status)
        await self._perform("set_typing", subject, lambda: self.typing.__setitem__(conversation_id, typing))

    async def release_message(self, conversation_id: str, message_id: str) -> None:
        subject = (conversation_id, message_id)
        await self._perform("release_message", subject, lambda: self.released.append(subject))

    async def mark_read(self, conversation_id: str) -> None:
        await self._perform("mark_read", conversation_id, lambda: self.read.append(conversation_id))

    async def consume_signal(self, conversation_id: str) -> RuntimeSignal | None:
        def take() -> RuntimeSignal | None:
            waiting = self._signals[conversation_id]
            return waiting.popleft() if waiting else None

        return await self._perform("consume_signal", conversation_id, take)

    async def identify(self) -> AgentIdentity:
        return await self._perform("identify", None, lambda: self.identity)

    async def list_conversations(self) -> Sequence[JsonObject]:
        return await self._perform(
            "list_conversations", None, lambda: [item for item in self.conversations if item.get("id")]
        )

    async def upload(self, upload: Upload) -> JsonObject:
        if len(upload.data) > message_limits.MAX_MEDIA_BYTES:
            reason = f"the upload has {len(upload.data)} bytes, at most {message_limits.MAX_MEDIA_BYTES} are allowed"
            raise DeliveryError(reason, certainty="definitive")
        return await self._perform("upload", upload, lambda: self._keep(upload))

    async def call_verb(self, verb: str, *, envelope: JsonObject, value: JsonObject) -> JsonObject:
        def take() -> JsonObject:
            self.verbs.append((verb, envelope, value))
            return self.verb_answers.get(verb, {"status": "acknowledged"})

        return await self._perform("call_verb", verb, take)

    async def create_interaction(self, body: JsonObject) -> JsonObject:
        return await self._perform("create_interaction", body, lambda: self.interactions.create(body))

    async def consume_interaction(self, body: JsonObject) -> JsonObject:
        return await self._perform("consume_interaction", body, lambda: self.interactions.consume(body))

    async def verify(self) -> None:
        await self._perform("verify", None, lambda: None)

    async def close(self) -> None:
        self.closed = True

    async def _perform(self, operation: str, subject: object, effect: Callable[[], _T]) -> _T:
        self.calls.append(Call(operation, subject))
        after: Fault | None = await self.faults.enter(operation)
        result = effect()
        if after is not None:
            raise after.error(operation)
        return result

    def _store(self, message: OutboundMessage) -> StoredMessage:
        server_id = message.message_id or f"msg-{next(self._server_ids)}"
        fingerprint = _fingerprint(message)
        known = self._shelf.prints.setdefault(server_id, fingerprint)
        if known != fingerprint:
            raise DeliveryError(
                "the message id was used for another message", certainty="ambiguous", retryable=True, status_code=409
            )
        self._shelf.messages.setdefault(server_id, message)
        return StoredMessage(server_id, {"messageId": server_id})

    def _merge(self, write: NodeWrite) -> None:
        node = self.nodes.setdefault(write.conversation_id, Node())
        node.turn_id, node.text, node.status = write.turn_id, write.text, write.status
        if write.blocks is not None:
            node.blocks = tuple(write.blocks[:_MAX_BLOCKS])

    def _delete(self, conversation_id: str) -> None:
        node = self.nodes.pop(conversation_id, None)
        if node is None or not (node.text or node.blocks):
            return
        if any(final.metadata.get("turnId") == node.turn_id for final in self.notifications):
            return
        metadata: dict[str, Any] = {"turnSemantics": "progress", "turnId": node.turn_id}
        if node.blocks:
            metadata["turnTrail"] = list(node.blocks)
        server_id = f"msg-salvaged-{next(self._server_ids)}"
        self._shelf.messages[server_id] = OutboundMessage(conversation_id, node.text, server_id, metadata=metadata)

    def _keep(self, upload: Upload) -> JsonObject:
        self.uploads.append(upload)
        kind = upload.mime_type.partition("/")[0]
        attachment: dict[str, Any] = {
            "kind": kind if kind in {"image", "audio", "video"} else "file",
            "url": f"https://media.example/{len(self.uploads)}",
            "mimeType": upload.mime_type,
            "sizeBytes": len(upload.data),
        }
        if upload.file_name:
            attachment["fileName"] = upload.file_name
        return attachment


def _fingerprint(message: OutboundMessage) -> str:
    parts = [
        message.conversation_id,
        message.text,
        message.reply_to,
        dict(message.metadata),
        message.content_type,
        [dict(attachment) for attachment in message.attachments],
    ]
    return json.dumps(parts, sort_keys=True)
