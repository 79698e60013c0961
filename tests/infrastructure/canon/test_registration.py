"""The registration desk (canon-wire §2.1)."""

from __future__ import annotations

import httpx
import pytest
from canon_hermes_plugin.infrastructure.canon.client import CanonHttp
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.canon.registration import HttpRegistration
from canon_hermes_plugin.ports.errors import CanonApiError, CanonError, EnvironmentIdentityError, MalformedResponseError
from canon_hermes_plugin.ports.registration import RegistrationRequest, RegistrationTicket
from canon_hermes_plugin.ports.secret import Secret

REQUEST = RegistrationRequest("Hermes", "An agent", "+4930123456", "canon-hermes", "hermes-" + "0" * 32)
TICKET = RegistrationTicket("req_31", Secret("pt_x"))


@pytest.fixture
def desk(clock, connect_to, script):
    def make(*answers):
        played = script(*answers)
        link = CanonLink(connect_to().environment, clock=clock, transport=httpx.MockTransport(played))
        return HttpRegistration(link), played

    return make


async def test_a_registration_is_submitted_without_a_bearer(desk):
    api, script = desk((201, {"requestId": "req_31", "pollToken": "pt_x"}))
    ticket = await api.register(REQUEST)
    assert (ticket.request_id, ticket.poll_token.reveal()) == ("req_31", "pt_x")
    (request,) = script.requests
    assert str(request.url) == "https://api.canon.example/v1/agents/register"
    assert "authorization" not in request.headers
    assert request.headers["content-type"] == "application/json"
    assert script.bodies() == [
        {
            "name": "Hermes",
            "description": "An agent",
            "ownerPhone": "+4930123456",
            "developerInfo": "canon-hermes",
            "clientType": "hermes",
            "localRegistrationId": "hermes-" + "0" * 32,
        }
    ]


async def test_a_reconnect_names_the_agent_it_asks_for(desk):
    from dataclasses import replace

    api, script = desk((200, {"requestId": "r"}))
    ticket = await api.register(replace(REQUEST, requested_agent_id="agent_7Qd"))
    assert ticket.poll_token is None
    assert script.bodies()[0]["requestedAgentId"] == "agent_7Qd"


@pytest.mark.parametrize("answer", [{}, [], {"requestId": ""}, {"requestId": None}])
async def test_an_answer_without_a_request_id_is_malformed(desk, answer):
    api, _ = desk((200, answer))
    with pytest.raises(MalformedResponseError):
        await api.register(REQUEST)


async def test_polling_sends_the_token_and_reads_the_approval(desk):
    approved = {"status": "approved", "apiKey": "agk_live_x", "agentId": "agent_7Qd", "agentName": "Ermes"}
    api, script = desk((200, {"status": "pending"}), (200, approved))
    assert (await api.poll(TICKET)).status == "pending"
    answer = await api.poll(TICKET)
    assert (answer.status, answer.api_key.reveal(), answer.agent_id, answer.agent_name) == (
        "approved",
        "agk_live_x",
        "agent_7Qd",
        "Ermes",
    )
    for request in script.requests:
        assert (request.method, request.url.path) == ("GET", "/v1/agents/status/req_31")
        assert request.headers["x-canon-poll-token"] == "pt_x"
        assert "authorization" not in request.headers


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"status": "rejected"}, "rejected"),
        ({"status": "brewing"}, "pending"),
        ({"status": ["approved"]}, "pending"),
        ({}, "pending"),
        ([], "pending"),
    ],
)
async def test_only_known_statuses_decide(desk, body, status):
    api, _ = desk((200, body))
    assert (await api.poll(TICKET)).status == status


async def test_an_approval_may_lack_its_parts(desk):
    api, _ = desk((200, {"status": "approved", "agentId": "agent_7Qd"}))
    answer = await api.poll(TICKET)
    assert (answer.api_key, answer.agent_name) == (None, "agent_7Qd")


async def test_without_a_token_none_is_sent_and_ids_are_encoded(desk):
    api, script = desk(200)
    await api.acknowledge(RegistrationTicket("a/../b"))
    assert script.requests[0].method == "POST"
    assert script.requests[0].url.raw_path == b"/v1/agents/status/a%2F..%2Fb/ack"
    assert "x-canon-poll-token" not in script.requests[0].headers


@pytest.mark.parametrize(("answer", "retryable"), [(404, False), (500, True), (429, True), (httpx.ConnectError, True)])
async def test_defect_22_a_failed_poll_says_whether_polling_may_go_on(desk, answer, retryable):
    api, _ = desk(answer)
    with pytest.raises(CanonError) as failure:
        await api.poll(TICKET)
    assert failure.value.retryable is retryable


async def test_the_environment_is_proved_without_a_key(clock, connect_to, script):
    played = script((200, {"environmentId": "other"}))
    link = CanonLink(connect_to().environment, clock=clock, transport=httpx.MockTransport(played))
    with pytest.raises(EnvironmentIdentityError):
        await CanonHttp(link).verify()
    assert "authorization" not in played.requests[0].headers


async def test_a_refused_registration_carries_canons_sentence(desk):
    api, _ = desk((400, {"error": "phone unknown", "code": "NO_OWNER"}))
    with pytest.raises(CanonApiError) as failure:
        await api.register(REQUEST)
    assert (failure.value.detail, failure.value.machine_code) == ("phone unknown", "NO_OWNER")
