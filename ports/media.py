"""Inbound attachments: fetching their bytes and putting them where the host reads files (turns §9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from canon_hermes_plugin.ports.host import LocalMedia

MAX_MEDIA_BYTES: Final = 10 * 1024 * 1024
"""Canon's limit for one attachment, in and out."""

MediaFamily = Literal["image", "audio", "video", "document"]


@dataclass(frozen=True, slots=True)
class FetchedMedia:
    """A downloaded attachment. ``mime_type`` is the response's bare content type, lower-cased, or ``None``."""

    data: bytes
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class MediaFile:
    """One attachment on its way to the host's media cache. ``name`` is a single path component, untrusted."""

    data: bytes
    family: MediaFamily
    mime_type: str
    name: str


class MediaFetcher(Protocol):
    """Downloads attachments from wherever Canon says they are (canon-wire §1.8)."""

    async def fetch(self, url: str) -> FetchedMedia:
        """Return the bytes behind ``url``, at most :data:`MAX_MEDIA_BYTES`, reading no further than that.

        Every hop is checked: http or https only, no private, loopback, link-local or metadata address. No Canon
        credential is ever sent. Cancelling ends the download at once.

        Raises:
            MediaError: refused, unreachable, too large, or answered with an error.
        """
        ...


class MediaCache(Protocol):
    """The host's cache of inbound files."""

    async def store(self, file: MediaFile) -> LocalMedia:
        """Write ``file`` off the event loop and return where it lies.

        Raises:
            MediaError: the host refuses the bytes, or they cannot be written.
        """
        ...
