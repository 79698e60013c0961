"""The loopback Canon's store: what is durable, what is ephemeral, what was merely asked (canon-wire §11.1).

Decides: idempotent replay and conflict of a message id, the byte and unit limits, the merge and salvage of the
ephemeral node, who is woken, single-use signals. Refuses to know HTTP, faults and the event loop: every
method is called with the store's lock held and either returns a value or raises :class:`.records.RefusedError`.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

from canon_hermes_plugin.infrastructure.sandbox.events import EventLog
from canon_hermes_plugin.infrastructure.sandbox.records import (
    DurableMessage,
    Json,
    Logs,
    Person,
    RefusedError,
    RequestRecord,
    SandboxIdentity,
    as_list,
    as_object,
)

MAX_TEXT_BYTES = 4096
MAX_METADATA_UNITS = 4096
MAX_ID_CHARS = 160
MAX_ID_BYTES = 256
MAX_BLOCKS = 30
SIGNALS = frozenset({"interrupt", "stop_and_drop", "new_session"})
TURN_STATES = frozenset({"thinking", "streaming", "tool", "waiting_input", "completed", "interrupted"})
_FINGERPRINT_FIELDS = ("conversationId", "text", "replyTo", "metadata", "contentType", "attachments")


def compact(value: object) -> str:
    """Return the compact, non-escaped JSON whose size Canon's limits are about."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def utf16_units(text: str) -> int:
    """Return the length of ``text`` in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class Policy:
    """Switches of the server's behaviour.

    Attributes:
        dispatch: ``run_turn`` stamps waking messages and does not emit the others; ``None`` gives no verdict and emits
            all; any other text is stamped on everything.
        forbidden: answer 403 to every authenticated call.
        echo_own: emit the agent's own messages back on the stream.
    """

    dispatch: str | None = "run_turn"
    forbidden: bool = False
    echo_own: bool = True


@dataclass
class CanonState:
    """Everything this Canon knows. ``lock`` guards all of it and is notified after every change."""

    identity: SandboxIdentity = field(default_factory=SandboxIdentity)
    clock: Callable[[], int] = _now_ms
    policy: Policy = field(default_factory=Policy)
    lock: threading.Condition = field(default_factory=threading.Condition)
    people: dict[str, Person] = field(default_factory=dict[str, Person])
    conversations: dict[str, Json] = field(default_factory=dict[str, Json])
    messages: list[DurableMessage] = field(default_factory=list[DurableMessage])
    nodes: dict[str, Json] = field(default_factory=dict[str, Json])
    signals: dict[str, Json] = field(default_factory=dict[str, Json])
    requests: list[RequestRecord] = field(default_factory=list[RequestRecord])
    logs: Logs = field(default_factory=Logs)
    events: EventLog = field(default_factory=EventLog)
    clock_offset_ms: int = 0
    _by_id: dict[str, DurableMessage] = field(default_factory=dict[str, DurableMessage])

    def __post_init__(self) -> None:
        for person in (self.identity.owner, Person("user_dana", "Dana"), self.agent):
            self.people[person.id] = person

    def now(self) -> int:
        """Return the server's time in milliseconds since the epoch."""
        return self.clock() + self.clock_offset_ms

    @property
    def agent(self) -> Person:
        """The agent this Canon serves."""
        return Person(self.identity.agent_id, self.identity.agent_name, "ai_agent")

    # Conversations ---------------------------------------------------------------------------------------------------

    def add_conversation(self, conversation_id: str, *members: str, kind: str = "direct", name: str = "") -> Json:
        """Create or replace a conversation; the agent is always a member."""
        self.conversations[conversation_id] = {
            "id": conversation_id,
            "type": kind,
            "name": name or conversation_id,
            "memberIds": [*members, self.identity.agent_id],
        }
        return self.conversations[conversation_id]

    def conversation(self, body: Json) -> str:
        """Return the conversation a request is about."""
        value = body.get("conversationId")
        if not isinstance(value, str) or not value:
            raise RefusedError(400, "conversationId is required")
        if value not in self.conversations:
            raise RefusedError(404, "conversation not found")
        return value

    def sender(self, conversation_id: str, user_id: str) -> Person:
        """Return who is about to speak.

        Raises:
            ValueError: an unknown conversation, or somebody who is neither a member of it nor known.
        """
        conversation = self.conversations.get(conversation_id)
        if conversation is None:
            known = ", ".join(self.conversations)
            raise ValueError(f"unknown conversation {conversation_id!r}; known: {known}. add_conversation makes one")
        if user_id in self.people:
            return self.people[user_id]
        if user_id in conversation["memberIds"]:
            return Person(user_id, user_id)
        known = ", ".join(dict.fromkeys([*self.people, *conversation["memberIds"]]))
        raise ValueError(f"unknown person {user_id!r}; known: {known}. add_person makes somebody known")

    # Durable messages ------------------------------------------------------------------------------------------------

    def store_outbound(self, body: Json) -> tuple[DurableMessage, bool]:
        """Store the agent's message; return it and whether it is new (canon-wire §1.4 to §1.6)."""
        conversation_id = self.conversation(body)
        message_id = _checked_send(body)
        fingerprint = compact({key: body.get(key) for key in _FINGERPRINT_FIELDS})
        if message_id is not None and message_id in self._by_id:
            known = self._by_id[message_id]
            if known.fingerprint != fingerprint:
                raise RefusedError(409, "messageId was used for another message", "MESSAGE_ID_CONFLICT")
            return known, False
        fields = {key: value for key, value in body.items() if key not in {"conversationId", "messageId"}}
        if message_id is not None:
            fields["id"] = message_id
        message = self._store(conversation_id, self.agent, fields, fingerprint=fingerprint)
        if message.final:
            self.logs.notifications.append({"conversationId": conversation_id, "messageId": message.id})
        return message, True

    def store_inbound(self, conversation_id: str, person: Person, fields: Json, payload: Json) -> DurableMessage:
        """Store a person's message and put it on the stream when it should be seen (canon-wire §6.1).

        ``fields`` are the message's fields, ``payload`` overrides keys of the event around it.
        """
        self.conversation({"conversationId": conversation_id})
        self.people.setdefault(person.id, person)
        return self._store(conversation_id, person, fields, payload=payload)

    def _store(
        self, conversation_id: str, person: Person, fields: Json, *, fingerprint: str = "", payload: Json | None = None
    ) -> DurableMessage:
        number = len(self.messages) + 1
        who = {"senderId": person.id, "senderName": person.name, "senderType": person.kind}
        wire = {"id": f"msg_{number}", **who, "contentType": "text", **fields}
        text = str(wire.get("text") or "")
        message = DurableMessage(str(wire["id"]), conversation_id, number, person.id, text, wire, fingerprint)
        self.messages.append(message)
        self._by_id.setdefault(message.id, message)
        self._emit_message(message, payload or {})
        return message

    def _emit_message(self, message: DurableMessage, payload: Json) -> None:
        own = message.sender_id == self.identity.agent_id
        if own and not self.policy.echo_own:
            return
        conversation = self.conversations[message.conversation_id]
        event: Json = {"conversationId": message.conversation_id, "conversation": conversation}
        event["message"] = deepcopy(message.fields)
        mentioned = self.identity.agent_id in as_list(message.fields.get("mentions"))
        kind = conversation.get("type")
        event["provenance"] = {"conversation": {"id": conversation["id"], "type": kind}, "mentionedAgent": mentioned}
        dispatch = self.policy.dispatch
        if not own and dispatch is not None and "turnDispatch" not in payload:
            control = str(message.metadata.get("type", "")).endswith(("_reply", "_outcome"))
            if dispatch == "run_turn" and not control and not wakes(message.fields):
                return
            if not control:
                event["turnDispatch"] = {"kind": dispatch}
        merged = {**event, **payload}
        self.events.append("message.created", {key: value for key, value in merged.items() if value is not None})

    # The ephemeral node ----------------------------------------------------------------------------------------------

    def write_node(self, body: Json) -> None:
        """Merge a streaming write, or delete the node and salvage what it held (canon-wire §1.10)."""
        conversation_id = self.conversation(body)
        self.logs.nodes.append(body)
        if body.get("streaming") is False:
            node = self.nodes.pop(conversation_id, None)
            if node is not None:
                self._salvage(conversation_id, node)
            return
        node = self.nodes.setdefault(conversation_id, {})
        node.update({key: value for key, value in body.items() if key != "conversationId"})
        if "blocks" in node:
            node["blocks"] = as_list(node["blocks"])[:MAX_BLOCKS]

    def _salvage(self, conversation_id: str, node: Json) -> None:
        blocks = as_list(node.get("blocks"))
        text, turn_id = node.get("text") or "", node.get("turnId")
        finished = any(m.final and m.metadata.get("turnId") == turn_id for m in self.messages if turn_id)
        if finished or not (text or blocks):
            return
        metadata: Json = {"turnSemantics": "progress", "turnId": turn_id, "salvaged": True}
        if blocks:
            metadata["turnTrail"] = blocks
        fields = {"text": text, "metadata": metadata}
        self._store(conversation_id, self.agent, fields).salvaged = True

    # Signals and receipts --------------------------------------------------------------------------------------------

    def set_signal(self, conversation_id: str, signal: str, user_id: str | None) -> None:
        """Leave a runtime signal and announce it (canon-wire §1.13)."""
        self.signals[conversation_id] = {"status": "signal", "signal": signal, "updatedBy": user_id}
        control = {"conversationId": conversation_id, "kind": "signal", "value": {"type": signal}}
        self.events.append("runtime.control", control)

    def take_signal(self, body: Json) -> Json:
        """Consume the conversation's signal."""
        signal = self.signals.pop(self.conversation(body), None) or {"status": "none"}
        return {key: value for key, value in signal.items() if value is not None}

    def set_disposition(self, conversation_id: str, message_id: str, body: Json) -> None:
        """Take a message off the queued shelf; idempotent (canon-wire §1.14)."""
        message = self._by_id.get(message_id)
        if message is None or message.conversation_id != conversation_id:
            raise RefusedError(404, "message not found")
        if body.get("inboundDisposition") != "accepted_now":
            raise RefusedError(400, "unknown inboundDisposition")
        message.fields.setdefault("metadata", {})["inboundDisposition"] = "accepted_now"
        self.logs.dispositions.append({"conversationId": conversation_id, "messageId": message_id, **body})


