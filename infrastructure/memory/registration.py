"""An in-memory registration desk: what the owner decides is said by the test or the caller."""

from __future__ import annotations

from typing import final

from canon_hermes_plugin.ports.errors import CanonApiError
from canon_hermes_plugin.ports.registration import (
    RegistrationAnswer,
    RegistrationRequest,
    RegistrationStatus,
    RegistrationTicket,
)
from canon_hermes_plugin.ports.secret import Secret


@final
class MemoryRegistration:
    """Implements :class:`~canon_hermes_plugin.ports.registration.RegistrationApi` without a network.

    Attributes:
        requests: what was submitted, in order; the same local id counts once.
        status: what the owner has decided about every request.
        api_key: the key of an approved agent, given until it is acknowledged.
    """

    def __init__(self, *, api_key: str = "agk_test_key", agent_id: str = "agent_1", agent_name: str = "Ermes") -> None:
        self.requests: list[RegistrationRequest] = []
        self.status: RegistrationStatus = "pending"
        self.api_key = api_key
        self._agent = (agent_id, agent_name)
        self._acknowledged: set[str] = set()

    async def register(self, request: RegistrationRequest) -> RegistrationTicket:
        ids = [known.local_registration_id for known in self.requests]
        if request.local_registration_id not in ids:
            self.requests.append(request)
            ids.append(request.local_registration_id)
        number = ids.index(request.local_registration_id) + 1
        return RegistrationTicket(f"req_{number}", Secret(f"token_{number}"))

    async def poll(self, ticket: RegistrationTicket) -> RegistrationAnswer:
        self._check(ticket)
        if self.status != "approved":
            return RegistrationAnswer(self.status)
        key = None if ticket.request_id in self._acknowledged else Secret(self.api_key)
        return RegistrationAnswer("approved", key, *self._agent)

    async def acknowledge(self, ticket: RegistrationTicket) -> None:
        self._check(ticket)
        self._acknowledged.add(ticket.request_id)

    async def close(self) -> None:
        pass

    def forget(self) -> None:
        """Drop every request: asking for one is now refused with 404."""
        self.requests.clear()

    def _check(self, ticket: RegistrationTicket) -> None:
        known = {f"req_{number}": Secret(f"token_{number}") for number in range(1, len(self.requests) + 1)}
        if ticket.request_id not in known:
            raise CanonApiError(404)
        if ticket.poll_token != known[ticket.request_id]:
            raise CanonApiError(401)
