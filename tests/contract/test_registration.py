"""The registration desk over HTTP and its twin keep the same promises (canon-wire §2.1)."""

import httpx
import pytest
from canon_hermes_plugin.domain.environments import Endpoints
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.canon.registration import HttpRegistration, keyless
from canon_hermes_plugin.infrastructure.files.environment_catalog import packaged_catalog
from canon_hermes_plugin.infrastructure.memory.registration import MemoryRegistration
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.ports.errors import CanonApiError, CanonTransportError, MalformedResponseError
from canon_hermes_plugin.ports.registration import RegistrationTicket
from canon_hermes_plugin.testing.contracts import RegistrationContract
from canon_hermes_plugin.testing.contracts.registration import REQUEST


def environment(canon):
    endpoints = Endpoints(canon.base_url, canon.base_url, "http://localhost:9", "key")
    return packaged_catalog().resolve("canon-dev-v1", endpoints)


class Loopback:
    """The real adapter against the loopback Canon."""

    def __init__(self, canon):
        self.canon, self.api = canon, HttpRegistration(CanonLink(keyless(environment(canon)), clock=VirtualClock()))

    async def close(self):
        await self.api.close()

    def decide(self, status):
        (self.canon.registrations.approve if status == "approved" else self.canon.registrations.reject)()

    def forget(self):
        self.canon.registrations.forget()

    def seen(self):
        return [request.body for request in self.canon.registrations.requests]


class Twin:
    """The in-memory desk, driven the same way."""

    def __init__(self):
        self.api = MemoryRegistration()
        self.forget = self.api.forget

    async def close(self):
        await self.api.close()

    def decide(self, status):
        self.api.status = status

    def seen(self):
        return [{"name": request.name, "requestedAgentId": request.requested_agent_id} for request in self.api.requests]


@pytest.fixture(scope="module")
def canon():
    with LoopbackCanon() as server:
        yield server


@pytest.fixture
async def http(canon):
    canon.registrations.requests.clear()
    driver = Loopback(canon)
    yield driver
    await driver.api.close()


async def test_no_registration_call_carries_a_bearer(http, canon):
    await http.api.poll(await http.api.register(REQUEST))
    headers = [request.headers for request in canon.requests("register") + canon.requests("register.status")]
    assert headers
    assert not any("authorization" in {name.lower() for name in names} for names in headers)


@pytest.mark.parametrize("body", ["{}", "[]", '{"requestId": ""}', '{"requestId": null, "pollToken": "t"}'])
async def test_an_answer_without_a_request_id_is_malformed(canon, body):
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=body))
    api = HttpRegistration(CanonLink(keyless(environment(canon)), clock=VirtualClock(), transport=transport))
    with pytest.raises(MalformedResponseError):
        await api.register(REQUEST)
    await api.close()


async def test_an_unknown_status_counts_as_pending(canon):
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={"status": "in review", "apiKey": 5}))
    api = HttpRegistration(CanonLink(keyless(environment(canon)), clock=VirtualClock(), transport=transport))
    assert (await api.poll(RegistrationTicket("r"))).status == "pending"
    await api.close()


async def test_a_lost_answer_is_a_transport_error_and_the_retry_finds_the_same_request(http, canon):
    canon.fault("register", kind="drop", after=True)
    with pytest.raises(CanonTransportError):
        await http.api.register(REQUEST)
    assert (await http.api.register(REQUEST)).request_id == "req_1"


async def test_an_id_from_the_server_cannot_reach_another_path(http, canon):
    with pytest.raises(CanonApiError):
        await http.api.poll(RegistrationTicket("a/../../conversations?x=1"))
    assert not canon.requests("conversations")


class TestHttp(RegistrationContract):
    subject = HttpRegistration

    @pytest.fixture(autouse=True)
    def empty(self, canon):
        canon.registrations.requests.clear()
        self.canon = canon

    def factory(self, tmp_path):
        return Loopback(self.canon)


class TestMemory(RegistrationContract):
    subject = MemoryRegistration

    def factory(self, tmp_path):
        return Twin()
