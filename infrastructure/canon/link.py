"""One pooled way to Canon: sends a request, reads a bounded answer, and names every failure by the port's errors.

Decides what counts as success (2xx, canon-wire §0.4) and what of a failure may be told. It refuses to know what a call
means and whether it is tried again. Errors raised here have no cause and no context: the libraries' own exceptions
hold the request, and the request holds the key.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast, final

import httpx
from canon_hermes_plugin.infrastructure.canon import retry, tls
from canon_hermes_plugin.infrastructure.canon.address import bearer
from canon_hermes_plugin.ports.errors import CanonApiError, CanonError, CanonTransportError, MalformedResponseError
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.time import Clock

REST_TIMEOUT = 30.0
HEALTH_TIMEOUT = 10.0
MAX_ANSWER_BYTES = 16 * 1024 * 1024
_MAX_ERROR_BYTES = 64 * 1024
_BIG = 512 * 1024
_OFF_LOOP = "this client belongs to another event loop; open a short-lived one"


@dataclass(frozen=True, slots=True)
class Request:
    """One request, before authentication.

    Attributes:
        method: the HTTP method.
        url: absolute, ids already encoded.
        content: the encoded body, or ``None`` for no body.
        headers: additional headers.
        authorized: whether the bearer goes along.
        timeout: seconds for each of connect, read, write and pool acquisition.
    """

    method: str
    url: str
    content: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str | bytes] = field(default_factory=dict[str, str | bytes], repr=False)
    authorized: bool = True
    timeout: float = REST_TIMEOUT


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer of any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@final
class CanonLink:
    """An HTTP client with credentials, owned by the event loop that uses it first, until it is closed.

    Args:
        target: addresses and key; an environment alone when there is no key yet, for setup.
        clock: reads ``Retry-After`` dates.
        transport: replaces the network, for tests.
    """

    def __init__(
        self, target: Connection | Environment, *, clock: Clock, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.environment = target if isinstance(target, Environment) else target.environment
        self._api_key = None if isinstance(target, Environment) else target.api_key
        if self._api_key is not None:
            bearer(self._api_key)  # refuses a broken key before the first request
        self.clock = clock
        self._transport = transport
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def call(self, request: Request) -> Any:  # noqa: ANN401 - decoded JSON
        """Send ``request`` and return the decoded JSON of its 2xx answer; an empty body is ``{}``.

        Raises:
            CanonApiError: any other final status, redirects included.
            CanonTransportError: no complete answer.
            MalformedResponseError: a 2xx answer that is not JSON.
        """
        answer = await self.exchange(request)
        if not 200 <= answer.status < 300:  # noqa: PLR2004 - canon-wire §0.4
            raise self.refusal(answer.status, answer.headers, answer.body)
        return await decode(answer.body)

    async def exchange(self, request: Request) -> Answer:
        """Send ``request`` and return the complete answer, whatever its status."""
        async with self.open(request) as response:
            failure: CanonError | None = None
            try:
                return Answer(response.status_code, response.headers, await _read(response))
            except httpx.HTTPError as error:
                failure = translate(error)
            raise failure

    @asynccontextmanager
    async def open(self, request: Request, phases: httpx.Timeout | None = None) -> AsyncGenerator[httpx.Response, None]:
        """Send ``request`` and yield the answer with its body still unread.

        Raises:
            CanonTransportError: the answer's head did not arrive.
        """
        client = await self._opened()
        failure: CanonError | None = None
        response: httpx.Response | None = None
        try:
            built = client.build_request(
                request.method,
                request.url,
                content=request.content,
                headers=self._headers(request),
                timeout=phases or request.timeout,
            )
            response = await client.send(built, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            failure = translate(error)
        if response is None:
            raise failure or CanonError("no answer")
        try:
            yield response
        finally:
            with suppress(httpx.HTTPError):
                await response.aclose()

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> CanonApiError:
        """Return the error for an answer other than 2xx (canon-wire §0.4)."""
        text = body[:_MAX_ERROR_BYTES].decode("utf-8", "replace").strip()
        code, detail = _machine_answer(text)
        return CanonApiError(
            status,
            text,
            machine_code=code,
            detail=detail,
            retry_after=retry.retry_after(headers.get("retry-after"), self.clock.now_ms()),
        )

    async def close(self) -> None:
        """Release the pool; idempotent. A later call opens a new one, on whatever loop it comes from."""
        client, self._client, self._loop = self._client, None, None
        if client is not None:
            await client.aclose()

    def _headers(self, request: Request) -> list[tuple[bytes, bytes]]:
        headers: dict[str, str | bytes] = dict(request.headers)
        if request.authorized and self._api_key is not None:
            headers["Authorization"] = bearer(self._api_key)
        if request.authorized or request.content is not None:
            headers["Content-Type"] = "application/json"
        return [
            (name.encode("ascii"), value if isinstance(value, bytes) else value.encode("ascii"))
            for name, value in headers.items()
        ]

    async def _opened(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise RuntimeError(_OFF_LOOP)
        if self._client is None:
            verify = await tls.context() if self._transport is None else True
            if self._client is None:  # another call may have opened it meanwhile
                self._client = httpx.AsyncClient(
                    verify=verify, transport=self._transport, follow_redirects=False, timeout=REST_TIMEOUT
                )
        return self._client


async def off_loop(size: int, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - passes through what ``work`` returns
    """Run ``work`` in a thread when ``size`` bytes would hold up the event loop, else directly."""
    return await asyncio.to_thread(work) if size > _BIG else work()


async def decode(body: bytes) -> Any:  # noqa: ANN401 - decoded JSON
    """Decode a 2xx body; empty is ``{}``."""
    if not body:
        return {}
    try:
        return await off_loop(len(body), lambda: json.loads(body))
    except (ValueError, RecursionError):
        pass
    raise MalformedResponseError("Canon answered 2xx with a body that is not JSON")


def encode(value: Mapping[str, Any]) -> bytes:
    """Encode a request body as compact UTF-8 JSON; lone surrogates become ``?``.

    Raises:
        CanonError: the value is not plain JSON. Nothing was sent.
    """
    try:
        text = json.dumps(dict(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        pass
    raise CanonError("the request is not plain JSON")


def translate(error: httpx.HTTPError | httpx.InvalidURL | UnicodeError) -> CanonError:
    """Name a library failure by its effect. Only the failure's kind is told, never its text."""
    name = type(error).__name__
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return CanonTransportError(f"Canon cannot be reached ({name})", executed=False)
        case httpx.UnsupportedProtocol() | httpx.LocalProtocolError() | httpx.InvalidURL() | UnicodeError():
            return CanonTransportError(f"the request could not be sent ({name})", executed=False, retryable=False)
        case httpx.DecodingError():
            return MalformedResponseError("Canon's answer could not be decompressed")
        case _:
            lasting = not isinstance(error, httpx.ReadTimeout | httpx.RemoteProtocolError)
            return CanonTransportError(f"the answer did not arrive ({name})", executed=True, retryable=not lasting)


async def _read(response: httpx.Response) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            raise MalformedResponseError(f"Canon's answer is longer than {MAX_ANSWER_BYTES} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _machine_answer(text: str) -> tuple[str | None, str | None]:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(value, dict):
        return None, None
    fields = cast("dict[str, object]", value)
    code, sentence = fields.get("code"), fields.get("error")
    return (code if isinstance(code, str) else None), (sentence if isinstance(sentence, str) and sentence else None)
