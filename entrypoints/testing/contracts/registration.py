"""The registration desk: what every :class:`canon_hermes_plugin.ports.registration.RegistrationApi` promises (§2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import pytest
from canon_hermes_plugin.ports.errors import CanonApiError
from canon_hermes_plugin.ports.registration import (
    RegistrationAnswer,
    RegistrationApi,
    RegistrationRequest,
    RegistrationStatus,
    RegistrationTicket,
)
from canon_hermes_plugin.ports.secret import Secret
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop

REQUEST = RegistrationRequest("Ermes é", "a gateway", "+41791234567", "tests", f"hermes-{'a' * 32}")


class RegistrationDriver(Driver, Protocol):
    """The subject and the owner who decides.

    Attributes:
        api: the subject.
    """

    api: RegistrationApi

    def decide(self, status: RegistrationStatus) -> None:
        """Let the owner approve or reject what was asked for."""
        ...

    def forget(self) -> None:
        """Let Canon forget every request."""
        ...

    def seen(self) -> Sequence[dict[str, Any]]:
        """Return ``name`` and ``requestedAgentId`` of each request, in order."""
        ...


class RegistrationContract(Contract[RegistrationDriver]):
    """The suite."""

    @on_a_loop
    async def test_a_request_is_named_and_the_same_local_id_is_the_same_request(self, desk: RegistrationDriver) -> None:
        first = await desk.api.register(REQUEST)
        assert first.request_id
        assert await desk.api.register(REQUEST) == first
        assert await desk.api.register(replace(REQUEST, local_registration_id=f"hermes-{'b' * 32}")) != first
        assert [seen["name"] for seen in desk.seen()] == ["Ermes é", "Ermes é"]

    @on_a_loop
    async def test_a_reconnect_names_its_agent(self, desk: RegistrationDriver) -> None:
        await desk.api.register(replace(REQUEST, requested_agent_id="agent_old"))
        assert desk.seen()[0]["requestedAgentId"] == "agent_old"

    @pytest.mark.parametrize("status", ["approved", "rejected"])
    @on_a_loop
    async def test_a_decision_is_told_and_the_key_given_until_it_is_acknowledged(
        self, desk: RegistrationDriver, status: RegistrationStatus
    ) -> None:
        ticket = await desk.api.register(REQUEST)
        assert await desk.api.poll(ticket) == RegistrationAnswer("pending")
        desk.decide(status)
        answer = await desk.api.poll(ticket)
        assert answer.status == status
        assert (answer.api_key is not None) == (status == "approved")
        assert "agk" not in repr(answer)
        if status == "approved":
            assert answer.agent_id
            assert answer.agent_name
            await desk.api.acknowledge(ticket)
            assert (await desk.api.poll(ticket)).api_key is None

    @on_a_loop
    async def test_a_wrong_token_is_refused_and_a_forgotten_request_unknown(self, desk: RegistrationDriver) -> None:
        ticket = await desk.api.register(REQUEST)
        with pytest.raises(CanonApiError) as caught:
            await desk.api.poll(RegistrationTicket(ticket.request_id, Secret("wrong")))
        assert caught.value.status_code == 401
        desk.forget()
        with pytest.raises(CanonApiError) as caught:
            await desk.api.poll(ticket)
        assert caught.value.status_code == 404

    @on_a_loop
    async def test_closing_twice_is_harmless(self, desk: RegistrationDriver) -> None:
        await desk.api.register(REQUEST)
        await desk.api.close()
        await desk.api.close()
