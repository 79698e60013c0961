"""Canon's request side over HTTP: one method per call of canon-wire §1, nothing else.

Decides which call is which request. Framing is :mod:`.wire`, failures are :mod:`.link`, repetition is
:mod:`.retry`. It refuses to know turns, hosts and files.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, final

import httpx
from canon_hermes_plugin.domain import message_limits
from canon_hermes_plugin.infrastructure.canon import retry, wire
from canon_hermes_plugin.infrastructure.canon.address import join
from canon_hermes_plugin.infrastructure.canon.health import EnvironmentCheck, RecentProofs
from canon_hermes_plugin.infrastructure.canon.link import REST_TIMEOUT, CanonLink, Request, encode
from canon_hermes_plugin.ports.canon import (
    AgentIdentity,
    JsonObject,
    NodeWrite,
    OutboundMessage,
    RuntimeSignal,
    StoredMessage,
    TurnPublication,
    TypingStatus,
    Upload,
)
from canon_hermes_plugin.ports.errors import (
    AuthenticationError,
    CanonApiError,
    CanonError,
    DeliveryError,
    MalformedResponseError,
)
from canon_hermes_plugin.ports.profiles import Connection
from canon_hermes_plugin.ports.time import Clock

LIVE_CALLS = 48
"""Live calls (typing, node, states) at the same time: fewer than half of the pool, so that a live side that hangs in
many conversations never keeps an answer from its connection."""

_UNAUTHORIZED = frozenset({401, 403})


@final
class CanonHttp:
    """Implements :class:`~canon_hermes_plugin.ports.canon.CanonApi` over one connection.

    Args:
        link: owned: :meth:`close` closes it.
        proofs: recent proofs of identity, shared by all connections of the process.
        phase_seconds: bound of each phase of a call (connect, read, write, pool).
    """

    def __init__(
        self, link: CanonLink, proofs: RecentProofs | None = None, *, phase_seconds: float = REST_TIMEOUT
    ) -> None:
        self._link = link
        self._check = EnvironmentCheck(link, proofs or RecentProofs(link.clock))
        self._timeout = phase_seconds
        self._api = link.environment.base_url
        self._shown = asyncio.Semaphore(LIVE_CALLS)

    async def verify(self) -> None:
        await self._check.verify()

    async def identify(self) -> AgentIdentity:
        refused: AuthenticationError | None = None
        try:
            return wire.identity_of(await self._call("GET", "/agents/me"))
        except CanonApiError as error:
            if error.status_code not in _UNAUTHORIZED:
                raise
            refused = AuthenticationError(
                error.status_code, error.body, machine_code=error.machine_code, detail=error.detail
            )
        raise refused

    async def list_conversations(self) -> Sequence[JsonObject]:
        return wire.conversations_of(await self._call("GET", "/conversations"))

    async def send(self, message: OutboundMessage) -> StoredMessage:
        if reason := message_limits.objection(message):
            raise DeliveryError(reason, certainty="definitive")
        failures: list[CanonError] = []
        try:
            # Encoded once: every attempt re-sends the identical bytes.
            content = encode(wire.message_body(message))
            return await retry.repeat(
                lambda: self._store(message, content),
                clock=self._link.clock,
                idempotent=message.message_id is not None,
                failures=failures,
            )
        except CanonError as error:
            failures = failures or [error]
        raise _undelivered(failures, idempotent=message.message_id is not None)

    async def upload(self, upload: Upload) -> JsonObject:
        if len(upload.data) > message_limits.MAX_MEDIA_BYTES:
            reason = f"the upload has {len(upload.data)} bytes, at most {message_limits.MAX_MEDIA_BYTES} are allowed"
            raise DeliveryError(reason, certainty="definitive")
        content = await asyncio.to_thread(wire.upload_content, upload)
        answer = await self._link.call(Request("POST", f"{self._api}/media/upload", content, timeout=self._timeout))
        return wire.attachment_of(answer, upload)

    async def set_typing(self, conversation_id: str, *, typing: bool, status: TypingStatus = "thinking") -> None:
        await self._tell("/typing", wire.typing_body(conversation_id, status if typing else None))

    async def write_node(self, write: NodeWrite) -> None:
        await self._tell("/streaming", wire.node_body(write))

    async def clear_node(self, conversation_id: str) -> None:
        await self._tell("/streaming", {"conversationId": conversation_id, "streaming": False})

    async def publish_status(self, descriptor: JsonObject) -> None:
        await self._tell("/runtime/status", wire.status_body(descriptor))

    async def publish_turn(self, publication: TurnPublication) -> None:
        await self._tell("/runtime/turn", wire.turn_body(publication))

    async def consume_signal(self, conversation_id: str) -> RuntimeSignal | None:
        return wire.signal_of(await self._call("POST", "/runtime/signal/consume", {"conversationId": conversation_id}))

    async def release_message(self, conversation_id: str, message_id: str) -> None:
        url = join(self._api, "conversations", conversation_id, "messages", message_id, "disposition")
        content = encode({"inboundDisposition": "accepted_now"})
        await self._link.call(Request("PATCH", url, content, timeout=self._timeout))

    async def mark_read(self, conversation_id: str) -> None:
        url = join(self._api, "conversations", conversation_id, "read")
        await self._link.call(Request("POST", url, timeout=self._timeout))

    async def create_interaction(self, body: JsonObject) -> JsonObject:
        return wire.as_object(await self._call("POST", "/runtime-interaction/request", body))

    async def consume_interaction(self, body: JsonObject) -> JsonObject:
        return wire.as_object(await self._call("POST", "/runtime-interaction/consume", body))

    async def call_verb(self, verb: str, *, envelope: JsonObject, value: JsonObject) -> JsonObject:
        content = encode(wire.verb_body(verb, envelope, value))
        url = join(f"{self._api}/agent/verbs", verb)
        answer = await self._link.call(Request("POST", url, content, timeout=self._timeout))
        return wire.verb_value(answer, verb)

    async def close(self) -> None:
        await self._link.close()

    async def _tell(self, path: str, body: Mapping[str, Any]) -> None:
        """Make a call that only shows something: nobody waits for it, and it leaves connections for what counts."""
        async with self._shown:
            await self._call("POST", path, body)

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - JSON
        content = None if body is None else encode(body)
        return await self._link.call(Request(method, self._api + path, content, timeout=self._timeout))

    async def _store(self, message: OutboundMessage, content: bytes) -> StoredMessage:
        url = f"{self._api}/messages/send"
        answer = wire.as_object(await self._link.call(Request("POST", url, content, timeout=self._timeout)))
        stored = wire.first_of(answer, "messageId", "id") or message.message_id
        if stored is None:
            raise MalformedResponseError("Canon stored a message without naming its id")
        return StoredMessage(stored, answer)


@asynccontextmanager
async def short_lived(
    connection: Connection,
    *,
    clock: Clock,
    proofs: RecentProofs | None = None,
    phase_seconds: float = REST_TIMEOUT,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncGenerator[CanonHttp, None]:
    """Open a client for the calling event loop and close it afterwards.

    Code on a tool thread or a foreign loop never awaits the adapter's client (H25); it works through one of these.

    Args:
        connection: addresses and key, the same as the adapter's.
        clock: waits between attempts.
        proofs: recent proofs of identity, shared with the adapter.
        phase_seconds: bound of each phase of a call (connect, read, write, pool).
        transport: replaces the network, for tests.
    """
    # Reading the certificate store takes tens of milliseconds; the calling loop may be the gateway's.
    link = await asyncio.to_thread(CanonLink, connection, clock=clock, transport=transport)
    client = CanonHttp(link, proofs, phase_seconds=phase_seconds)
    try:
        yield client
    finally:
        await client.close()


def _undelivered(failures: Sequence[CanonError], *, idempotent: bool) -> DeliveryError:
    last = failures[-1]
    statuses = [error.status_code for error in failures if isinstance(error, CanonApiError)]
    return DeliveryError(
        f"the message was not confirmed after {len(failures)} attempt(s): {last}",
        certainty=retry.verdict(failures),
        retryable=retry.worth_retrying_later(failures, idempotent=idempotent),
        status_code=statuses[-1] if statuses else None,
    )
