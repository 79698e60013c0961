"""How the loopback Canon answers on the wire: recording, authorisation, injected faults, the event stream.

Decides: the order record → fault before → bearer → handler → fault after, and how each fault looks on the wire.
Refuses to know what the routes mean: that is :mod:`.routes`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from canon_hermes_plugin.infrastructure.sandbox.events import Abort, Reader
from canon_hermes_plugin.infrastructure.sandbox.faults import Fault, FaultPlan
from canon_hermes_plugin.infrastructure.sandbox.records import Json, RefusedError, Reply, RequestRecord, as_object
from canon_hermes_plugin.infrastructure.sandbox.state import CanonState
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

TRANSPORT = "canon.transport"
UNAUTHENTICATED = frozenset({"healthz", "health", "media", "register", "register.status", "register.ack"})


class AbortableProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol that also lets a request tear its own connection down."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        super().connection_made(transport)
        inner: Any = self.app

        async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - uvicorn's private ASGI types
            scope[TRANSPORT] = transport
            await inner(scope, receive, send)

        self.app = app


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way through a handler."""

    state: CanonState
    record: RequestRecord
    path: dict[str, str]
    base_url: str

    @property
    def body(self) -> Json:
        """The JSON body; refuses anything that is not an object."""
        if self.record.body is None:
            raise RefusedError(400, "a JSON object is required")
        return self.record.body


Handler: TypeAlias = Callable[[Call], Reply]


