"""What taking in suppressed messages costs, against decoding the same bytes and doing nothing with them."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import httpx
import pytest
from canon_hermes_plugin.domain.inbound.claims import Claims
from canon_hermes_plugin.domain.inbound.cursor import CursorMark
from canon_hermes_plugin.domain.inbound.lanes import Lanes
from canon_hermes_plugin.domain.inbound.service import InboundPorts, InboundService
from canon_hermes_plugin.domain.media.captures import CaptureStore
from canon_hermes_plugin.domain.media.intake import MediaIntake
from canon_hermes_plugin.infrastructure.canon.sse import EventGuard, event_source
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaCache, MemoryMediaFetcher
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.ports.canon import AgentIdentity, RuntimeSignal
from canon_hermes_plugin.ports.canon_stream import StreamEvent
from canon_hermes_plugin.ports.host import InboundMessage
from httpx_sse import EventSource

pytestmark = pytest.mark.bench

MESSAGES = 25_000
CHUNK = 64 * 1024


def wire() -> bytes:
    frames: list[str] = []
    for number in range(MESSAGES):
        conversation = f"conv_{number % 50}"
        body = {
            "conversationId": conversation,
            "conversation": {"id": conversation, "type": "group", "name": "Ops", "memberIds": ["u1", "a1", "a2"]},
            "turnDispatch": {"kind": "record_only"},
            "provenance": {"conversation": {"id": conversation, "type": "group"}},
            "message": {
                "id": f"msg_{number}",
                "senderId": "agent_other",
                "senderName": "Otto",
                "senderType": "ai_agent",
                "contentType": "text",
                "text": "Some progress of about a hundred characters, as agents write it while they are at work on it.",
                "metadata": {"turnSemantics": "progress"},
            },
        }
        frames.append(f"id: evt_{number}\nevent: message.created\ndata: {json.dumps(body)}\n\n")
    return "".join(frames).encode()


class Nobody:
    """Every port at once; a suppressed message must reach none of them."""

    async def hand_over(self, message: InboundMessage) -> None:
        raise AssertionError(message.message_id)

    async def apply_signal(
        self, conversation_id: str, signal: Literal["interrupt", "stop_and_drop", "new_session"], user_id: str | None
    ) -> None:
        raise AssertionError(signal)

    async def consume_signal(self, conversation_id: str) -> RuntimeSignal | None:
        raise AssertionError(conversation_id)

    async def list_conversations(self) -> Sequence[Mapping[str, Any]]:
        return ()

    async def identify(self) -> AgentIdentity:
        return AgentIdentity("me")

    def set_cursor(self, cursor: str | None) -> None:
        raise AssertionError(cursor)

    async def offer(self, payload: Mapping[str, Any]) -> bool:
        raise AssertionError(payload.get("conversationId"))


def service() -> InboundService:
    nobody, clock = Nobody(), VirtualClock()
    media = MediaIntake(MemoryMediaFetcher(), MemoryMediaCache(), CaptureStore(clock.monotonic), clock)
    made = InboundService(InboundPorts(nobody, nobody, nobody, nobody, nobody, media))
    made.adopt_identity(AgentIdentity("me"))
    return made


async def chunks(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), CHUNK):
        await asyncio.sleep(0)  # as a socket would
        yield data[at : at + CHUNK]


async def decode_only(data: bytes) -> None:
    source = EventSource(httpx.Response(200, headers={"content-type": "text/event-stream"}, content=chunks(data)))
    seen = 0
    async for event in source.aiter_sse():
        json.loads(event.data)
        seen += 1
    assert seen == MESSAGES


async def take_in(data: bytes) -> None:
    handler, cursor = service(), CursorMark()
    lanes = Lanes(handler, Claims(), cursor)
    async for event in event_source(chunks(data), EventGuard(), lambda: None).aiter_sse():
        lanes.offer(StreamEvent(event.event, json.loads(event.data), event.id or None))
        if lanes.full:
            await lanes.room()
    await lanes.idle()
    await lanes.close()
    assert cursor.value == f"evt_{MESSAGES - 1}"
    assert handler.context_for("conv_0") is not None


async def seconds(run: Callable[[bytes], Awaitable[None]], data: bytes) -> float:
    gc.collect()
    start = time.process_time()
    await run(data)
    return time.process_time() - start


async def test_suppressed_messages_cost_at_most_twice_their_decoding() -> None:
    data = wire()
    pairs = [(await seconds(decode_only, data), await seconds(take_in, data)) for _ in range(4)]
    assert min(taken for _, taken in pairs) <= 2 * min(decoded for decoded, _ in pairs), pairs
