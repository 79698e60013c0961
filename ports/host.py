"""What crosses between the domain and the agent host."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

ConversationKind = Literal["direct", "group", "unknown"]
DeliveryIntent = Literal["queue", "interrupt", "interleave", "stop"]
MessageKind = Literal["text", "command", "photo", "video", "audio", "voice", "document"]


@dataclass(frozen=True, slots=True)
class LocalMedia:
    """One attachment the host may read: an absolute local path and its MIME type."""

    path: str
    mime_type: str


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """One admitted message, ready to become a turn (turns §1.5, §1.6).

    Attributes:
        conversation_id: Canon conversation, never blank.
        text: what the model reads; never blank unless media is present.
        chat_kind: ``group`` or ``direct``; one resolver decides it for session key, prompt and verbosity.
        chat_name: the conversation's display name, untrusted.
        user_id: the triggering human; ``None`` for agents, signals and wakes: nothing is routed to them as a human.
        user_name: display name of the sender, untrusted.
        message_id: the real Canon message id, ``None`` for synthetic messages.
        reply_to: the Canon message the sender replied to.
        kind: the host's message type.
        intent: what to do when the session is busy; ``None`` means queue.
        channel_prompt: posture for groups, ``None`` in direct conversations.
        media: attachments on the model's path.
        queued: the message lies on the sender's queued shelf and must be released when it starts.
        synthetic: made by the plugin (control signal, approval wake), not written by a person or agent.
        raw: the whole payload.
    """

    conversation_id: str
    text: str
    chat_kind: Literal["direct", "group"] = "direct"
    chat_name: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    message_id: str | None = None
    reply_to: str | None = None
    kind: MessageKind = "text"
    intent: DeliveryIntent | None = None
    channel_prompt: str | None = None
    media: tuple[LocalMedia, ...] = ()
    queued: bool = False
    synthetic: bool = False
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any])


class HostInbox(Protocol):
    """Where admitted messages and control signals go."""

    async def hand_over(self, message: InboundMessage) -> None:
        """Take ``message``: start its turn now or keep it for one. Returning means it will not be lost.

        Messages of one session become turns one after another, in the order they came, none merged with another.
        Sessions never wait for each other. What does not fit into a busy session is refused visibly.

        Raises:
            ValueError: a blank conversation id (field row 22).
            CanonError: retryable; not taken: the host is between connections, or a synthetic message does not fit.
        """
        ...

    async def apply_signal(
        self,
        conversation_id: str,
        signal: Literal["interrupt", "stop_and_drop", "new_session"],
        user_id: str | None,
        spare: Collection[str] = frozenset(),
    ) -> None:
        """Apply a consumed runtime signal to every open turn ``user_id`` may stop (turns §2.6, H29).

        That is every turn of the conversation for its owner and for nobody in particular (``None``); for anybody else
        their own, or every one when they have none. ``interrupt`` keeps what waits, ``stop_and_drop`` drops and
        releases what people wrote of it, ``new_session`` begins the sessions anew: the sender's, where nothing runs.

        Messages whose ids are in ``spare`` came after the signal: they are neither dropped nor interrupted, and their
        session is not begun anew while they run. The collection may grow until this returns.
        """
        ...

    def waiting(self) -> frozenset[str]:
        """Return the ids of the messages that would be lost with this process.

        They were taken, and their turn has not begun, or the host has not written them into its own history yet; or
        they joined a turn that still runs.
        """
        ...


class HostLanes(Protocol):
    """What a turn needs to know and steer about its host session. Synchronous, called on the gateway loop."""

    def pause_typing(self, conversation_id: str) -> None:
        """Stop the host's typing refresh while a human is asked."""
        ...

    def resume_typing(self, conversation_id: str) -> None:
        """Let the host refresh typing again."""
        ...

    def queue_depth(self, session_key: str) -> int:
        """Messages waiting behind the running one."""
        ...

    def supports_interleave(self) -> bool:
        """Whether a running turn can take in another message."""
        ...


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """The host's task-local provenance of the running turn, normalised (interactions §2). Blank is ``None``."""

    platform: str | None = None
    conversation_id: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    session_id: str | None = None
    session_key: str | None = None
    message_id: str | None = None


class SessionContext(Protocol):
    """Reads the host's provenance of the calling task or thread."""

    def snapshot(self) -> SessionSnapshot:
        """Return what the host says about the running turn; an unreadable context gives an empty snapshot."""
        ...
