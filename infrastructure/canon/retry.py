"""Failure classes of canon-wire §0.5 and §1.5: decides what is tried again, when, and what all attempts together prove.

Refuses to know what is being sent. The rules are pure functions; waiting happens on an injected clock.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import tenacity
from canon_hermes_plugin.ports.errors import (
    CanonApiError,
    CanonError,
    CanonTransportError,
    Certainty,
    MalformedResponseError,
)
from canon_hermes_plugin.ports.time import Clock

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

ATTEMPTS = 3
FIRST_WAIT = 0.4
MAX_RETRY_AFTER = 30.0
"""Longest wait Canon may ask of one attempt, seconds."""

_NOT_EXECUTED = frozenset({429, 503})
_RETRYABLE = frozenset({408, 425, 429})
_MAY_HAVE_LANDED = frozenset({408, 409, 425})


def retryable_status(status: int) -> bool:
    """Whether ``status`` belongs to the retryable class."""
    return status in _RETRYABLE or status >= 500  # noqa: PLR2004 - canon-wire §0.5


def certainty(error: CanonError) -> Certainty:
    """Return what one failed attempt proves about the write (canon-wire §1.5).

    Statuses that the contract does not list (redirects) prove nothing and are ambiguous.
    """
    match error:
        case CanonApiError(status_code=status):
            if status in _NOT_EXECUTED:
                return "definitive"
            client_error = 400 <= status < 500  # noqa: PLR2004 - canon-wire §1.5
            return "definitive" if client_error and status not in _MAY_HAVE_LANDED else "ambiguous"
        case CanonTransportError():
            return "ambiguous" if error.executed else "definitive"
        case MalformedResponseError():
            return "ambiguous"
        case _:
            # Refused before anything left this process.
            return "definitive"


def verdict(errors: Sequence[CanonError]) -> Certainty:
    """Judge an operation over *all* its failed attempts: one ambiguous attempt makes it ambiguous (§13 row 25)."""
    return "ambiguous" if any(certainty(error) == "ambiguous" for error in errors) else "definitive"


def may_repeat(error: CanonError, *, idempotent: bool) -> bool:
    """Whether the same write may be tried again at once.

    Args:
        error: how the last attempt failed.
        idempotent: the request carries a stable message id; without one, only a provably unexecuted one is repeated.
    """
    match error:
        case CanonApiError(status_code=status):
            return retryable_status(status) if idempotent else status in _NOT_EXECUTED
        case CanonTransportError():
            return idempotent or not error.executed
        case _:
            return False


def worth_retrying_later(errors: Sequence[CanonError], *, idempotent: bool) -> bool:
    """Whether the caller may order the identical write again later without risking a second copy (§13 row 12)."""
    if verdict(errors) == "ambiguous":
        return idempotent
    return bool(errors) and may_repeat(errors[-1], idempotent=idempotent)


def retry_after(value: str | None, now_ms: int) -> float | None:
    """Read a ``Retry-After`` header: seconds or an HTTP date, bounded to :data:`MAX_RETRY_AFTER`.

    Returns:
        Seconds to wait, or ``None`` when the header is missing or unreadable.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = (moment - datetime.fromtimestamp(now_ms / 1000, tz=UTC)).total_seconds()
    return min(max(0.0, seconds), MAX_RETRY_AFTER) if math.isfinite(seconds) else None


async def repeat(
    attempt: Callable[[], Awaitable[_T]], *, clock: Clock, idempotent: bool, failures: list[CanonError]
) -> _T:
    """Run ``attempt`` up to :data:`ATTEMPTS` times, waiting 0.4 s, then 0.8 s, or what Canon asks for if longer.

    Args:
        attempt: one try; must send the identical request each time.
        clock: waits on it.
        idempotent: see :func:`may_repeat`.
        failures: receives the error of every failed attempt, in order, for :func:`verdict`.

    Raises:
        CanonError: of the last attempt. Cancellation passes through at once.
    """

    def note(state: tenacity.RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        if not isinstance(error, CanonError):
            return False
        failures.append(error)
        _log.debug("attempt %d of %d failed: %s", len(failures), ATTEMPTS, error.code)
        return may_repeat(error, idempotent=idempotent)

    def wait(state: tenacity.RetryCallState) -> float:
        backoff = FIRST_WAIT * 2.0 ** (state.attempt_number - 1)
        error = failures[-1]
        asked = error.retry_after if isinstance(error, CanonApiError) else None
        return max(backoff, asked or 0.0)

    async def once() -> _T:
        # tenacity tells coroutine functions by their kind, which a lambda does not have.
        return await attempt()

    retrying = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(ATTEMPTS), wait=wait, retry=note, sleep=clock.sleep, reraise=True
    )
    return await retrying(once)
