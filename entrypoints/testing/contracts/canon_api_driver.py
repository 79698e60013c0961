"""What the suite of Canon's request side drives, and the values it sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from canon_hermes_plugin.ports.canon import CanonApi, OutboundMessage, SignalKind
from canon_hermes_plugin.testing.contracts.base import Driver

CHAT = "conv_direct"
"""The direct conversation with ``user_dana`` that a driver's Canon has; ``conv_group`` is the other one."""
FINAL = {"turnSemantics": "turn_complete", "turnComplete": True, "turnId": "hermes-1"}


class CanonApiDriver(Driver, Protocol):
    """The subject and the Canon behind it.

    Attributes:
        api: the subject.
        agent_id: who its key belongs to.
    """

    api: CanonApi
    agent_id: str

    def stored(self) -> Sequence[tuple[str, Any]]:
        """Return text and ``turnSemantics`` of each of the agent's durable messages."""
        ...

    def notified(self) -> int:
        """Return how many messages notified somebody."""
        ...

    def node(self) -> tuple[str, Sequence[Any]] | None:
        """Return text and blocks of the ephemeral node."""
        ...

    def signal(self, signal: SignalKind, user_id: str) -> None:
        """Leave a runtime signal."""
        ...

    def refuse(self, status: int) -> None:
        """Let the next send be refused with ``status``."""
        ...

    def break_down(self) -> None:
        """Let every attempt of the next send fail with 500 and without effect."""
        ...

    def lose_answer(self) -> None:
        """Let the next send take effect and its answers get lost."""
        ...

    def queued_message(self) -> str:
        """Put a person's message on the queued shelf; return its id."""
        ...

    def released(self) -> Sequence[str]:
        """Return the ids of released messages."""
        ...

    def read(self) -> Sequence[str]:
        """Return the conversations that were marked as read."""
        ...

    def indicator(self) -> Mapping[str, Any] | None:
        """Return what the typing indicator shows: ``typing`` and, only with it, ``status``."""
        ...

    def published(self) -> Sequence[Mapping[str, Any]]:
        """Return ``state``, ``queueDepth``, ``turnId`` and ``activeMessageIds`` of each published turn state."""
        ...

    def descriptors(self) -> Sequence[Mapping[str, Any]]:
        """Return the runtime descriptors that were published."""
        ...

    def answer(self, approval_id: str, status: str) -> None:
        """Let the responder of an approval decide."""
        ...

    def verbs(self) -> Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
        """Return verb, envelope and value of each verb call that took effect."""
        ...

    def break_verb(self) -> None:
        """Let the next verb call fail with 500."""
        ...

    def garble_verb(self) -> None:
        """Let the next verb call be answered with 2xx and with something that is no answer to it."""
        ...

    def revoke(self, status: int) -> None:
        """Let Canon refuse the key with ``status`` (401 or 403) when it is asked who it belongs to."""
        ...

    def list_nameless(self) -> None:
        """Put an object without an id among the conversations."""
        ...

    def impersonate(self) -> None:
        """Let another environment answer, to clients that have not proven it yet."""
        ...

    def vanish(self, status: int | None) -> None:
        """Let nobody answer there (``None``), or something with ``status`` and without an identity."""
        ...


def message(text: str = "hello", message_id: str = "m-1") -> OutboundMessage:
    """Return a final message."""
    return OutboundMessage(CHAT, text, message_id, metadata=FINAL)


def approval(identifier: str = "hermes-00112233445566778899", **more: object) -> dict[str, Any]:
    """Return the body of an approval request."""
    return {
        "interactionKind": "approval",
        "conversationId": CHAT,
        "approvalId": identifier,
        "toolName": "File invoice",
        "toolSummary": "File it?",
        "expiresAt": 4_000_000_000_000,
        "category": "command",
        "risk": "high",
        "riskLevel": "destructive",
        "allowSessionRule": False,
        **more,
    }


def key_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a request's body that names it."""
    return {name: body[name] for name in ("interactionKind", "conversationId", "approvalId")}
