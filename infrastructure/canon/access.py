"""Short-lived connections to Canon for tool threads: resolve, prove, use, close (interactions §4.3, §5.7).

A connection belongs to one event loop. Code that runs on another loop than the adapter's opens one of these.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import final

import httpx
from canon_hermes_plugin.infrastructure.canon.client import short_lived
from canon_hermes_plugin.infrastructure.canon.health import RecentProofs
from canon_hermes_plugin.ports.canon import CanonApi
from canon_hermes_plugin.ports.profiles import Connection
from canon_hermes_plugin.ports.time import Clock

MakesTransport = Callable[[], httpx.AsyncBaseTransport | None]


@final
class HttpAccess:
    """Opens verified clients.

    Attributes:
        resolve: returns whom to speak as, or raises ``CredentialsError``; may read files, so it runs in a thread.
        clock: waits between attempts.
        proofs: recent proofs of identity of this process.
        transport: makes what replaces each client's network, for tests.
    """

    def __init__(
        self,
        resolve: Callable[[], Connection],
        clock: Clock,
        proofs: RecentProofs,
        transport: MakesTransport = lambda: None,
    ) -> None:
        self._resolve = resolve
        self._clock = clock
        self._proofs = proofs
        self._transport = transport

    @asynccontextmanager
    async def verified(self) -> AsyncGenerator[CanonApi, None]:
        connection = await asyncio.to_thread(self._resolve)
        async with short_lived(
            connection, clock=self._clock, proofs=self._proofs, transport=self._transport()
        ) as canon:
            await canon.verify()
            yield canon


@final
class HttpBriefAccess:
    """Opens bounded clients for one known connection, without probes; ``transport`` as in :class:`HttpAccess`."""

    def __init__(self, connection: Connection, clock: Clock, transport: MakesTransport = lambda: None) -> None:
        self._connection = connection
        self._clock = clock
        self._transport = transport

    @asynccontextmanager
    async def brief(self, seconds: float) -> AsyncGenerator[CanonApi, None]:
        async with short_lived(
            self._connection, clock=self._clock, phase_seconds=seconds, transport=self._transport()
        ) as canon:
            yield canon