def wakes(message: Json) -> bool:
    """Whether a message wakes the agent when the server decides (canon-wire §6.5)."""
    marks = as_object(message.get("metadata"))
    if marks.get("replyBehavior") == "suppress_auto_reply":
        return False
    return message.get("senderType") == "human" or marks.get("turnSemantics") in {"turn_complete", "control"}


def _checked_send(body: Json) -> str | None:
    text, metadata, message_id = body.get("text"), body.get("metadata"), body.get("messageId")
    if not isinstance(text, str):
        raise RefusedError(400, "text must be a string")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise RefusedError(400, "text is not valid Unicode")
    if not text.strip() and not body.get("attachments"):
        raise RefusedError(400, "text is required without attachments")
    if len(text.encode("utf-8")) > MAX_TEXT_BYTES:
        raise RefusedError(400, f"text exceeds {MAX_TEXT_BYTES} UTF-8 bytes", "TEXT_TOO_LONG")
    if metadata is not None and not isinstance(metadata, dict):
        raise RefusedError(400, "metadata must be an object")
    if utf16_units(compact(as_object(metadata))) > MAX_METADATA_UNITS:
        raise RefusedError(400, f"metadata exceeds {MAX_METADATA_UNITS} UTF-16 units", "METADATA_TOO_LONG")
    if message_id is None:
        return None
    if not isinstance(message_id, str) or not message_id:
        raise RefusedError(400, "messageId must be a non-empty string")
    if len(message_id) > MAX_ID_CHARS or len(message_id.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES:
        raise RefusedError(400, f"messageId exceeds {MAX_ID_CHARS} characters", "MESSAGE_ID_TOO_LONG")
    return message_id


def new_token(prefix: str) -> str:
    """Return a fresh opaque id."""
    return f"{prefix}_{secrets.token_hex(8)}"
