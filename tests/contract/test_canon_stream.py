"""The reading side: one suite for the stream over HTTP (a scripted server) and for the in-memory twin."""

from __future__ import annotations

import asyncio
import json

import httpx
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.canon.stream import CanonSse
from canon_hermes_plugin.infrastructure.memory.canon_stream import MemoryCanonStream
from canon_hermes_plugin.infrastructure.memory.time import SeededIds, VirtualClock
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret
from canon_hermes_plugin.testing.contracts import CanonStreamContract


class MemoryWorld:
    """The twin."""

    def __init__(self):
        self.stream = MemoryCanonStream()
        self.emit = self.stream.emit
        self.refuse = self.stream.refuse


class HttpWorld:
    """The real stream over a scripted transport that never ends by itself."""

    def __init__(self):
        self._queue = asyncio.Queue()
        self._status = 200
        self.requests = []
        environment = Environment("canon-dev-v1", "p", "https://api.x", "https://stream.x", "http://localhost:9", "k")
        link = CanonLink(
            Connection(Secret("agk_live_k"), environment, "direct", "test"),
            clock=VirtualClock(instant=True),
            transport=httpx.MockTransport(self._answer),
        )
        self.stream = CanonSse(link, SeededIds())

    async def _answer(self, request):
        self.requests.append(request)
        queue = self._queue

        class Body(httpx.AsyncByteStream):
            async def __aiter__(self):
                while (chunk := await queue.get()) is not None:
                    yield chunk

        if self._status != 200:
            return httpx.Response(self._status)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())

    def emit(self, event):
        head = f"id: {event.event_id}\n" if event.event_id else ""
        self._queue.put_nowait(f"{head}event: {event.name}\ndata: {json.dumps(event.data)}\n\n".encode())

    def refuse(self):
        self._status = 401
        self._queue.put_nowait(None)


class TestMemory(CanonStreamContract):
    subject = MemoryCanonStream

    def driver(self):
        return MemoryWorld()


class TestHttp(CanonStreamContract):
    subject = CanonSse

    def driver(self):
        return HttpWorld()
