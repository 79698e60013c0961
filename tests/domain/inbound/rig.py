"""The inbound service with recording doubles around it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from canon_hermes_plugin.domain.inbound.service import InboundPorts, InboundService
from canon_hermes_plugin.domain.media.captures import CaptureStore
from canon_hermes_plugin.domain.media.intake import MediaIntake
from canon_hermes_plugin.domain.media.policy import Protection
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaCache, MemoryMediaFetcher
from canon_hermes_plugin.infrastructure.memory.receipts import MemoryReceipts
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.ports.canon import AgentIdentity, RuntimeSignal
from canon_hermes_plugin.ports.canon_stream import StreamEvent
from canon_hermes_plugin.ports.host import InboundMessage

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40


class World:
    """The service with recording doubles around it; every double keeps what it was told, in one common order."""

    def __init__(self, protection: Protection = "none") -> None:
        self.order: list[str] = []
        self.messages: list[InboundMessage] = []
        self.signals: list[tuple[str, str, str | None]] = []
        self.spared: list[set[str]] = []
        self.pending: dict[str, RuntimeSignal] = {}
        self.listed: list[Mapping[str, Any]] = []
        self.cursors: list[str | None] = []
        self.receipts = MemoryReceipts("hermes-1")
        self.failures: list[Exception] = []
        self.list_failure: Exception | None = None
        self.dropped_ones: list[tuple[str, str | None, bool]] = []
        self.fetcher = MemoryMediaFetcher()
        clock = VirtualClock()
        self.captures = CaptureStore(clock.monotonic)
        media = MediaIntake(self.fetcher, MemoryMediaCache(), self.captures, clock, protection)
        self.service = InboundService(InboundPorts(self, self, self, self, self.receipts, media, self))
        self.service.adopt_identity(AgentIdentity("me", "owner", "Otto"))

    async def hand_over(self, message: InboundMessage) -> None:
        self.order.append("hand_over")
        if self.failures:
            raise self.failures.pop()
        self.messages.append(message)

    def dropped(self, message: InboundMessage) -> None:
        self.order.append("dropped")
        self.dropped_ones.append((message.conversation_id, message.message_id, message.queued))

    async def apply_signal(
        self,
        conversation_id: str,
        signal: Literal["interrupt", "stop_and_drop", "new_session"],
        user_id: str | None,
        spare: Collection[str] = frozenset(),
    ) -> None:
        self.order.append("signal")
        self.spared.append(set(spare))
        self.signals.append((conversation_id, signal, user_id))

    async def consume_signal(self, conversation_id: str) -> RuntimeSignal | None:
        self.order.append("consume")
        return self.pending.pop(conversation_id, None)

    async def list_conversations(self) -> Sequence[Mapping[str, Any]]:
        self.order.append("list")
        if self.list_failure is not None:
            raise self.list_failure
        return self.listed

    async def identify(self) -> AgentIdentity:
        return AgentIdentity("me")

    def set_cursor(self, cursor: str | None) -> None:
        self.order.append("cursor")
        self.cursors.append(cursor)

    async def say(self, name: str, data: Any) -> None:
        await self.service.handle(StreamEvent(name, data))

    async def message(self, conversation: object = "c", **message: Any) -> None:
        extra = message.pop("payload", {})
        body = {"senderType": "human", "senderId": "u1", "text": "hi", **message}
        await self.say("message.created", {"conversationId": conversation, "message": body, **extra})
