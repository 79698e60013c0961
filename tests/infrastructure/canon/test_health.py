"""Identity by header and body, whatever the status (canon-wire §1.1)."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from canon_hermes_plugin.infrastructure.canon.health import RECENT, RecentProofs
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.ports.errors import EnvironmentIdentityError, EnvironmentUnreachableError

BODY = {"environmentId": "canon-dev-v1", "projectId": "canonmail-dev"}
HEADER = {"X-Canon-Environment-Id": "canon-dev-v1"}
GOOD = (200, BODY, HEADER)


async def test_both_addresses_are_probed_in_order_without_the_key(canon):
    client, script = canon(GOOD)
    await client.verify()
    assert [str(request.url) for request in script.requests] == [
        "https://api.canon.example/v1/healthz/",
        "https://stream.canon.example/health",
    ]
    for request in script.requests:
        assert "authorization" not in request.headers
        assert request.headers["accept"] == "application/json"
        assert request.extensions["timeout"] == {"connect": 10.0, "read": 10.0, "write": 10.0, "pool": 10.0}


@pytest.mark.parametrize("status", [200, 404, 500, 503])
async def test_the_right_identity_is_accepted_whatever_the_status(canon, status):
    client, _ = canon((status, BODY, HEADER))
    await client.verify()


@pytest.mark.parametrize(
    "answer",
    [
        (200, BODY, {"X-Canon-Environment-Id": "canon-prod-v1"}),
        (200, {**BODY, "environmentId": "canon-prod-v1"}, HEADER),
        (200, {**BODY, "projectId": "other"}, HEADER),
        (200, {**BODY, "projectId": 5}, HEADER),
        (503, BODY, {"X-Canon-Environment-Id": "canon-prod-v1"}),
        (200, BODY),
        (200, b"<html>a web page</html>"),
        (404, {}),
        (302, b"", {"location": "https://elsewhere.example/"}),
        (200, [], HEADER),
        (200, b"[" * 100_000, HEADER),
    ],
)
async def test_another_identity_is_permanent(canon, answer):
    client, _ = canon(answer)
    with pytest.raises(EnvironmentIdentityError) as failure:
        await client.verify()
    assert not failure.value.retryable


@pytest.mark.parametrize(
    "answer",
    [
        (502, b"<html>bad gateway</html>"),
        (503, {}),
        (500, b""),
        (429, {}),
        (502, b"bad gateway", HEADER),
        httpx.ConnectError,
        httpx.ReadTimeout,
        httpx.RemoteProtocolError,
    ],
)
async def test_defect_7_nobody_there_or_an_unidentified_5xx_is_a_matter_of_time(canon, answer):
    client, _ = canon(answer)
    with pytest.raises(EnvironmentUnreachableError) as failure:
        await client.verify()
    assert failure.value.retryable


async def test_the_stream_address_must_prove_itself_too(canon):
    client, _ = canon(GOOD, (200, {**BODY, "environmentId": "x"}, HEADER))
    with pytest.raises(EnvironmentIdentityError, match="stream"):
        await client.verify()


async def test_defect_8_a_recent_proof_spares_the_probes_and_outlives_a_stream_outage(canon):
    clock = VirtualClock()
    proofs = RecentProofs(clock)
    client, script = canon(GOOD, GOOD, httpx.ConnectError, proofs=proofs)
    await client.verify()
    await client.verify()
    other, silent = canon(httpx.ConnectError, proofs=proofs)
    await other.verify()
    assert (len(script.requests), len(silent.requests)) == (2, 0)
    await clock.advance(RECENT)
    with pytest.raises(EnvironmentUnreachableError):
        await client.verify()


async def test_a_failed_proof_is_not_remembered(canon):
    client, script = canon((502, b""), GOOD)
    with pytest.raises(EnvironmentUnreachableError):
        await client.verify()
    await client.verify()
    assert len(script.requests) == 3


async def test_concurrent_verifications_probe_once(canon):
    client, script = canon(GOOD)
    await asyncio.gather(*(client.verify() for _ in range(5)))
    assert len(script.requests) == 2
