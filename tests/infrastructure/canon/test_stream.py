"""Connecting, dying, and connecting again (canon-wire §5)."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import httpx
import pytest
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.canon.stream import CanonSse, StreamOptions, usable_id
from canon_hermes_plugin.infrastructure.memory.time import SeededIds, VirtualClock, settle
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.infrastructure.system import SystemClock, SystemIds
from canon_hermes_plugin.ports.canon_stream import StreamState
from canon_hermes_plugin.ports.errors import AuthenticationError
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret


class Handler:
    def __init__(self):
        self.taken = []

    def lane(self, event):
        return None

    async def handle(self, event):
        self.taken.append(event)

    def names(self):
        return [event.name for event in self.taken]

    def texts(self):
        return [event.data["message"]["text"] for event in self.taken if event.name == "message.created"]


def frame(event_id, name="m", data="1"):
    return f"id: {event_id}\nevent: {name}\ndata: {data}\n\n".encode()


class Server:
    """Plays one script of chunks, exceptions or statuses per connection; the last one repeats."""

    def __init__(self, *connections, content_type="text/event-stream"):
        self.connections = list(connections)
        self.content_type = content_type
        self.requests = []

    async def __call__(self, request):
        self.requests.append(request)
        script = self.connections.pop(0) if len(self.connections) > 1 else self.connections[0]
        if isinstance(script, type):
            raise script("no", request=request)
        if isinstance(script, httpx.Response):
            return script

        class Body(httpx.AsyncByteStream):
            async def __aiter__(self):
                for step in script:
                    if step is None:
                        await asyncio.Event().wait()
                    if isinstance(step, type):
                        raise step("no", request=request)
                    yield step

        return httpx.Response(200, headers={"content-type": self.content_type}, stream=Body())

    def cursors(self):
        return [request.headers.get("last-event-id") for request in self.requests]


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
async def play(connect_to, clock):
    """Run a stream against scripted connections: ``play(...) -> (stream, server, handler, running)``."""
    running = []

    def start(*connections, handler=None, options=None, jitter=None, **server_options):
        server, handler = Server(*connections, **server_options), handler or Handler()
        link = CanonLink(connect_to(), clock=clock, transport=httpx.MockTransport(server))
        ids = SeededIds()
        if jitter is not None:
            ids = SimpleNamespace(jitter=lambda: jitter)
        stream = CanonSse(link, ids, options)
        running.append((stream, asyncio.ensure_future(stream.run(handler))))
        return stream, server, handler, running[-1][1]

    yield start
    for stream, task in running:
        await stream.stop()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_request_names_its_events_and_carries_no_cursor_at_first(play, key):
    _, server, handler, _ = play([frame("e1"), None])
    await settle()
    (request,) = server.requests
    assert str(request.url) == (
        "https://stream.canon.example/agents/stream?events=messages%2Ccontacts%2Ctyping_presence%2Cruntime_turn%2Cvoice"
    )
    assert request.headers["authorization"] == f"Bearer {key}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept"] == "text/event-stream"
    assert "last-event-id" not in request.headers
    assert handler.names() == ["m"]


async def test_defect_4_connecting_and_silence_are_bounded(play):
    _, server, _, _ = play([None])
    await settle()
    timeout = server.requests[0].extensions["timeout"]
    assert timeout["read"] >= 90
    assert 0 < timeout["connect"] <= 30


async def test_a_reconnect_asks_after_the_last_event_that_was_handed_over(play, clock):
    _, server, handler, _ = play([frame("e1"), frame("e2")], [frame("e2"), frame("e3"), None])
    await clock.advance(3)
    assert server.cursors() == [None, "e2"]
    assert [event.event_id for event in handler.taken] == ["e1", "e2", "e3"]


async def test_field_67_nothing_is_asked_for_that_happened_before_this_process_unless_it_is_told_a_place(play, clock):
    stream, server, _, running = play([None], [None])
    await settle()
    await stream.stop()
    await running
    stream.set_cursor("e41")
    again = asyncio.ensure_future(stream.run(Handler()))
    await settle()
    assert server.cursors() == [None, "e41"]
    await stream.stop()
    await again


async def test_field_63_an_event_that_could_not_be_handed_over_is_asked_for_again(play, clock):
    class Failing(Handler):
        left = 2

        async def handle(self, event):
            if event.event_id == "e2" and self.left:
                self.left -= 1
                raise OSError
            await super().handle(event)

    _, server, handler, _ = play(
        [frame("e1"), frame("e2"), frame("e3")], [frame("e2"), frame("e3"), None], handler=Failing()
    )
    await clock.advance(3)
    assert server.cursors() == [None, "e1"]
    assert [event.event_id for event in handler.taken] == ["e1", "e3", "e2"]


async def test_defect_1_field_77_a_clean_end_at_once_is_not_reconnected_at_once(play, clock):
    _, server, _, _ = play([])
    await clock.advance(20)
    assert 3 <= len(server.requests) <= 20


async def test_h38_even_a_server_that_lives_for_one_heartbeat_sees_at_most_twenty_connections_in_twenty_seconds(
    play, clock
):
    _, server, _, _ = play([b": hi\n\n"])
    await clock.advance(20)
    assert 5 <= len(server.requests) <= 20


@pytest.mark.parametrize("failure", [httpx.ConnectError, httpx.ReadTimeout, httpx.Response(500), httpx.Response(404)])
async def test_failures_are_retried_with_growing_pauses(play, clock, failure):
    stream, server, _, running = play(failure)
    await clock.advance(60)
    early = len(server.requests)
    await clock.advance(600)
    assert 3 <= early <= 12
    assert len(server.requests) - early >= 15
    assert not running.done()
    assert stream.health().state is StreamState.WAITING


async def test_defect_2_a_heartbeat_resets_the_pause(play, clock):
    _, server, _, _ = play(*[httpx.ConnectError] * 6, [b": hi\n\n", httpx.ReadError], [None], jitter=0.99)
    while len(server.requests) < 7:
        await clock.advance(1)
    await clock.advance(2)
    assert len(server.requests) == 8, "six failures in a row would have meant a pause of up to 30 s"


@pytest.mark.parametrize("status", [401, 403])
async def test_defect_3_a_refused_key_ends_the_stream(play, status):
    stream, server, _, running = play(httpx.Response(status, json={"error": "no"}))
    with pytest.raises(AuthenticationError) as failure:
        await asyncio.wait_for(running, 5)
    assert failure.value.status_code == status
    assert failure.value.__context__ is None
    assert len(server.requests) == 1
    assert stream.health().state is StreamState.UNAUTHORIZED


async def test_a_refusal_with_retry_after_is_honoured(play, clock):
    _, server, _, _ = play(httpx.Response(429, headers={"retry-after": "25"}), [None])
    await clock.advance(24)
    assert len(server.requests) == 1
    await clock.advance(2)
    assert len(server.requests) == 2


async def test_field_80_a_dead_connection_is_replaced(play, clock):
    stream, server, _, _ = play([frame("e1"), httpx.ReadTimeout], [None])
    await clock.advance(3)
    assert server.cursors() == [None, "e1"]
    assert stream.health().state is StreamState.LIVE


async def test_an_answer_that_is_no_event_stream_is_a_failure(play, clock):
    stream, server, handler, _ = play([frame("e1")], content_type="text/html")
    await clock.advance(5)
    assert handler.taken == []
    assert len(server.requests) >= 2
    assert stream.health().state is StreamState.WAITING


async def test_an_event_without_name_or_data_is_dropped_and_still_moves_the_cursor(play, clock):
    _, server, handler, _ = play([b'id: e1\ndata: {"no":"name"}\n\nid: e2\nevent: nodata\n\nid: e3\n\n'], [None])
    await clock.advance(3)
    assert handler.taken == []
    assert server.cursors() == [None, "e3"]


async def test_a_payload_that_is_not_json_arrives_as_its_raw_string(play):
    _, _, handler, _ = play([frame("e1", data="not json"), frame("e2", data="[" * 50_000), None])
    await settle()
    assert [type(event.data) for event in handler.taken] == [str, str]


async def test_a_large_payload_arrives_decoded(play):
    text = "x" * 3_000_000
    _, _, handler, _ = play([frame("e1", data=json.dumps({"t": text})), frame("e2"), None])
    async with asyncio.timeout(20):
        while len(handler.taken) < 2:
            await asyncio.sleep(0.005)
    assert handler.taken[0].data == {"t": text}
    assert [event.event_id for event in handler.taken] == ["e1", "e2"]


async def test_an_oversized_event_does_not_harm_the_next_one(play, clock):
    options = StreamOptions(max_event_bytes=1000)
    _, server, handler, _ = play([frame("e1", data="x" * 5000), frame("e2")], [None], options=options)
    await clock.advance(3)
    assert [event.event_id for event in handler.taken] == ["e2"]
    assert server.cursors() == [None, "e2"]


async def test_a_server_may_ask_for_a_longer_pause_within_bounds(play, clock):
    _, server, _, _ = play([b"retry: 20000\n\n"], [None])
    await clock.advance(19)
    assert len(server.requests) == 1
    await clock.advance(12)
    assert len(server.requests) == 2


async def test_replay_expired_replaces_the_cursor_even_when_it_carries_its_own_id(play, clock):
    _, server, _, _ = play(
        [frame("e1"), frame("zz", "replay.expired", '{"lastAvailableId":"e900"}')],
        [frame("zz", "replay.expired", "{}")],
        [None],
    )
    await clock.advance(8)
    assert server.cursors() == [None, "e900", None]


@pytest.mark.parametrize("event_id", ["", None, " e1", "e1 ", "a\x01", "a\u2028b", "x" * 513, "a\x7f"])
def test_an_id_that_cannot_stand_in_a_header_never_becomes_the_cursor(event_id):
    assert usable_id(event_id) is None


@pytest.mark.parametrize("event_id", ["e1", "a b", "évt", "x" * 512])
async def test_a_usable_id_travels_back_as_utf_8(play, clock, event_id):
    assert usable_id(event_id) == event_id
    _, server, _, _ = play([frame(event_id)], [None])
    await clock.advance(3)
    assert dict(server.requests[1].headers.raw)[b"Last-Event-ID"] == event_id.encode()


async def test_field_82_an_error_followed_by_a_close_opens_one_connection_at_a_time(connect_to, clock):
    open_now, most = 0, 0

    async def answer(request):
        class Body(httpx.AsyncByteStream):
            async def __aiter__(self):
                nonlocal open_now, most
                open_now += 1
                most = max(most, open_now)
                yield frame("e1", "error", "{}")
                raise httpx.ReadError("no", request=request)

            async def aclose(self):
                nonlocal open_now
                open_now -= 1

        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())

    stream = CanonSse(CanonLink(connect_to(), clock=clock, transport=httpx.MockTransport(answer)), SeededIds())
    running = asyncio.ensure_future(stream.run(Handler()))
    await clock.advance(60)
    assert stream.health().attempts > 3
    assert most == 1
    await stream.stop()
    await running


async def test_back_pressure_stops_reading_and_nothing_is_lost(play):
    class Slow(Handler):
        gate = asyncio.Event()

        async def handle(self, event):
            await self.gate.wait()
            await super().handle(event)

    read = []

    def chunks():
        for n in range(100):
            read.append(n)
            yield frame(f"e{n}")
        yield None

    _, _, handler, _ = play(chunks(), handler=Slow(), options=StreamOptions(max_queued=10))
    await settle(300)
    assert len(read) <= 15
    Slow.gate.set()
    await settle(600)
    assert len(handler.taken) == 100


async def test_who_stops_the_stream_and_cancels_its_task_still_gets_the_lanes_closed(play):
    """The runtime does both at once: no worker may stay behind, and no event may keep its claim."""

    class Stuck(Handler):
        async def handle(self, event):
            await asyncio.Event().wait()

    stream, _, _, running = play([frame("e1"), frame("e2"), None], handler=Stuck())
    await settle(50)
    stopping = asyncio.ensure_future(stream.stop())
    while not stopping.done():
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("canon-")] == []


# On a real socket ----------------------------------------------------------------------------------------------------


@pytest.fixture
async def loopback():
    """The loopback Canon, a stream connected to it, and its handler."""
    with LoopbackCanon(heartbeat=0.05) as canon:
        identity, base = canon.identity, canon.base_url
        environment = Environment(identity.environment_id, identity.project_id, base, base, "http://localhost:9", "k")
        link = CanonLink(Connection(Secret(identity.api_key), environment, "direct", "test"), clock=SystemClock())
        stream, handler = CanonSse(link, SystemIds(), StreamOptions(watchdog=0.5)), Handler()
        canon.stream, canon.handler = stream, handler
        canon.running = asyncio.ensure_future(stream.run(handler))
        yield canon
        await stream.stop()
        await asyncio.gather(canon.running, return_exceptions=True)
        await link.close()


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def test_messages_survive_a_reset_of_a_real_connection_once_each(loopback):
    await until(lambda: loopback.stream.health().last_byte_at is not None)
    loopback.say("conv_direct", "user_dana", "one")
    await until(lambda: loopback.handler.texts() == ["one"])
    loopback.cut_stream()
    loopback.say("conv_direct", "user_dana", "two")
    await until(lambda: len(loopback.handler.texts()) == 2)
    loopback.cut_stream(clean=True)
    loopback.say("conv_direct", "user_dana", "three")
    await until(lambda: len(loopback.handler.texts()) == 3)
    assert loopback.handler.texts() == ["one", "two", "three"]


async def test_field_80_a_silent_socket_is_noticed_and_replaced(loopback):
    await until(lambda: loopback.stream.health().last_byte_at is not None)
    loopback.set_silent(True)
    loopback.say("conv_direct", "user_dana", "into the void")
    await until(lambda: loopback.stream.health().attempts >= 2)
    loopback.set_silent(False)
    await until(lambda: loopback.handler.texts() == ["into the void"])


async def test_heartbeats_keep_a_quiet_connection_alive(loopback):
    await until(lambda: loopback.stream.health().last_byte_at is not None)
    first = loopback.stream.health().last_byte_at
    await until(lambda: loopback.stream.health().last_byte_at > first + 1.0)
    assert loopback.stream.health().attempts == 1
