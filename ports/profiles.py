"""Who the agent is and where its Canon lives: the values, and the stores that keep them (canon-wire §2.4, §3, §4).

The stores are synchronous and touch the disk: on an event loop, call them in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from canon_hermes_plugin.ports.secret import Secret

Document = Mapping[str, Any]
"""One decoded JSON object, as it stands in a file."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A complete, validated endpoint snapshot of one Canon environment (canon-wire §3.3).

    Attributes:
        environment_id: the trust domain, for example ``canon-prod-v1``.
        project_id: what the environment's health answers must name.
        base_url: base of every REST call, without a trailing slash; may carry a path prefix.
        stream_url: base of the event stream and its health probe, without a trailing slash.
        rtdb_url: carried and validated, never contacted.
        firebase_api_key: public client configuration; carried, never used.
    """

    environment_id: str
    project_id: str
    base_url: str
    stream_url: str
    rtdb_url: str
    firebase_api_key: str


@dataclass(frozen=True, slots=True)
class Connection:
    """Everything needed to speak to Canon as one agent.

    Attributes:
        api_key: the agent's bearer key.
        environment: where the key is valid.
        mode: ``direct`` for a key from the environment or the platform config, ``profile`` for a stored profile.
        source: where the key was found, for people: ``environment CANON_API_KEY``, ``platform extra api_key``,
            ``profile ops``.
        profile: the profile's name in profile mode.
        agent_id: the agent's Canon id when the profile knows it.
        agent_name: the agent's display name when the profile knows it.
    """

    api_key: Secret
    environment: Environment
    mode: Literal["direct", "profile"]
    source: str
    profile: str | None = None
    agent_id: str | None = None
    agent_name: str | None = None

    @property
    def environment_id(self) -> str:
        """The trust domain's id."""
        return self.environment.environment_id

    @property
    def project_id(self) -> str:
        """The project id the environment must prove."""
        return self.environment.project_id

    @property
    def base_url(self) -> str:
        """Base of every REST call."""
        return self.environment.base_url

    @property
    def stream_url(self) -> str:
        """Base of the event stream."""
        return self.environment.stream_url


@dataclass(frozen=True, slots=True)
class PlatformSettings:
    """What the host's platform configuration says about credentials (hermes-host §10.2).

    Attributes:
        api_key: the platform's ``api_key`` attribute.
        token: the platform's ``token`` attribute.
        extra: the platform's ``extra`` mapping.
    """

    api_key: str | None = None
    token: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __repr__(self) -> str:
        return "PlatformSettings(***)"


class ProfileStore(Protocol):
    """The profile file: one JSON object keyed by profile name."""

    def location(self) -> str:
        """Return where the profiles live, for messages."""
        ...

    def load(self) -> Mapping[str, Document]:
        """Return every profile, bootstrap profiles included (canon-wire §4.4).

        A missing file without a bootstrap value is no profiles. Profiles of other runtimes and unknown fields are
        returned as they stand. The bootstrap value is JSON, plain or in base64, white space around it allowed; it adds
        profiles that are absent and overwrites none.

        Raises:
            ConfigurationError: the file cannot be read, it is not an object of objects, or the bootstrap value is not
                one whose names are not blank. An error about the bootstrap names its variable,
                ``CANON_AGENTS_JSON_BOOTSTRAP``, and never quotes the value, which holds keys.
        """
        ...

    def save(self, name: str, document: Document) -> None:
        """Replace the whole entry ``name`` durably; every other entry stays as it was.

        Raises:
            ConfigurationError: the file cannot be read, or is not an object of objects; nothing was written.
            OSError: the file could not be written; the old one is intact.
        """
        ...


class PendingRegistrations(Protocol):
    """Registrations that wait for their approval, keyed by profile name (canon-wire §2.4)."""

    def location(self) -> str:
        """Return where the registrations live, for messages."""
        ...

    def load(self) -> Mapping[str, Document]:
        """Return every pending registration; a malformed file is a ConfigurationError, never thrown away."""
        ...

    def update(self, name: str, change: Callable[[Document | None], Document | None]) -> Document | None:
        """Replace entry ``name`` by ``change(current)`` in one locked step and return the new entry.

        ``None`` stands for no entry, on both sides.
        """
        ...
