"""Who answers at the configured addresses (R1, R2, canon-wire §1.1): decides identity by header and body alone.

The HTTP status does not matter when the identity is complete and right. Another identity is permanent; nobody, or an
answer of a broken proxy, is a matter of time. A recent proof is remembered, so that an outage of the stream's address
does not block every tool call (§13 rows 7 and 8).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import final

from canon_hermes_plugin.infrastructure.canon import retry, wire
from canon_hermes_plugin.infrastructure.canon.link import HEALTH_TIMEOUT, Answer, CanonLink, Request
from canon_hermes_plugin.ports.errors import CanonError, EnvironmentIdentityError, EnvironmentUnreachableError
from canon_hermes_plugin.ports.profiles import Environment
from canon_hermes_plugin.ports.time import Clock

RECENT = 300.0
"""Seconds a proof stays good."""
_SETTINGS = {"API": "CANON_BASE_URL", "stream": "CANON_STREAM_URL"}
_HEADER = "x-canon-environment-id"


@final
class RecentProofs:
    """Proofs per environment, shared by every connection of the process; safe across threads (plain dict steps)."""

    def __init__(self, clock: Clock, seconds: float = RECENT) -> None:
        self._clock = clock
        self._seconds = seconds
        self._proved: dict[tuple[str, str, str, str], float] = {}

    def recent(self, environment: Environment) -> bool:
        """Whether ``environment`` proved its identity a short while ago."""
        proved_at = self._proved.get(_key(environment))
        return proved_at is not None and self._clock.monotonic() - proved_at < self._seconds

    def add(self, environment: Environment) -> None:
        """Remember a proof."""
        self._proved[_key(environment)] = self._clock.monotonic()


@final
class EnvironmentCheck:
    """Proves one connection's environment."""

    def __init__(self, link: CanonLink, proofs: RecentProofs) -> None:
        self._link = link
        self._proofs = proofs
        self._turn: asyncio.Lock | None = None

    async def verify(self) -> None:
        """Return when both addresses prove the identity, or did so recently. Concurrent calls probe once."""
        if self._turn is None:
            self._turn = asyncio.Lock()
        environment = self._link.environment
        async with self._turn:
            if self._proofs.recent(environment):
                return
            await self._probe(environment.base_url, "/healthz/", "API")
            await self._probe(environment.stream_url, "/health", "stream")
            self._proofs.add(environment)

    async def _probe(self, address: str, path: str, which: str) -> None:
        headers = {"Accept": "application/json"}
        request = Request("GET", f"{address}{path}", headers=headers, authorized=False, timeout=HEALTH_TIMEOUT)
        failure: str | None = None
        try:
            answer = await self._link.exchange(request)
        except CanonError as error:
            failure = (
                f"the {which} address {address} does not answer: {error}; check the network and that address "
                f"({_SETTINGS[which]} or the profile), or try again later"
            )
        else:
            judge(answer, self._link.environment, which)
        if failure:
            raise EnvironmentUnreachableError(failure)


def judge(answer: Answer, environment: Environment, which: str) -> None:
    """Accept ``answer`` as proof of ``environment``'s identity, or raise.

    Raises:
        EnvironmentIdentityError: it names another identity, or is a lasting answer that names none.
        EnvironmentUnreachableError: it names no identity and its status says that this may pass.
    """
    body = _object(answer.body)
    claims = [
        (answer.headers.get(_HEADER), environment.environment_id),
        (body.get("environmentId"), environment.environment_id),
        (body.get("projectId"), environment.project_id),
    ]
    if all(claimed == expected for claimed, expected in claims):
        return
    expected_id = environment.environment_id
    if not all(claimed is None or claimed == expected for claimed, expected in claims):
        raise EnvironmentIdentityError(f"the {which} address belongs to another environment than {expected_id}")
    if retry.retryable_status(answer.status):
        raise EnvironmentUnreachableError(
            f"the {which} address answers with HTTP status {answer.status} and without its identity"
        )
    raise EnvironmentIdentityError(
        f"the {which} address does not identify itself as {expected_id} (HTTP status {answer.status})"
    )


def _key(environment: Environment) -> tuple[str, str, str, str]:
    return environment.environment_id, environment.project_id, environment.base_url, environment.stream_url


def _object(body: bytes) -> Mapping[str, object]:
    try:
        return wire.as_object(json.loads(body))
    except (ValueError, RecursionError):
        return {}
