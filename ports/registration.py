"""How a new agent is registered with Canon (R19 to R21, canon-wire §2.1). Unauthenticated; used by setup alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from canon_hermes_plugin.ports.secret import Secret

RegistrationStatus = Literal["pending", "approved", "rejected"]


@dataclass(frozen=True, slots=True)
class RegistrationRequest:
    """What the owner is asked to approve.

    Attributes:
        name: the agent's display name.
        description: free text.
        owner_phone: the owner's phone in E.164; must match the owner's Canon account.
        developer_info: free text naming the integration.
        local_registration_id: ``hermes-`` and 32 hexadecimal digits, minted once per profile: makes R19 idempotent.
        requested_agent_id: the agent to reconnect, when the profile already has one.
    """

    name: str
    description: str
    owner_phone: str
    developer_info: str
    local_registration_id: str
    requested_agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class RegistrationTicket:
    """Names a submitted request. The token is ``None`` when Canon issued none."""

    request_id: str
    poll_token: Secret | None = None


@dataclass(frozen=True, slots=True)
class RegistrationAnswer:
    """One poll's answer.

    Attributes:
        status: an unknown status counts as ``pending``.
        api_key, agent_id: set when approved; either may still be missing, which is an error of the caller's flow.
        agent_name: falls back to ``agent_id``.
    """

    status: RegistrationStatus
    api_key: Secret | None = None
    agent_id: str | None = None
    agent_name: str | None = None


class RegistrationApi(Protocol):
    """The registration desk of one environment.

    Every call raises :class:`~canon_hermes_plugin.ports.errors.CanonError`; its ``retryable`` tells whether polling may
    go on. A ``CanonApiError`` with status 404 while polling means that Canon no longer knows the request.
    """

    async def register(self, request: RegistrationRequest) -> RegistrationTicket:
        """Submit a request (R19). Raises MalformedResponseError when the answer names no request id."""
        ...

    async def poll(self, ticket: RegistrationTicket) -> RegistrationAnswer:
        """Ask once how the request stands (R20)."""
        ...

    async def acknowledge(self, ticket: RegistrationTicket) -> None:
        """Tell Canon that the key is stored (R21). Any 2xx is accepted."""
        ...

    async def close(self) -> None:
        """Release the connection; idempotent."""
        ...
