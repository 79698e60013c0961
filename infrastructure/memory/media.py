"""Twins of the media ports: attachments served from a table, files kept in a list."""

from __future__ import annotations

import asyncio
from typing import final

from canon_hermes_plugin.ports.errors import MediaError
from canon_hermes_plugin.ports.host import LocalMedia
from canon_hermes_plugin.ports.media import MAX_MEDIA_BYTES, FetchedMedia, MediaFile


@final
class MemoryMediaFetcher:
    """Serves what is put into :attr:`files`; an unknown address is unreachable.

    Attributes:
        files: what lies behind each address.
        fetched: addresses in the order they were asked for.
        peak: most downloads that ran at the same time.
        gate: clear it to hold every download back.
    """

    def __init__(self, files: dict[str, FetchedMedia] | None = None) -> None:
        self.files = files if files is not None else {}
        self.fetched: list[str] = []
        self.peak = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self._running = 0

    async def fetch(self, url: str) -> FetchedMedia:
        self.fetched.append(url)
        self._running += 1
        self.peak = max(self.peak, self._running)
        try:
            await self.gate.wait()
            found = self.files.get(url)
        finally:
            self._running -= 1
        if found is None:
            raise MediaError("nothing lies behind this address", retryable=True)
        if len(found.data) > MAX_MEDIA_BYTES:
            raise MediaError("the attachment is too large")
        return found


@final
class MemoryMediaCache:
    """Keeps files in :attr:`stored`; refuses an image whose bytes are none when ``strict``, as the host does."""

    def __init__(self, *, strict: bool = True) -> None:
        self.stored: list[MediaFile] = []
        self._strict = strict

    async def store(self, file: MediaFile) -> LocalMedia:
        if self._strict and file.family == "image" and not file.data.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8")):
            raise MediaError("the host does not take these bytes for an image")
        self.stored.append(file)
        return LocalMedia(f"/media/{len(self.stored)}/{file.name}", file.mime_type)
