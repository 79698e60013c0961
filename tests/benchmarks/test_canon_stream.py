"""What the stream costs beside its decoder alone: ratios and counts within one run."""

from __future__ import annotations

import asyncio
import json
import time

import httpx
import pytest
from canon_hermes_plugin.domain.inbound.service import InboundPorts, InboundService
from canon_hermes_plugin.domain.media.captures import CaptureStore
from canon_hermes_plugin.domain.media.intake import MediaIntake
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.canon.sse import EventGuard, event_source
from canon_hermes_plugin.infrastructure.canon.stream import CanonSse
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaCache, MemoryMediaFetcher
from canon_hermes_plugin.infrastructure.memory.time import SeededIds, VirtualClock
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.infrastructure.system import SystemClock, SystemIds
from canon_hermes_plugin.ports.canon import AgentIdentity
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret
from httpx_sse import EventSource

pytestmark = pytest.mark.bench

CHUNK = 64 * 1024
HEADERS = {"content-type": "text/event-stream"}
ENVIRONMENT = Environment("canon-dev-v1", "p", "https://api.x", "https://stream.x", "http://localhost:9", "k")


class Body(httpx.AsyncByteStream):
    def __init__(self, raw, forever=False):
        self.chunks = [raw[at : at + CHUNK] for at in range(0, len(raw), CHUNK)]
        self.forever = forever

    async def __aiter__(self):
        for chunk in self.chunks:
            yield chunk
        if self.forever:
            await asyncio.Event().wait()


async def decoder_alone(raw, payload=lambda text: text):
    """Read ``raw`` by httpx-sse and nothing else; return seconds."""
    source = EventSource(httpx.Response(200, headers=HEADERS, stream=Body(raw)))
    start = time.process_time()
    async for event in source.aiter_sse():
        if event.data:
            payload(event.data)
    return time.process_time() - start


async def guarded(raw):
    response = httpx.Response(200, headers=HEADERS, stream=Body(raw))
    start = time.process_time()
    async for _ in event_source(response.aiter_bytes(), EventGuard(), lambda: None).aiter_sse():
        pass
    return time.process_time() - start


async def best(rounds, *ways):
    """Return the fastest of ``rounds`` interleaved runs of each way."""
    seen = [[await way() for way in ways] for _ in range(rounds)]
    return [min(column) for column in zip(*seen, strict=True)]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
async def test_a_four_mebibyte_event_decodes_within_three_times_the_decoder_alone(newline, record_property):
    text = json.dumps({"text": "wört " * (4 * 1024 * 1024 // 6)}, ensure_ascii=False)
    raw = b"id: e1\nevent: m\ndata: " + text.encode() + b"\n\n"
    raw = raw.replace(b"\n", newline)
    alone, ours = await best(7, lambda: decoder_alone(raw), lambda: guarded(raw))
    record_property("ratio", ours / alone)
    assert ours <= 3 * alone


def suppressed(count, conversations, verdict):
    """Messages that wake nobody, by Canon's verdict or by the local rule, as the stream carries them."""
    frames = []
    for n in range(count):
        conversation = f"conv_{n % conversations}"
        payload = {
            "conversationId": conversation,
            "conversation": {
                "id": conversation,
                "type": "group",
                "name": "Ops",
                "memberIds": ["user_d", "agent_self", "user_e"],
            },
            **verdict,
            "provenance": {"conversation": {"id": conversation, "type": "group"}, "mentionedAgent": False},
            "behavior": {"participation": {"maxConsecutiveAgentTurns": 4}},
            "message": {
                "id": f"msg_{n}",
                "senderId": "user_d",
                "senderName": "Dana",
                "senderType": "ai_agent",
                "contentType": "text",
                "text": f"Message {n}: the supplier answered, and the invoice can be filed on Thursday.",
                "metadata": {"turnSemantics": "progress"},
            },
        }
        frames.append(f"id: evt_{n}\nevent: message.created\ndata: {json.dumps(payload)}\n\n")
    return "".join(frames).encode()


class NoShelf:
    def dropped(self, message):
        raise AssertionError("nothing is stopped")


class NoReceipts:
    async def offer(self, payload):
        return False


class Inbox:
    def __init__(self):
        self.taken = 0

    async def hand_over(self, message):
        self.taken += 1

    async def apply_signal(self, conversation_id, signal, user_id, spare=frozenset()):
        raise AssertionError("no signal expected")


async def taken_in(raw, count):
    """Read ``raw`` through the whole intake: stream, claims, lanes and the inbound service; return seconds."""
    transport = httpx.MockTransport(lambda request: httpx.Response(200, headers=HEADERS, stream=Body(raw, True)))
    link = CanonLink(Connection(Secret("agk_k"), ENVIRONMENT, "direct", "t"), clock=SystemClock(), transport=transport)
    stream, canon, inbox, clock = CanonSse(link, SeededIds()), MemoryCanon(), Inbox(), VirtualClock()
    media = MediaIntake(MemoryMediaFetcher(), MemoryMediaCache(), CaptureStore(clock.monotonic), clock)
    service = InboundService(InboundPorts(inbox, canon, canon, stream, NoReceipts(), media, NoShelf()))
    service.adopt_identity(AgentIdentity("agent_self"))
    start = time.process_time()
    running = asyncio.ensure_future(stream.run(service))
    while stream.health().cursor != f"evt_{count - 1}":
        await asyncio.sleep(0)
    seconds = time.process_time() - start
    await stream.stop()
    await running
    assert inbox.taken == 0
    return seconds


@pytest.mark.parametrize("verdict", [{"turnDispatch": {"kind": "background"}}, {}], ids=["verdict", "rule"])
@pytest.mark.parametrize("conversations", [1, 64])
async def test_25_000_suppressed_messages_are_taken_in_within_twice_the_time_of_decoding_them(
    conversations, verdict, record_property
):
    raw = suppressed(25_000, conversations, verdict)
    alone, ours = await best(5, lambda: decoder_alone(raw, json.loads), lambda: taken_in(raw, 25_000))
    record_property("ratio", ours / alone)
    assert ours <= 2 * alone


async def test_h38_a_server_that_closes_at_once_really_sees_at_most_twenty_connections_in_twenty_seconds(
    record_property,
):
    with LoopbackCanon() as canon:
        canon.fault("stream", kind="end", times=None)
        identity, base = canon.identity, canon.base_url
        environment = Environment(identity.environment_id, identity.project_id, base, base, "http://localhost:9", "k")
        link = CanonLink(Connection(Secret(identity.api_key), environment, "direct", "t"), clock=SystemClock())
        stream = CanonSse(link, SystemIds())
        running = asyncio.ensure_future(stream.run(InboundServiceStub()))
        await asyncio.sleep(20)
        await stream.stop()
        await running
        await link.close()
        seen = sum(request.route == "stream" for request in canon.state.requests)
    record_property("connections", seen)
    assert 3 <= seen <= 20


class InboundServiceStub:
    def lane(self, event):
        return None

    async def handle(self, event):
        raise AssertionError("nothing arrives")
