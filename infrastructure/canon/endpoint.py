"""Where Canon is and who calls it: the addresses, the expected identity and the key, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from canon_hermes_plugin.ports.errors import CanonError, CredentialsError
from canon_hermes_plugin.ports.secret import Secret

_PRINTABLE = range(0x21, 0x7F)


@dataclass(frozen=True, slots=True)
class CanonEndpoint:
    """One resolved environment (canon-wire §0.2, §3.3).

    Attributes:
        environment_id: the identity both addresses must prove.
        project_id: the project both addresses must prove.
        api_url: base of every REST call; may carry a path prefix. Trailing slashes are removed.
        stream_url: base of the stream and of its health probe. Trailing slashes are removed.
        api_key: the bearer. Anything but printable ASCII could not cross the wire and is refused here, so that no
            library gets to quote it in an error.
    """

    environment_id: str
    project_id: str
    api_url: str
    stream_url: str
    api_key: Secret

    def __post_init__(self) -> None:
        object.__setattr__(self, "api_url", self.api_url.strip().rstrip("/"))
        object.__setattr__(self, "stream_url", self.stream_url.strip().rstrip("/"))
        if not self.api_key or any(ord(character) not in _PRINTABLE for character in self.api_key.reveal()):
            raise CredentialsError("the Canon API key is empty or holds characters that no key has")


def join(base: str, *segments: str) -> str:
    """Return ``base`` followed by ``segments``, each percent-encoded as one path segment (canon-wire §0.1).

    Raises:
        CanonError: a segment is empty or a dot segment, which would address something else.
    """
    for segment in segments:
        if not segment.strip() or segment in {".", ".."}:
            raise CanonError("an id is empty or not usable in an address")
    try:
        return "/".join([base, *(quote(segment, safe="") for segment in segments)])
    except UnicodeEncodeError:
        pass
    raise CanonError("an id holds characters that cannot be encoded")
