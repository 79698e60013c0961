"""Fetches attachments from wherever Canon says they are (R7, canon-wire §1.8), trusting neither address nor server.

Decides what is fetched and how much of it: every hop is judged, and the very address that was judged is connected to,
so a name cannot change its mind in between. No Canon credential is known here, so none can leak. Redirects are
followed by hand. It refuses to know messages and files.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from socket import SOCK_STREAM, gaierror, getaddrinfo
from typing import final

import httpx
from canon_hermes_plugin.infrastructure.canon import addresses, tls
from canon_hermes_plugin.ports.errors import MediaError
from canon_hermes_plugin.ports.media import MAX_MEDIA_BYTES, FetchedMedia

USER_AGENT = "HermesAgent/CanonPlatform"
MAX_REDIRECTS = 5
_MAX_URL = 8192
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
_MAX_ADDRESSES = 3
_OPENING = " (security.allow_private_urls in config.yaml opens private ones)"

UrlPolicy = Callable[[str], bool]
"""The host's judgement of an address. May block and resolve names: it is asked in a thread."""
Resolver = Callable[[str, int], Sequence[str]]


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds of one download: total seconds, seconds for each phase of a hop, bytes."""

    deadline: float = 60.0
    phase: float = 30.0
    size: int = MAX_MEDIA_BYTES


@dataclass(frozen=True, slots=True)
class _Hop:
    url: httpx.URL
    candidates: tuple[str, ...]


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of ``host``; blocking."""
    found = getaddrinfo(host, port, type=SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@final
class HttpMediaFetcher:
    """Implements :class:`~canon_hermes_plugin.ports.media.MediaFetcher`.

    Args:
        is_safe_url: the host's policy, asked about every hop. It may also open private addresses: it is then asked
            about the literal address that is going to be connected to. Link-local and metadata addresses stay closed.
        limits: bounds of one download.
        resolver: resolves names, blocking; for tests.
        transport: makes the transport of one hop, for tests.
    """

    def __init__(
        self,
        is_safe_url: UrlPolicy | None = None,
        *,
        limits: FetchLimits | None = None,
        resolver: Resolver = resolve,
        transport: Callable[[], httpx.AsyncBaseTransport] | None = None,
    ) -> None:
        self._policy = is_safe_url
        self._limits = limits or FetchLimits()
        self._resolve = resolver
        self._make_transport = transport

    async def fetch(self, url: str) -> FetchedMedia:
        failure = "the download took too long"
        try:
            async with asyncio.timeout(self._limits.deadline):
                return await self._follow(url)
        except TimeoutError:
            pass
        except (httpx.HTTPError, httpx.StreamError, zlib.error) as error:
            failure = f"the download failed ({type(error).__name__})"
        raise MediaError(failure, retryable=True)

    async def _follow(self, url: str) -> FetchedMedia:
        target = _parse(url)
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._request(await self._approve(target))
            if isinstance(answer, FetchedMedia):
                return answer
            secure = target.scheme == "https"
            target = _parse(str(answer))
            if secure and target.scheme != "https":
                raise MediaError("a redirect leads from an encrypted to an open connection")
        raise MediaError(f"the address redirects more than {MAX_REDIRECTS} times")

    async def _approve(self, url: httpx.URL) -> _Hop:
        if self._policy is not None and not await asyncio.to_thread(self._policy, str(url)):
            raise MediaError(f"the host's policy refuses the attachment's address{_OPENING}")
        host, port = url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme]
        found: Sequence[str] = ()
        with suppress(gaierror, UnicodeError, OSError):
            found = await asyncio.to_thread(self._resolve, host.strip("[]"), port)
        if not found:
            raise MediaError("the attachment's host name cannot be resolved", retryable=True)
        for address in found:
            await self._approve_address(address, url.scheme)
        return _Hop(url, tuple(found[:_MAX_ADDRESSES]))

    async def _approve_address(self, address: str, scheme: str) -> None:
        verdict, opening = addresses.judge(address), ""
        if verdict == "private" and self._policy is not None:
            literal = f"{scheme}://{_bracketed(address)}/"
            if await asyncio.to_thread(self._policy, literal):
                return
            opening = _OPENING
        if verdict != "public":
            raise MediaError(f"the attachment's address is not public{opening}")

    async def _request(self, hop: _Hop) -> FetchedMedia | httpx.URL:
        """Ask one hop; return the file, or where it redirects to."""
        last = len(hop.candidates) - 1
        for number, address in enumerate(hop.candidates):
            try:
                return await self._ask(hop.url, address)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if number == last:
                    raise
        raise MediaError("the attachment's host has no address", retryable=True)

    async def _ask(self, url: httpx.URL, address: str) -> FetchedMedia | httpx.URL:
        host = url.raw_host.decode("ascii")
        default_port = url.port is None or url.port == _PORTS[url.scheme]
        request = httpx.Request(
            "GET",
            url.copy_with(host=address.partition("%")[0], fragment=None),
            headers={
                "Host": host if default_port else f"{host}:{url.port}",
                "User-Agent": USER_AGENT,
                "Accept": "*/*",
                "Accept-Encoding": "identity",
                "Connection": "close",
            },
            extensions={
                "timeout": dict.fromkeys(("connect", "read", "write", "pool"), self._limits.phase),
                "sni_hostname": host.strip("[]"),
            },
        )
        # A transport of its own for every hop: pooled connections are told apart by address only, and two names may
        # share one. Used without a client, whose log line would show the signed address.
        async with await self._transport() as transport:
            response = await transport.handle_async_request(request)
            try:
                return await self._read(url, response)
            finally:
                await response.aclose()

    async def _read(self, url: httpx.URL, response: httpx.Response) -> FetchedMedia | httpx.URL:
        location = response.headers.get("location")
        if response.status_code in _REDIRECTS and location:
            return _joined(url, location)
        if not 200 <= response.status_code < 300:  # noqa: PLR2004 - anything else is no file
            transient = response.status_code >= 500  # noqa: PLR2004
            raise MediaError(
                f"the attachment's server answers with HTTP status {response.status_code}", retryable=transient
            )
        declared = response.headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared[:20]) > self._limits.size:
            raise MediaError(f"the attachment is larger than {self._limits.size} bytes")
        chunks: list[bytes] = []
        size = 0
        async for chunk in _decoded(response, self._limits.size + 1):
            size += len(chunk)
            if size > self._limits.size:
                raise MediaError(f"the attachment is larger than {self._limits.size} bytes")
            chunks.append(chunk)
        mime_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return FetchedMedia(b"".join(chunks), mime_type or None)

    async def _transport(self) -> httpx.AsyncBaseTransport:
        if self._make_transport is not None:
            return self._make_transport()
        return httpx.AsyncHTTPTransport(verify=await tls.context(), trust_env=False)


