"""Decides which Canon environments exist and whether a set of endpoints may stand for one (canon-wire §3).

It knows no file, no process environment and no network: the catalog comes in as a decoded document, and whether the
endpoints tell the truth is proven at run time by the environment probe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from canon_hermes_plugin.ports.errors import ConfigurationError
from canon_hermes_plugin.ports.profiles import Environment

_PLAIN_HTTP_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_RTDB_SUFFIXES = (".firebaseio.com", ".firebasedatabase.app")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Endpoint values as an operator typed them; blank or ``None`` means the packaged value."""

    base_url: str | None = None
    stream_url: str | None = None
    rtdb_url: str | None = None
    firebase_api_key: str | None = None


@dataclass(frozen=True, slots=True)
class KnownEnvironment:
    """One trust domain with its packaged public endpoints (``None``: an operator must supply the value)."""

    environment_id: str
    project_id: str
    region: str
    default: bool
    endpoints: Endpoints


class EnvironmentCatalog:
    """The environments this package knows. Ids match exactly and case-sensitively after trimming blanks."""

    def __init__(self, environments: tuple[KnownEnvironment, ...]) -> None:
        self._known = {known.environment_id: known for known in environments}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> EnvironmentCatalog:
        """Build the catalog from the packaged document."""
        return cls(
            tuple(
                KnownEnvironment(
                    environment_id=entry["environmentId"],
                    project_id=entry["projectId"],
                    region=entry["region"],
                    default=entry.get("default", False),
                    endpoints=Endpoints(
                        base_url=entry.get("apiBaseUrl"),
                        stream_url=entry.get("streamUrl"),
                        rtdb_url=entry.get("rtdbUrl"),
                        firebase_api_key=entry.get("firebaseWebApiKey"),
                    ),
                )
                for entry in document["environments"]
            )
        )

    def ids(self) -> tuple[str, ...]:
        """Return the known ids, the default one first."""
        return tuple(sorted(self._known, key=lambda name: (not self._known[name].default, name)))

    def default(self) -> KnownEnvironment:
        """Return the environment offered first in setup. It is never assumed for a key (canon-wire §3.4)."""
        return self._known[self.ids()[0]]

    def known(self, environment_id: str) -> KnownEnvironment:
        """Return the environment of that id.

        Raises:
            ConfigurationError: the id is not known; the text names the allowed ones.
        """
        found = self._known.get(environment_id.strip())
        if found is None:
            allowed = ", ".join(self.ids())
            raise ConfigurationError(f"unknown Canon environment id {environment_id!r}; allowed: {allowed}")
        return found

    def resolve(self, environment_id: str, endpoints: Endpoints) -> Environment:
        """Return the complete snapshot: each missing value falls back to the packaged one, then all are checked.

        Raises:
            ConfigurationError: unknown id, missing value without a packaged default, or an endpoint the rules refuse.
                The text names the field.
        """
        known = self.known(environment_id)
        packaged = known.endpoints
        rtdb_url = _url("rtdbUrl", endpoints.rtdb_url, packaged.rtdb_url)
        _check_rtdb_host(rtdb_url, known.project_id)
        return Environment(
            environment_id=known.environment_id,
            project_id=known.project_id,
            base_url=_url("baseUrl", endpoints.base_url, packaged.base_url),
            stream_url=_url("streamUrl", endpoints.stream_url, packaged.stream_url),
            rtdb_url=rtdb_url,
            firebase_api_key=_present("firebaseApiKey", endpoints.firebase_api_key, packaged.firebase_api_key),
        )


def endpoints_of(environment: Environment) -> dict[str, str]:
    """Return the snapshot's five values under the names they have in files (canon-wire §2.4, §4.2)."""
    return {
        "environmentId": environment.environment_id,
        "baseUrl": environment.base_url,
        "streamUrl": environment.stream_url,
        "rtdbUrl": environment.rtdb_url,
        "firebaseApiKey": environment.firebase_api_key,
    }


def _present(field: str, value: str | None, packaged: str | None) -> str:
    for candidate in (value, packaged):
        if candidate is not None and candidate.strip():
            return candidate.strip()
    raise ConfigurationError(f"{field} is missing, and this Canon environment has no packaged value for it")


def _url(field: str, value: str | None, packaged: str | None) -> str:
    """Return the trimmed URL without trailing slashes when the rules of §3.3 accept it."""
    url = _present(field, value, packaged).rstrip("/")
    if fault := _url_fault(url):
        raise ConfigurationError(f"{field} is not usable: {fault}")
    return url


def _url_fault(url: str) -> str | None:
    if not url.isprintable() or any(mark.isspace() or mark == "\\" for mark in url):
        return "it holds a blank, a control character or a backslash"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "it is not a URL"
    if "?" in url or "#" in url:
        return "a query or fragment is not allowed"
    if "@" in parts.netloc:
        return "user information is not allowed in it"
    if not host:
        return "it names no host"
    if parts.scheme == "https" or (parts.scheme == "http" and host in _PLAIN_HTTP_HOSTS):
        return None
    return "it must use https (plain http only for localhost, 127.0.0.1 and ::1)"


def _check_rtdb_host(url: str, project_id: str) -> None:
    host = urlsplit(url).hostname or ""
    if host == "localhost" or _is_loopback(host):
        return
    label = host.partition(".")[0]
    if host.endswith(_RTDB_SUFFIXES) and (label == project_id or label.startswith(f"{project_id}-")):
        return
    raise ConfigurationError(f"rtdbUrl does not belong to the project {project_id}")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
