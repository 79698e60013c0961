"""Faults a test orders in advance: the next call of an operation fails in a chosen way, or waits at a gate."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Literal

from canon_hermes_plugin.ports.errors import (
    AuthenticationError,
    CanonApiError,
    CanonError,
    CanonTransportError,
    Certainty,
    DeliveryError,
    EnvironmentIdentityError,
    EnvironmentUnreachableError,
    MalformedResponseError,
)

When = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Fault:
    """How one call fails.

    Attributes:
        certainty: what a durable send reports about itself.
        status: the HTTP status, or ``None`` for a transport failure.
        when: ``after`` takes effect first and loses the answer; ``before`` leaves Canon untouched.
        unreadable: the answer is a 2xx that cannot be read.
    """

    certainty: Certainty
    status: int | None = None
    when: When = "before"
    unreadable: bool = False

    @classmethod
    def definitive(cls, status: int = 400) -> Fault:
        """Canon refuses; nothing happened."""
        return cls("definitive", status)

    @classmethod
    def ambiguous(cls, status: int | None = 500) -> Fault:
        """The call failed without effect, but its caller cannot know that."""
        return cls("ambiguous", status)

    @classmethod
    def lost_response(cls) -> Fault:
        """The call took effect and its answer got lost."""
        return cls("ambiguous", None, "after")

    @classmethod
    def malformed(cls) -> Fault:
        """The call took effect and its answer cannot be read."""
        return cls("ambiguous", None, "after", unreadable=True)

    @classmethod
    def unreachable(cls) -> Fault:
        """The connection could not be opened; nothing happened."""
        return cls("definitive", None)

    def error(self, operation: str) -> CanonError:
        """Return the error the real client would raise for ``operation``."""
        if operation == "send":
            retryable = self.certainty == "ambiguous" or self.status in {None, 429, 503}
            return DeliveryError(
                f"injected {self.certainty} failure",
                certainty=self.certainty,
                retryable=retryable,
                status_code=self.status,
            )
        if self.unreadable:
            return MalformedResponseError("injected failure: the answer cannot be read")
        if operation == "verify":
            return self._unproven()
        if operation == "identify" and self.status in {401, 403}:
            return AuthenticationError(self.status)
        if self.status is not None:
            return CanonApiError(self.status)
        return CanonTransportError("injected transport failure", executed=self.certainty == "ambiguous")

    def _unproven(self) -> CanonError:
        if self.status is None or self.status >= 500:  # noqa: PLR2004 - canon-wire §1.1: a broken proxy is a matter of time
            return EnvironmentUnreachableError("injected failure: Canon is down, its health check got no answer")
        return EnvironmentIdentityError("injected failure: another environment answers")


class Faults:
    """Orders of faults and gates, taken first in, first out, per operation name.

    Attributes:
        outage: while set, every call fails so, whatever else was ordered.
    """

    def __init__(self) -> None:
        self.outage: Fault | None = None
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._gates: defaultdict[str, deque[asyncio.Event]] = defaultdict(deque)

    def fail_next(self, operation: str, fault: Fault, *, times: int = 1) -> None:
        """Let the next ``times`` calls of ``operation`` fail with ``fault``."""
        self._faults[operation].extend([fault] * times)

    def hold_next(self, operation: str) -> asyncio.Event:
        """Let the next call of ``operation`` wait, before it takes effect, until the returned event is set."""
        gate = asyncio.Event()
        self._gates[operation].append(gate)
        return gate

    async def enter(self, operation: str) -> Fault | None:
        """Pass the gate, then raise an ordered fault; return one that strikes after the effect."""
        if self._gates[operation]:
            await self._gates[operation].popleft().wait()
        if self.outage is not None:
            raise self.outage.error(operation)
        if not self._faults[operation]:
            return None
        fault = self._faults[operation].popleft()
        if fault.when == "before":
            raise fault.error(operation)
        return fault
