"""Files between the host and Canon: the host's inbound cache, and what the host wants sent.

Decides how a file is read and named for the other side; bounded, off the event loop. It refuses to know turns.
"""

from __future__ import annotations

import asyncio
import mimetypes
from pathlib import Path
from typing import Literal, final
from urllib.parse import unquote, urlsplit

from canon_hermes_plugin.domain.turns.model import HostMedia
from canon_hermes_plugin.infrastructure.hermes import compat
from canon_hermes_plugin.infrastructure.hermes.standalone import read_bounded
from canon_hermes_plugin.ports.errors import MediaError
from canon_hermes_plugin.ports.host import LocalMedia
from canon_hermes_plugin.ports.media import MediaFetcher, MediaFile

Method = Literal["image", "audio", "video", "file"]


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
    suffix = Path(file.name).suffix or mimetypes.guess_extension(file.mime_type) or ""
    match file.family:
        case "image":
            return str(base.cache_image_from_bytes(file.data, suffix or ".jpg"))
        case "audio":
            return str(base.cache_audio_from_bytes(file.data, suffix or ".ogg"))
        case "video":
            return str(base.cache_video_from_bytes(file.data, suffix or ".mp4"))
        case _:
            return str(base.cache_document_from_bytes(file.data, file.name))


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
