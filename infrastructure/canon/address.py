"""What may stand in an address or an authorization header; refuses the rest before a library gets to quote it."""

from __future__ import annotations

from urllib.parse import quote

from canon_hermes_plugin.ports.errors import CanonError, CredentialsError
from canon_hermes_plugin.ports.secret import Secret

_PRINTABLE = range(0x21, 0x7F)


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


def bearer(api_key: Secret) -> str:
    """Return the authorization header's value.

    Raises:
        CredentialsError: the key is empty or holds characters that cannot cross the wire.
    """
    value = api_key.reveal()
    if not value or any(ord(character) not in _PRINTABLE for character in value):
        raise CredentialsError("the Canon API key is empty or holds characters that no key has")
    return f"Bearer {value}"
