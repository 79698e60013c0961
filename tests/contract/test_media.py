"""Inbound media: the public suites on the downloader, the host's cache, and their in-memory twins."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from canon_hermes_plugin.infrastructure.canon.media import HttpMediaFetcher
from canon_hermes_plugin.infrastructure.hermes.media import HermesMediaCache
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaCache, MemoryMediaFetcher
from canon_hermes_plugin.ports.media import FetchedMedia
from canon_hermes_plugin.testing.contracts import MediaCacheContract, MediaFetcherContract


class Served:
    """The real downloader, and files behind addresses for it."""

    def __init__(self) -> None:
        self.files: dict[str, FetchedMedia] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.fetcher = HttpMediaFetcher(
            resolver=lambda _host, _port: ["93.184.216.34"], transport=lambda: httpx.MockTransport(self.answer)
        )

    async def answer(self, request: httpx.Request) -> httpx.Response:
        await self.gate.wait()
        found = self.files.get(str(request.url.copy_with(host="files.example")))
        if found is None:
            return httpx.Response(404, stream=httpx.ByteStream(b"gone"))
        headers = {"content-type": f"{found.mime_type}; charset=x"} if found.mime_type else {}
        return httpx.Response(200, stream=httpx.ByteStream(found.data), headers=headers)

    def serve(self, url, media):
        self.files[url] = media

    def hold(self):
        self.gate.clear()

    async def close(self):
        pass


class Twin:
    """The downloader's twin."""

    def __init__(self) -> None:
        self.fetcher = MemoryMediaFetcher()

    def serve(self, url, media):
        self.fetcher.files[url] = media

    def hold(self):
        self.fetcher.gate.clear()

    async def close(self):
        pass


class TestHttpFetcher(MediaFetcherContract):
    subject = HttpMediaFetcher

    def factory(self, tmp_path):
        return Served()


class TestMemoryFetcher(MediaFetcherContract):
    subject = MemoryMediaFetcher

    def factory(self, tmp_path):
        return Twin()


class Kept:
    """A cache and where its files must lie."""

    def __init__(self, cache, root) -> None:
        self.cache = cache
        self.root = root

    async def close(self):
        pass


class TestHermesCache(MediaCacheContract):
    subject = HermesMediaCache

    @pytest.fixture(autouse=True)
    def _home(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HERMES_HOME", str(tmp_path))

    def factory(self, tmp_path):
        return Kept(HermesMediaCache(), tmp_path)


class TestMemoryCache(MediaCacheContract):
    subject = MemoryMediaCache

    def factory(self, tmp_path):
        return Kept(MemoryMediaCache(), None)
