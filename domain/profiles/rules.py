"""Decides whether a stored profile is ours, complete and usable, and how a new one is written down (canon-wire §4.2).

It refuses to fill holes: an incomplete profile fails closed and says what is missing and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from canon_hermes_plugin.domain.environments import Endpoints, EnvironmentCatalog, endpoints_of
from canon_hermes_plugin.ports.errors import ConfigurationError, CredentialsError
from canon_hermes_plugin.ports.profiles import Document, Environment
from canon_hermes_plugin.ports.secret import Secret

CLIENT_TYPE = "hermes"
REQUIRED_FIELDS = (
    "apiKey",
    "agentId",
    "agentName",
    "registeredAt",
    "environmentId",
    "baseUrl",
    "streamUrl",
    "rtdbUrl",
    "firebaseApiKey",
)


@dataclass(frozen=True, slots=True)
class Profile:
    """A usable profile: bound to one agent in one environment. ``registered_at`` is UTC, ``YYYY-MM-DDTHH:MM:SSZ``."""

    name: str
    api_key: Secret
    agent_id: str
    agent_name: str
    registered_at: str
    environment: Environment

    def document(self) -> dict[str, Any]:
        """Return the entry as it stands in the profile file; holds the key in the clear."""
        return {
            "apiKey": self.api_key.reveal(),
            "agentId": self.agent_id,
            "agentName": self.agent_name,
            "registeredAt": self.registered_at,
            "clientType": CLIENT_TYPE,
            **endpoints_of(self.environment),
        }


def is_ours(document: Document) -> bool:
    """Tell whether the profile belongs to this runtime: an absent or empty ``clientType`` counts as ours."""
    return (document.get("clientType") or CLIENT_TYPE) == CLIENT_TYPE


def our_names(profiles: Mapping[str, Document]) -> list[str]:
    """Return the names of the profiles of this runtime, sorted, complete or not."""
    return sorted(name for name, document in profiles.items() if is_ours(document))


def parse_profile(name: str, document: Document, catalog: EnvironmentCatalog) -> Profile:
    """Return the profile when it may be used.

    Raises:
        CredentialsError: another runtime's profile, an unbound one (naming the missing fields), or endpoints the
            environment rules refuse. The text says what to do.
    """
    if not is_ours(document):
        raise CredentialsError(f"profile {name!r} belongs to another runtime; name one made by canon-hermes setup")
    missing = [field for field in REQUIRED_FIELDS if not _text(document.get(field))]
    if missing:
        raise CredentialsError(
            f"profile {name!r} is not bound to a Canon environment (missing {', '.join(missing)}); "
            "run canon-hermes setup and reconnect it"
        )
    try:
        environment = catalog.resolve(
            _text(document["environmentId"]),
            Endpoints(*(_text(document[field]) for field in ("baseUrl", "streamUrl", "rtdbUrl", "firebaseApiKey"))),
        )
    except ConfigurationError as error:
        raise CredentialsError(f"profile {name!r} cannot be used: {error}; run canon-hermes setup again") from error
    return Profile(
        name=name,
        api_key=Secret(_text(document["apiKey"])),
        agent_id=_text(document["agentId"]),
        agent_name=_text(document["agentName"]),
        registered_at=_text(document["registeredAt"]),
        environment=environment,
    )


def viable_names(profiles: Mapping[str, Document], catalog: EnvironmentCatalog) -> list[str]:
    """Return the names of the profiles that may be used, sorted."""
    return [name for name in our_names(profiles) if _usable(name, profiles[name], catalog)]


def _usable(name: str, document: Document, catalog: EnvironmentCatalog) -> bool:
    try:
        parse_profile(name, document, catalog)
    except CredentialsError:
        return False
    return True


def _text(value: object) -> str:
    """Return the trimmed string, or nothing for any other kind of value."""
    return value.strip() if isinstance(value, str) else ""
