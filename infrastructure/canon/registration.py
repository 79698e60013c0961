"""The registration desk over HTTP (R19 to R21, canon-wire §2.1): three unauthenticated calls of setup.

Decides which call is which request and which answer means what. It refuses to know when to ask again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from canon_hermes_plugin.infrastructure.canon.address import join
from canon_hermes_plugin.infrastructure.canon.link import CanonLink, Request, encode
from canon_hermes_plugin.infrastructure.canon.wire import first_of
from canon_hermes_plugin.ports.errors import MalformedResponseError
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.registration import (
    RegistrationAnswer,
    RegistrationRequest,
    RegistrationStatus,
    RegistrationTicket,
)
from canon_hermes_plugin.ports.secret import Secret

_TOKEN_HEADER = "x-canon-poll-token"  # noqa: S105 - a header's name
_DECISIONS: Mapping[object, RegistrationStatus] = {"approved": "approved", "rejected": "rejected"}


def keyless(environment: Environment) -> Connection:
    """Return a connection for calls without authentication; its key is a word that never crosses the wire."""
    return Connection(Secret("unregistered"), environment, "direct", "setup")


@final
class HttpRegistration:
    """Implements :class:`~canon_hermes_plugin.ports.registration.RegistrationApi`.

    Args:
        link: owned: :meth:`close` closes it.
    """

    def __init__(self, link: CanonLink) -> None:
        self._link = link
        self._base = link.environment.base_url

    async def register(self, request: RegistrationRequest) -> RegistrationTicket:
        body: dict[str, Any] = {
            "name": request.name,
            "description": request.description,
            "ownerPhone": request.owner_phone,
            "developerInfo": request.developer_info,
            "clientType": "hermes",
            "localRegistrationId": request.local_registration_id,
        }
        if request.requested_agent_id:
            body["requestedAgentId"] = request.requested_agent_id
        url = join(self._base, "agents", "register")
        answer = await self._link.call(Request("POST", url, content=encode(body), authorized=False))
        request_id = first_of(answer, "requestId")
        if request_id is None:
            raise MalformedResponseError("Canon took the registration without naming the request")
        return RegistrationTicket(request_id, _secret(answer, "pollToken"))

    async def poll(self, ticket: RegistrationTicket) -> RegistrationAnswer:
        url = join(self._base, "agents", "status", ticket.request_id)
        answer = await self._link.call(Request("GET", url, headers=_headers(ticket), authorized=False))
        return RegistrationAnswer(
            status=_DECISIONS.get(first_of(answer, "status"), "pending"),
            api_key=_secret(answer, "apiKey"),
            agent_id=first_of(answer, "agentId"),
            agent_name=first_of(answer, "agentName") or first_of(answer, "agentId"),
        )

    async def acknowledge(self, ticket: RegistrationTicket) -> None:
        url = join(self._base, "agents", "status", ticket.request_id, "ack")
        await self._link.call(Request("POST", url, headers=_headers(ticket), authorized=False))

    async def close(self) -> None:
        await self._link.close()


def _headers(ticket: RegistrationTicket) -> dict[str, str | bytes]:
    return {} if ticket.poll_token is None else {_TOKEN_HEADER: ticket.poll_token.reveal().encode("utf-8")}


def _secret(answer: object, key: str) -> Secret | None:
    value = first_of(answer, key)
    return None if value is None else Secret(value)
