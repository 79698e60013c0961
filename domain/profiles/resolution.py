"""Decides which agent this process speaks as (canon-wire §4.5): a direct key, a named profile, or the only one.

Pure: the environment, the platform's settings and the profiles come in as values. Endpoint variables count only
together with a direct key; they never override a profile's snapshot (canon-wire §3.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from canon_hermes_plugin.domain import settings
from canon_hermes_plugin.domain.environments import Endpoints, EnvironmentCatalog
from canon_hermes_plugin.domain.profiles.rules import parse_profile, viable_names
from canon_hermes_plugin.ports.errors import CredentialsError
from canon_hermes_plugin.ports.profiles import Connection, Document, PlatformSettings, ProfileStore
from canon_hermes_plugin.ports.secret import Secret


@dataclass(frozen=True, slots=True)
class DirectKey:
    """A key given outside the profile file, and where it was found."""

    api_key: Secret
    source: str


def find_direct_key(environ: Mapping[str, str], platform: PlatformSettings) -> DirectKey | None:
    """Return the direct key: environment, platform attribute ``api_key`` then ``token``, platform extra.

    Raises:
        ConfigurationError: the first place that holds one holds no plain text.
    """
    if key := settings.API_KEY.from_environ(environ):
        return DirectKey(Secret(key), f"environment {settings.API_KEY.env}")
    for attribute, value in (("api_key", platform.api_key), ("token", platform.token)):
        if key := settings.scalar_text(value, f"platform {attribute}"):
            return DirectKey(Secret(key), f"platform {attribute}")
    found = settings.API_KEY.from_extra(platform.extra)
    return None if found is None else DirectKey(Secret(found[1]), f"platform extra {found[0]}")


def resolve_direct(
    key: DirectKey, environ: Mapping[str, str], platform: PlatformSettings, catalog: EnvironmentCatalog
) -> Connection:
    """Return the connection of a direct key.

    Raises:
        CredentialsError: no environment id; none is assumed.
        ConfigurationError: an unknown environment or an endpoint the rules refuse.
    """
    environment_id = settings.ENVIRONMENT_ID.value(environ, platform.extra)
    if environment_id is None:
        allowed = ", ".join(catalog.ids())
        raise CredentialsError(
            f"a Canon API key is set ({key.source}) without {settings.ENVIRONMENT_ID.env}; set it to one of: {allowed}"
        )
    endpoints = Endpoints(
        base_url=settings.BASE_URL.value(environ, platform.extra),
        stream_url=settings.STREAM_URL.value(environ, platform.extra),
        rtdb_url=settings.RTDB_URL.value(environ, platform.extra),
        firebase_api_key=settings.FIREBASE_API_KEY.value(environ, platform.extra),
    )
    return Connection(
        api_key=key.api_key,
        environment=catalog.resolve(environment_id, endpoints),
        mode="direct",
        source=key.source,
    )


def resolve_profile(
    name: str | None, profiles: Mapping[str, Document], catalog: EnvironmentCatalog
) -> Connection | None:
    """Return the connection of profile ``name``, or of the only usable one; ``None`` when there is none at all.

    Raises:
        CredentialsError: the named profile is absent or unusable, or several are usable and none is named.
    """
    if name is None:
        usable = viable_names(profiles, catalog)
        if not usable:
            return None
        if len(usable) > 1:
            raise CredentialsError(
                f"several Canon profiles are usable; set {settings.AGENT.env} to one of: {', '.join(usable)}"
            )
        name = usable[0]
    elif name not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise CredentialsError(f"there is no Canon profile {name!r} (stored: {known}); run canon-hermes setup")
    profile = parse_profile(name, profiles[name], catalog)
    return Connection(
        api_key=profile.api_key,
        environment=profile.environment,
        mode="profile",
        source=f"profile {name}",
        profile=name,
        agent_id=profile.agent_id,
        agent_name=profile.agent_name,
    )


def resolve_connection(
    environ: Mapping[str, str],
    platform: PlatformSettings,
    profiles: Mapping[str, Document],
    catalog: EnvironmentCatalog,
) -> Connection | None:
    """Return the agent to speak as, or ``None`` when no credentials exist at all. Strict: every fault raises.

    Raises:
        CredentialsError: credentials exist but cannot be used.
        ConfigurationError: a setting is malformed.
    """
    key = find_direct_key(environ, platform)
    if key is not None:
        return resolve_direct(key, environ, platform, catalog)
    return resolve_profile(settings.AGENT.value(environ, platform.extra), profiles, catalog)


class CredentialResolver:
    """Resolves with the stored profiles. Blocking: on an event loop, call it in a thread.

    The store is read only when no direct key decides, so a broken profile file cannot hurt a process with one.
    """

    def __init__(self, store: ProfileStore, catalog: EnvironmentCatalog) -> None:
        self._store = store
        self._catalog = catalog

    def find(self, environ: Mapping[str, str], platform: PlatformSettings) -> Connection | None:
        """Return the agent to speak as, or ``None`` without any credentials; raises as :func:`resolve_connection`."""
        key = find_direct_key(environ, platform)
        if key is not None:
            return resolve_direct(key, environ, platform, self._catalog)
        name = settings.AGENT.value(environ, platform.extra)
        return resolve_profile(name, self._store.load(), self._catalog)

    def require(self, environ: Mapping[str, str], platform: PlatformSettings) -> Connection:
        """Return the agent to speak as.

        Raises:
            CredentialsError: also when there are no credentials at all.
        """
        found = self.find(environ, platform)
        if found is None:
            raise CredentialsError(
                f"no Canon credentials: no API key and no usable profile in {self._store.location()}; "
                "run canon-hermes setup"
            )
        return found
