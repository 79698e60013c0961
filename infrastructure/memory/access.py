"""Twins of the short-lived connections: clients of one Canon in memory, lent and taken back (interactions §4.3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast, final

from canon_hermes_plugin.ports.canon import CanonApi
from canon_hermes_plugin.ports.errors import CanonTransportError


@final
class MemoryAccess:
    """Gives out clients of ``canon``; stands for ``CanonAccess`` and ``BriefAccess`` alike.

    Args:
        canon: what the clients talk to; it stays open.

    Attributes:
        missing: set it to the error of a process without a usable agent.
        opened: how many clients were given out.
        closed: how many of them were taken back.
    """

    def __init__(self, canon: CanonApi) -> None:
        self.missing: Exception | None = None
        self.opened = 0
        self.closed = 0
        self._canon = canon

    @asynccontextmanager
    async def verified(self) -> AsyncGenerator[CanonApi, None]:
        if self.missing is not None:
            raise self.missing
        async with self._lend(None) as canon:
            await canon.verify()
            yield canon

    @asynccontextmanager
    async def brief(self, seconds: float) -> AsyncGenerator[CanonApi, None]:
        async with self._lend(seconds) as canon:
            yield canon

    @asynccontextmanager
    async def _lend(self, seconds: float | None) -> AsyncGenerator[CanonApi, None]:
        self.opened += 1
        try:
            yield self._canon if seconds is None else cast("CanonApi", _Bounded(self._canon, seconds))
        finally:
            self.closed += 1


@final
class _Bounded:
    """Stands for a client whose every call ends within ``seconds``."""

    def __init__(self, inner: CanonApi, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._inner, name)

        async def call(*arguments: object, **options: object) -> object:
            try:
                async with asyncio.timeout(self._seconds):
                    return await method(*arguments, **options)
            except TimeoutError:
                pass
            raise CanonTransportError("the answer did not arrive in time", executed=True)

        return call
