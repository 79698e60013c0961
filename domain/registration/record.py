"""The pending registration's record: what is remembered of a request, and when it may be taken up again (§2.4).

Pure: documents in, documents out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from canon_hermes_plugin.domain.environments import Endpoints, EnvironmentCatalog, endpoints_of
from canon_hermes_plugin.ports.errors import ConfigurationError
from canon_hermes_plugin.ports.profiles import Document, Environment
from canon_hermes_plugin.ports.registration import RegistrationTicket
from canon_hermes_plugin.ports.secret import Secret

_BOUND = ("environmentId", "baseUrl", "streamUrl", "rtdbUrl", "firebaseApiKey")


@dataclass(frozen=True, slots=True)
class Application:
    """What the operator asked for. ``profile`` is the local name; ``owner_phone`` is E.164."""

    profile: str
    name: str
    description: str
    owner_phone: str
    environment: Environment


def slug(name: str) -> str:
    """Return the default profile name for a display name (interactions §13)."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "hermes"


def phone_fault(phone: str) -> str | None:
    """Return why ``phone`` is no number in E.164, or ``None``."""
    return None if re.fullmatch(r"\+[1-9][0-9]{6,14}", phone) else "write it as +, country code and number, digits only"


def opened(entry: Document | None, local_id: str, environment: Environment) -> dict[str, Any]:
    """Return the record to keep before anything goes over the network.

    A record without a request is bound to ``environment`` anew and keeps its local id.

    Raises:
        ConfigurationError: the record holds a request of another environment; it is left alone.
    """
    current = dict(entry or {})
    current.setdefault("localRegistrationId", local_id)
    wanted = endpoints_of(environment)
    if request_of(current) is None:
        return {**current, **wanted}
    differing = [name for name in _BOUND if current.get(name) != wanted[name]]
    if differing:
        raise ConfigurationError(
            f"a registration is pending for another Canon environment (different: {', '.join(differing)}); "
            "finish it with its own addresses, or choose another profile name"
        )
    return current


def submitted(entry: Document, ticket: RegistrationTicket, at: str) -> dict[str, Any]:
    """Return the record with its request; ``at`` is UTC, ``YYYY-MM-DDTHH:MM:SSZ``."""
    token = {} if ticket.poll_token is None else {"pollToken": ticket.poll_token.reveal()}
    return {**entry, "requestId": ticket.request_id, **token, "submittedAt": at}


def stored(entry: Document, agent_id: str) -> dict[str, Any]:
    """Return the record saying that the key of ``agent_id`` is on disk."""
    return {**entry, "storedAgentId": agent_id}


def request_of(entry: Mapping[str, Any]) -> RegistrationTicket | None:
    """Return the submitted request, or ``None`` when there is none."""
    request_id, token = entry.get("requestId"), entry.get("pollToken")
    if not isinstance(request_id, str) or not request_id:
        return None
    return RegistrationTicket(request_id, Secret(token) if isinstance(token, str) and token else None)


def environment_of(entry: Document, catalog: EnvironmentCatalog) -> Environment | None:
    """Return the environment a pending request is bound to, ``None`` when the record names none.

    Raises:
        ConfigurationError: the record's endpoints are refused by the environment rules.
    """
    values = [entry.get(name) for name in _BOUND]
    texts = [value for value in values if isinstance(value, str) and value]
    if len(texts) != len(values):
        return None
    return catalog.resolve(texts[0], Endpoints(*texts[1:]))


def is_stored(entry: Document, profile: Document | None) -> bool:
    """Tell whether an earlier run already saved this request's key into ``profile``."""
    agent_id = entry.get("storedAgentId")
    return bool(agent_id) and profile is not None and profile.get("agentId") == agent_id
