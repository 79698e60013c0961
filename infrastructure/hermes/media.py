"""Files between the host and Canon: the host's inbound cache, and what the host wants sent.

Decides how a file is read and named for the other side; bounded, off the event loop. It refuses to know turns.
"""

from __future__ import annotations

import asyncio
import mimetypes
import re
from pathlib import Path
from typing import Final, Literal, final
from urllib.parse import unquote, urlsplit

from canon_hermes_plugin.domain.turns.model import HostMedia
from canon_hermes_plugin.infrastructure.hermes import compat
from canon_hermes_plugin.infrastructure.hermes.standalone import read_bounded
from canon_hermes_plugin.ports.errors import MediaError
from canon_hermes_plugin.ports.host import LocalMedia
from canon_hermes_plugin.ports.media import MediaFetcher, MediaFile

Method = Literal["image", "audio", "video", "file"]

_NAME_BYTES: Final = 180
"""UTF-8 bytes of a cached file's name: file systems take 255 (143 where names are encrypted), the host adds 17."""
_UNFIT: Final = re.compile(r'[<>:"|?*\\/\x00-\x1f\x7f]')
"""What one of the host's file systems does not take in a name, or takes for something else (``a:b`` on Windows)."""
_SUFFIX: Final = re.compile(r"\.[A-Za-z0-9]{1,15}")


@final
class HermesMediaCache:
    """Implements :class:`~canon_hermes_plugin.ports.media.MediaCache` over the host's cache helpers."""

    async def store(self, file: MediaFile) -> LocalMedia:
        try:
            path = await asyncio.to_thread(_store, file)
        except (OSError, ValueError) as error:
            raise MediaError(f"the host's cache refuses the file ({type(error).__name__})") from None
        return LocalMedia(path, file.mime_type)


def _store(file: MediaFile) -> str:
    base = compat.module("gateway.platforms.base")
    name = _cached_name(file.name)
    suffix = _suffix(name) or mimetypes.guess_extension(file.mime_type) or ""
    match file.family:
        case "image":
            return str(base.cache_image_from_bytes(file.data, suffix or ".jpg"))
        case "audio":
            return str(base.cache_audio_from_bytes(file.data, suffix or ".ogg"))
        case "video":
            return str(base.cache_video_from_bytes(file.data, suffix or ".mp4"))
        case _:
            return str(base.cache_document_from_bytes(file.data, name))


def _suffix(name: str) -> str:
    found = Path(name).suffix
    return found if _SUFFIX.fullmatch(found) else ""


def _cached_name(name: str) -> str:
    """Return a name that every file system takes. The host's own part in front keeps it from naming a device."""
    plain = _UNFIT.sub("_", name)
    suffix = _suffix(plain)
    stem = plain.removesuffix(suffix).encode("utf-8", "replace")[: _NAME_BYTES - len(suffix)]
    return stem.decode("utf-8", "ignore") + suffix


async def outgoing(
    fetcher: MediaFetcher, conversation_id: str, where: str, method: Method, *, file_name: str | None = None
) -> HostMedia:
    """Return what the host wants sent: a local path, a ``file://`` address, or an address to download from.

    Raises:
        CanonPluginError: it cannot be read or downloaded, or is longer than 10 MiB.
    """
    parts = urlsplit(where)
    if parts.scheme in {"http", "https"}:
        fetched = await fetcher.fetch(where)
        name = file_name or Path(unquote(parts.path)).name or "image"
        return HostMedia(conversation_id, fetched.data, fetched.mime_type or _mime(name), method, name)
    path = Path(unquote(parts.path) if parts.scheme == "file" else where)
    data = await asyncio.to_thread(lambda: read_bounded(path.expanduser()))
    name = file_name or path.name
    return HostMedia(conversation_id, data, _mime(name), method, name)


def _mime(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