@dataclass(slots=True)
class Wire:
    """Wraps handlers into Starlette endpoints."""

    state: CanonState
    faults: FaultPlan = field(default_factory=FaultPlan)
    heartbeat: float = 15.0

    def endpoint(self, route: str, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint that runs ``handler`` under the name ``route``."""

        async def endpoint(request: Request) -> Response:
            record = await self._record(route, request)
            fault = self._fault(record)
            if fault is not None and fault.delay:
                await asyncio.sleep(fault.delay)
            if fault is not None and fault.kind != "delay" and not fault.after:
                return self._close(record, _faulty(fault, Reply()))
            reply = self._run(handler, Call(self.state, record, dict(request.path_params), _base_url(request)))
            if fault is not None and fault.kind != "delay":
                return self._close(record, _faulty(fault, reply))
            return self._close(record, _plain(reply))

        return endpoint

    def stream(self) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of the event stream."""

        async def endpoint(request: Request) -> Response:
            record = await self._record("stream", request)
            fault = self._fault(record)
            if fault is not None and fault.delay:
                await asyncio.sleep(fault.delay)
            if fault is not None and fault.kind not in {"delay", "end"}:
                return self._close(record, _faulty(fault, Reply()))
            with self.state.lock:
                refusal = _refusal(self.state, record)
            if refusal is not None:
                return self._close(record, _plain(refusal))
            ended = fault is not None and fault.kind == "end"
            return self._close(record, EventStream(self, record.headers.get("last-event-id"), ended=ended))

        return endpoint

    async def _record(self, route: str, request: Request) -> RequestRecord:
        raw = await request.body()
        body = _decoded(raw)
        with self.state.lock:
            record = RequestRecord(
                number=len(self.state.requests) + 1,
                route=route,
                method=request.method,
                path=request.url.path,
                query=dict(request.query_params),
                headers={key.lower(): value for key, value in request.headers.items()},
                body=body,
                at_ms=self.state.now(),
            )
            self.state.requests.append(record)
            self.state.lock.notify_all()
        return record

    def _fault(self, record: RequestRecord) -> Fault | None:
        with self.state.lock:
            fault = self.faults.take(record)
            record.fault = None if fault is None else fault.kind
            return fault

    def _run(self, handler: Handler, call: Call) -> Reply:
        with self.state.lock:
            refusal = _refusal(self.state, call.record)
            if refusal is not None:
                return refusal
            try:
                reply = handler(call)
            except RefusedError as refused:
                return refused.reply
            call.record.handled = True
            return reply

    def _close(self, record: RequestRecord, response: Response) -> Response:
        with self.state.lock:
            record.status = None if isinstance(response, Hangup) else response.status_code
            self.state.lock.notify_all()
        return response


class Hangup(Response):
    """No answer: the connection ends, cleanly or by a reset."""

    def __init__(self, *, reset: bool) -> None:
        super().__init__()
        self._reset = reset

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport: asyncio.Transport = scope[TRANSPORT]
        if self._reset:
            linger = struct.pack("ii", 1, 0)  # closing now sends RST instead of FIN
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        else:
            transport.close()
        while (await receive())["type"] != "http.disconnect":
            pass


class Truncated(Response):
    """Announces the whole body, sends half of it and closes the connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        half = bytes(self.body)[: len(self.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        await Hangup(reset=False)(scope, receive, send)


class EventStream(Response):
    """The long-lived answer of R18: queued frames, comment heartbeats, ends on demand."""

    media_type = "text/event-stream"

    def __init__(self, wire: Wire, cursor: str | None, *, ended: bool) -> None:
        super().__init__(headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._wire, self._cursor, self._ended = wire, cursor, ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        state, reader = self._wire.state, Reader(asyncio.get_running_loop())
        gone = asyncio.create_task(_disconnected(receive))
        gone.add_done_callback(lambda _: reader.queue.put_nowait(Abort(clean=True)))
        with state.lock:
            if not self._ended:
                state.events.open(reader, self._cursor)
                state.lock.notify_all()
        try:
            clean = self._ended or await self._pump(reader, send)
        finally:
            gone.cancel()
            with state.lock:
                state.events.close(reader)
                state.lock.notify_all()
        if clean:
            await send({"type": "http.response.body", "body": b""})
        else:
            await Hangup(reset=True)(scope, receive, send)

    async def _pump(self, reader: Reader, send: Send) -> bool:
        while True:
            try:
                item = await asyncio.wait_for(reader.queue.get(), self._wire.heartbeat)
            except TimeoutError:
                item = b"" if self._wire.state.events.silent else b": heartbeat\n\n"
            if isinstance(item, Abort):
                return item.clean
            for piece in self._wire.state.events.framing.pieces(item) if item else ():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                await asyncio.sleep(0)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _refusal(state: CanonState, record: RequestRecord) -> Reply | None:
    if record.route in UNAUTHENTICATED:
        return None
    if record.headers.get("authorization") != f"Bearer {state.identity.api_key}":
        return Reply(401, {"error": "invalid API key", "code": "UNAUTHENTICATED"})
    if state.policy.forbidden:
        return Reply(403, {"error": "this agent may not act", "code": "FORBIDDEN"})
    return None


def _faulty(fault: Fault, reply: Reply) -> Response:
    headers = {} if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}
    match fault.kind:
        case "drop" | "reset" | "end":
            return Hangup(reset=fault.kind == "reset")
        case "truncate":
            plain = _plain(reply)
            return Truncated(bytes(plain.body), reply.status, media_type="application/json")
        case "garbage":
            return Response(fault.content, reply.status, headers, "application/json")
        case "redirect":
            return Response(b"", 302, {**headers, "location": fault.content})
        case _:
            body = fault.content or json.dumps({"error": "injected fault", "code": "INJECTED"})
            return Response(body, fault.status, headers, "application/json")


def _plain(reply: Reply) -> Response:
    content = json.dumps(reply.body).encode() if reply.content is None else reply.content
    return Response(content, reply.status, dict(reply.headers), reply.media_type)


def _decoded(raw: bytes) -> Json | None:
    try:
        value: object = json.loads(raw) if raw else None
    except ValueError:
        return None
    return as_object(value) if isinstance(value, dict) else None


def _base_url(request: Request) -> str:
    return f"http://{request.headers.get('host', '127.0.0.1')}"
