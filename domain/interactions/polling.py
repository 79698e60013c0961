"""Waits for one answer: asks until there is one, the time is over, or nobody wants it any more (interactions §6).

Decides how passing and final errors end a wait and that nothing is left open on the server. It does not know what is
asked nor what an answer means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from canon_hermes_plugin.ports.canon import InteractionPort
from canon_hermes_plugin.ports.errors import CanonApiError, CanonError, CanonTransportError, MalformedResponseError
from canon_hermes_plugin.ports.time import Clock

POLL_SECONDS: Final = 1.0
CANCEL_SECONDS: Final = 2.0
_SHORTEST_WAIT: Final = 0.001
_GONE: Final = frozenset({404, 409})
_NO_ANSWER: Final = frozenset({"", "pending", "cancelled", "timeout"})

Answer = Mapping[str, Any]


class AbandonedError(Exception):
    """The asker no longer wants the answer: the run was interrupted, or the host closed the question."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A created request.

    Attributes:
        address: its consume body (kind, conversation and id).
        expires_at: when the wait ends, in ms.
        abandoned: tells that nobody wants the answer any more; asked between two polls.
    """

    address: Mapping[str, Any]
    expires_at: float
    abandoned: Callable[[], bool] = lambda: False


async def wait_for_answer(canon: InteractionPort, request: OpenRequest, clock: Clock) -> Answer | None:
    """Return the answer, or ``None`` when the time is over or the server no longer knows the request.

    Raises:
        CanonError: a final error; the request was cancelled.
        AbandonedError: ``abandoned`` said so; the request was cancelled.
        asyncio.CancelledError: the waiting task was cancelled; the request too, within 2 s (D12).
    """
    try:
        return await _poll(canon, request, clock)
    except (AbandonedError, asyncio.CancelledError, CanonError):
        await _cancel_briefly(canon, request)
        raise


async def _poll(canon: InteractionPort, request: OpenRequest, clock: Clock) -> Answer | None:
    while (left := request.expires_at - clock.now_ms()) >= 0:
        if request.abandoned():
            raise AbandonedError
        answer = await _tolerant(canon.consume_interaction(dict(request.address)))
        if answer is None:
            return None
        status = answer.get("status")
        if status and status != "pending":
            return answer
        left = request.expires_at - clock.now_ms()
        await clock.sleep(max(_SHORTEST_WAIT, min(POLL_SECONDS, left / 1000)))
    return await _last_moment(canon, request)


async def _tolerant(call: Awaitable[Answer]) -> Answer | None:
    """Return what a consume says; an empty answer for a passing error, ``None`` when the request is gone (D11)."""
    try:
        return await call
    except CanonApiError as error:
        if error.status_code in _GONE:
            return None
        if not error.retryable:
            raise
    except (CanonTransportError, MalformedResponseError):
        pass
    return {}


async def _last_moment(canon: InteractionPort, request: OpenRequest) -> Answer | None:
    """Take the request back; an answer given in the last instant comes with that (D27)."""
    with suppress(CanonError):
        answer = await canon.consume_interaction({**request.address, "cancel": True})
        status = answer.get("status")
        if isinstance(status, str) and status.strip() not in _NO_ANSWER:
            return answer
    return None


async def _cancel_briefly(canon: InteractionPort, request: OpenRequest) -> None:
    with suppress(CanonError, TimeoutError):
        async with asyncio.timeout(CANCEL_SECONDS):
            await canon.consume_interaction({**request.address, "cancel": True})
