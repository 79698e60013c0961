"""What the plugin says to Canon, one small Protocol per concern (canon-wire §1).

Every call is a coroutine of the event loop that owns the adapter. Failures are the errors of :mod:`.errors`; a call
that the contract marks *best effort* still raises: its caller decides to swallow. Instants are milliseconds since the
epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Json = Any
"""A decoded JSON value."""

JsonObject = Mapping[str, Any]

TurnState = Literal["thinking", "streaming", "tool", "waiting_input", "completed", "interrupted"]
NodeStatus = Literal["streaming", "thinking"]
TypingStatus = Literal["typing", "thinking"]
SignalKind = Literal["interrupt", "stop_and_drop", "new_session"]


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """Who the key belongs to (R3). Blank fields are ``None``."""

    agent_id: str | None
    owner_id: str | None = None
    display_name: str | None = None


@dataclass(frozen=True, slots=True)
class OutboundMessage:
    """One durable message (R5).

    Attributes:
        conversation_id: destination, never blank.
        text: at most 4,096 UTF-8 bytes; may be empty only with attachments.
        message_id: the adapter-owned idempotency key, at most 160 ASCII characters. Without one, a write is retried
            only when the previous attempt provably was not executed.
        reply_to: a real Canon message id.
        metadata: at most 4,096 UTF-16 units of compact JSON.
        content_type: ``image``, ``audio``, ``video`` or ``file`` with attachments, else ``None``.
        attachments: attachment objects as Canon's upload returned them.
    """

    conversation_id: str
    text: str
    message_id: str | None = None
    reply_to: str | None = None
    metadata: JsonObject = field(default_factory=dict[str, Any])
    content_type: str | None = None
    attachments: Sequence[JsonObject] = ()


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """Canon's receipt for a durable message."""

    message_id: str
    raw: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class NodeWrite:
    """A merge into the conversation's single ephemeral node (R9). ``blocks=None`` leaves its blocks untouched."""

    conversation_id: str
    turn_id: str
    text: str
    status: NodeStatus = "streaming"
    blocks: Sequence[JsonObject] | None = None


@dataclass(frozen=True, slots=True)
class TurnPublication:
    """A turn's public state (R11)."""

    conversation_id: str
    state: TurnState
    queue_depth: int
    updated_at: int
    capabilities: Mapping[str, bool]
    turn_id: str | None = None
    active_message_ids: tuple[str, ...] = ()
    opened_at: int | None = None


@dataclass(frozen=True, slots=True)
class RuntimeSignal:
    """A consumed runtime signal (R12). ``updated_by`` is the acting user when Canon names one."""

    kind: SignalKind
    updated_by: str | None = None


@dataclass(frozen=True, slots=True)
class Upload:
    """Bytes for R6, at most 10,485,760."""

    conversation_id: str
    data: bytes
    mime_type: str
    file_name: str | None = None


class MessageSink(Protocol):
    """Durable messages."""

    async def send(self, message: OutboundMessage) -> StoredMessage:
        """Store one message, retrying inside the contract's bounds (canon-wire §1.5).

        Raises:
            DeliveryError: with the verdict over all attempts.
        """
        ...


class NodePort(Protocol):
    """The ephemeral node: what viewers see while an answer grows. Never notifies, never persists."""

    async def write_node(self, write: NodeWrite) -> None:
        """Merge ``write`` into the node."""
        ...

    async def clear_node(self, conversation_id: str) -> None:
        """Delete the node. A non-empty node of a turn without a final is salvaged by Canon (canon-wire §1.10)."""
        ...


class TurnStatePort(Protocol):
    """Turn state and the runtime's descriptor."""

    async def publish_turn(self, publication: TurnPublication) -> None:
        """Publish a turn's state (R11)."""
        ...

    async def publish_status(self, descriptor: JsonObject) -> None:
        """Publish that this runtime is alive, with its descriptor (R10)."""
        ...


class TypingPort(Protocol):
    """The typing indicator (R8); idempotent."""

    async def set_typing(self, conversation_id: str, *, typing: bool, status: TypingStatus = "thinking") -> None:
        """Show or hide the indicator; ``status`` is sent only when showing."""
        ...


class DispositionPort(Protocol):
    """Receipts for inbound messages."""

    async def release_message(self, conversation_id: str, message_id: str) -> None:
        """Take a message off the queued shelf: ``accepted_now`` (R13); idempotent."""
        ...

    async def mark_read(self, conversation_id: str) -> None:
        """Mark the conversation as read (R14)."""
        ...


class SignalPort(Protocol):
    """Runtime signals (R12)."""

    async def consume_signal(self, conversation_id: str) -> RuntimeSignal | None:
        """Take the pending signal, or ``None``. Consuming is single use."""
        ...


class DirectoryPort(Protocol):
    """Who we are and which conversations we are in."""

    async def identify(self) -> AgentIdentity:
        """Return the key's identity (R3). Raises AuthenticationError on 401 and 403."""
        ...

    async def list_conversations(self) -> Sequence[JsonObject]:
        """Return the conversation objects (R4); items without an id are left out."""
        ...


class MediaPort(Protocol):
    """Outbound media."""

    async def upload(self, upload: Upload) -> JsonObject:
        """Store bytes and return Canon's attachment object (R6)."""
        ...


class VerbPort(Protocol):
    """The verb wire ``canon.verb-wire.v1`` (canon-wire §8)."""

    async def call_verb(self, verb: str, *, envelope: JsonObject, value: JsonObject) -> JsonObject:
        """Call ``verb`` once and return ``result.value``; any envelope mismatch is a MalformedResponseError."""
        ...


class InteractionPort(Protocol):
    """Runtime interactions: inputs, cards, approvals (R15, R16)."""

    async def create_interaction(self, body: JsonObject) -> JsonObject:
        """Create one and return the response object."""
        ...

    async def consume_interaction(self, body: JsonObject) -> JsonObject:
        """Consume or cancel one (``body["cancel"]``) and return the response object."""
        ...


class EnvironmentProbe(Protocol):
    """Proof that the configured addresses belong to the expected environment (R1, R2)."""

    async def verify(self) -> None:
        """Return when both addresses prove the identity.

        Raises:
            EnvironmentIdentityError: another environment answers (permanent).
            EnvironmentUnreachableError: nobody answers, or an unidentified 5xx (retryable).
        """
        ...


class CanonApi(
    MessageSink,
    NodePort,
    TurnStatePort,
    TypingPort,
    DispositionPort,
    SignalPort,
    DirectoryPort,
    MediaPort,
    VerbPort,
    InteractionPort,
    EnvironmentProbe,
    Protocol,
):
    """All of Canon's request side behind one connection."""

    async def close(self) -> None:
        """Release the connection pool; idempotent."""
        ...
