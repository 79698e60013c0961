"""A network that loses, delays, doubles and swaps, between the real adapters and the loopback Canon's store."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field

import httpx
from canon_hermes_plugin.infrastructure.sandbox.events import Abort, EventLog, Reader
from canon_hermes_plugin.infrastructure.sandbox.interactions import InteractionDesk
from canon_hermes_plugin.infrastructure.sandbox.media import MediaShelf
from canon_hermes_plugin.infrastructure.sandbox.records import SandboxIdentity
from canon_hermes_plugin.infrastructure.sandbox.registration import RegistrationDesk
from canon_hermes_plugin.infrastructure.sandbox.routes import Desks, build_app
from canon_hermes_plugin.infrastructure.sandbox.state import CanonState
from canon_hermes_plugin.infrastructure.sandbox.verbs import VerbDesk
from canon_hermes_plugin.infrastructure.sandbox.wire import Wire

HEARTBEAT = 15.0
MOST_IN_A_ROW = 5
"""Faults one request meets in a row."""
HARMLESS = ["refused", "503"]
"""Faults that prove the request did nothing: a message that meets three of them in a row is given up, rightly."""
FATES = ["cut", "late", "twice", "swapped", "split", "half open"]
"""What can happen to a frame of the stream."""
HARMFUL = ["500", "lost", "late 502", "late reset", "twice"]


@dataclass
class Weather:
    """How bad the network is; probabilities per request or per frame. ``calm()`` ends all of it."""

    trouble: float = 0.0
    slow: float = 0.0
    frame_trouble: float = 0.0
    seen: set[str] = field(default_factory=set)

    def calm(self) -> None:
        self.trouble = self.slow = self.frame_trouble = 0.0


@dataclass
class Server:
    """The loopback Canon without its socket."""

    now_ms: object
    state: CanonState = field(init=False)
    begun: dict[str, dict] = field(default_factory=dict)
    """Every durable message a living process began to send, by id, whatever became of the request."""

    def __post_init__(self) -> None:
        self.state = CanonState(SandboxIdentity(), self.now_ms)
        self.interactions = InteractionDesk(self.state)
        desks = Desks(MediaShelf(), self.interactions, VerbDesk(self.state), RegistrationDesk(self.state))
        self.app = httpx.ASGITransport(build_app(Wire(self.state), desks))


class Network(httpx.AsyncBaseTransport):
    """One process's way to the server; ``cut`` ends it for good."""

    def __init__(self, server: Server, weather: Weather, rng: random.Random) -> None:
        self._server = server
        self._weather = weather
        self._rng = rng
        self._in_a_row: Counter[str] = Counter()
        self.cut = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._check()
        if request.url.path.endswith("/agents/stream"):
            return await self._stream(request)
        if self._rng.random() < self._weather.slow:
            self._weather.seen.add("slow")
            await asyncio.sleep(self._rng.uniform(0.01, 4.0))
            self._check()
        return await self._exchange(request)

    def _check(self) -> None:
        if self.cut:
            raise httpx.ConnectError("the process is dead")

    async def _exchange(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        if request.url.path.endswith("/messages/send"):
            message = json.loads(body)
            self._server.begun[message["messageId"]] = message
        key = f"{request.url.path}:{hash(body)}"
        if self._in_a_row[key] >= MOST_IN_A_ROW or self._rng.random() >= self._weather.trouble:
            self._in_a_row.pop(key, None)
            return await self._server.app.handle_async_request(request)
        self._in_a_row[key] += 1
        kind = self._rng.choice(HARMFUL if self._in_a_row[key] > 2 else HARMLESS + HARMFUL)
        self._weather.seen.add(kind)
        if kind == "refused":
            raise httpx.ConnectError("refused")
        if kind in {"503", "500"}:
            return httpx.Response(int(kind), json={"error": "injected", "code": "INJECTED"})
        answer = await self._server.app.handle_async_request(request)
        if kind == "twice":  # a proxy repeats the request
            return await self._server.app.handle_async_request(request)
        if kind == "late 502":
            return httpx.Response(502, text="<html>bad gateway</html>")
        await answer.aread()
        raise httpx.ReadTimeout("lost") if kind == "lost" else httpx.RemoteProtocolError("reset")

    async def _stream(self, request: httpx.Request) -> httpx.Response:
        if self._rng.random() < self._weather.frame_trouble:
            return httpx.Response(self._rng.choice([500, 503]), text="down")
        patience = request.extensions["timeout"]["read"]
        frames = Frames(self, self._server.state.events, request.headers.get("last-event-id"), patience)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=frames)

    def fate(self) -> str:
        """What happens to the next frame."""
        if self.cut:
            return "cut"
        if self._rng.random() >= self._weather.frame_trouble:
            return "arrives"
        fate = self._rng.choice(FATES)
        self._weather.seen.add(fate)
        return fate

    def delay(self) -> float:
        return self._rng.uniform(0.05, 20.0)


class Frames(httpx.AsyncByteStream):
    """The body of one stream connection."""

    def __init__(self, network: Network, log: EventLog, cursor: str | None, patience: float) -> None:
        self._network, self._log, self._cursor, self._patience = network, log, cursor, patience

    async def __aiter__(self):
        reader = Reader(asyncio.get_running_loop())
        self._log.open(reader, self._cursor)
        try:
            while True:
                item = await self._next(reader)
                if isinstance(item, Abort):
                    if item.clean:
                        return
                    raise httpx.ReadError("reset")
                async for piece in self._suffer(item, reader):
                    yield piece
        finally:
            self._log.close(reader)

    async def _next(self, reader: Reader) -> bytes | Abort:
        try:
            async with asyncio.timeout(HEARTBEAT):
                return await reader.queue.get()
        except TimeoutError:
            return Abort(clean=False) if self._network.cut else b": heartbeat\n\n"

    async def _suffer(self, frame: bytes, reader: Reader):
        fate = self._network.fate()
        if fate == "cut":
            raise httpx.ReadError("reset")
        if fate == "half open":  # nothing arrives any more, and nobody says so
            await asyncio.sleep(self._patience)
            raise httpx.ReadTimeout("silence")
        if fate == "late":
            await asyncio.sleep(self._network.delay())
        if fate == "swapped" and not reader.queue.empty():
            after = reader.queue.get_nowait()
            if isinstance(after, Abort):
                raise httpx.ReadError("reset")
            frame = after + frame
        if fate == "split":
            yield frame[: len(frame) // 2]
            await asyncio.sleep(0.5)
            frame = frame[len(frame) // 2 :]
        yield frame
        if fate == "twice":
            await asyncio.sleep(self._network.delay() / 4)
            yield frame