async def _decoded(response: httpx.Response, limit: int) -> AsyncIterator[bytes]:
    """Yield the body; a server that compresses unasked is read through a decompressor that cannot run away."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in {"", "identity"}:
        async for chunk in response.aiter_raw():
            yield chunk
        return
    if encoding not in {"gzip", "x-gzip"}:
        raise MediaError("the attachment is encoded in a way that was not asked for")
    unzip = zlib.decompressobj(wbits=31)
    async for chunk in response.aiter_raw():
        yield unzip.decompress(chunk, limit)
        if unzip.unconsumed_tail:
            raise MediaError("the attachment is larger than allowed once decompressed")


def _parse(url: str) -> httpx.URL:
    parsed: httpx.URL | None = None
    if len(url) <= _MAX_URL:
        with suppress(httpx.InvalidURL, ValueError):
            parsed = httpx.URL(url)
    if parsed is None or parsed.scheme not in _PORTS or not parsed.host or parsed.userinfo:
        raise MediaError("the attachment's address is not a plain http or https address")
    return parsed


def _joined(base: httpx.URL, location: str) -> httpx.URL:
    if len(location) <= _MAX_URL:
        with suppress(httpx.InvalidURL, ValueError):
            return base.join(location)
    raise MediaError("the attachment's server redirects to an unreadable address")


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
