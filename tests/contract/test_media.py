"""Inbound media: one suite for the downloader and the host's cache, and for their in-memory twins."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from canon_hermes_plugin.infrastructure.canon.media import HttpMediaFetcher
from canon_hermes_plugin.infrastructure.hermes.media import HermesMediaCache
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaCache, MemoryMediaFetcher
from canon_hermes_plugin.ports.errors import MediaError
from canon_hermes_plugin.ports.media import MAX_MEDIA_BYTES, FetchedMedia, MediaFile

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
URL = "https://files.example/dir/picture?sig=secret"


class Served:
    """Files behind addresses, for the real downloader."""

    def __init__(self) -> None:
        self.files: dict[str, FetchedMedia] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def answer(self, request: httpx.Request) -> httpx.Response:
        await self.gate.wait()
        path = str(request.url.copy_with(host="files.example"))
        found = self.files.get(path)
        if found is None:
            return httpx.Response(404, stream=httpx.ByteStream(b"gone"))
        headers = {"content-type": f"{found.mime_type}; charset=x"} if found.mime_type else {}
        return httpx.Response(200, stream=httpx.ByteStream(found.data), headers=headers)


@pytest.fixture(params=["http", "memory"])
async def download(request):
    """A downloader and the table it is served from."""
    if request.param == "memory":
        twin = MemoryMediaFetcher()
        return twin, twin
    served = Served()
    real = HttpMediaFetcher(
        resolver=lambda _host, _port: ["93.184.216.34"], transport=lambda: httpx.MockTransport(served.answer)
    )
    return real, served


async def test_a_file_arrives_whole_with_its_bare_type(download):
    fetcher, served = download
    served.files[URL] = FetchedMedia(PNG, "image/png")
    assert await fetcher.fetch(URL) == FetchedMedia(PNG, "image/png")
    served.files[URL] = FetchedMedia(b"x")
    assert (await fetcher.fetch(URL)).mime_type is None


async def test_what_is_not_there_is_a_media_error_without_the_address(download):
    fetcher, _ = download
    with pytest.raises(MediaError) as error:
        await fetcher.fetch(URL)
    assert "secret" not in str(error.value)
    assert "files.example" not in str(error.value)


@pytest.mark.parametrize(("size", "fits"), [(MAX_MEDIA_BYTES, True), (MAX_MEDIA_BYTES + 1, False)])
async def test_the_bound_is_exact(download, size, fits):
    fetcher, served = download
    served.files[URL] = FetchedMedia(bytes(size))
    if fits:
        assert len((await fetcher.fetch(URL)).data) == size
    else:
        with pytest.raises(MediaError):
            await fetcher.fetch(URL)


async def test_cancelling_ends_a_download_at_once(download):
    fetcher, served = download
    served.gate.clear()
    running = asyncio.create_task(fetcher.fetch(URL))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.fixture(params=["hermes", "memory"])
def cache(request, tmp_path, monkeypatch):
    """A cache of inbound files; the host's one lies in a home of its own."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    return HermesMediaCache() if request.param == "hermes" else MemoryMediaCache()


@pytest.mark.parametrize(
    ("family", "mime", "name", "data"),
    [
        ("image", "image/png", "a.png", PNG),
        ("audio", "audio/mpeg", "a.mp3", b"ID3"),
        ("video", "video/mp4", "a.mp4", b"\x00"),
        ("document", "text/plain", "n\u00f6te 1.txt", b"x"),
        ("document", "application/octet-stream", "canon-media.bin", b"\x00"),
    ],
)
async def test_a_file_is_kept_under_an_absolute_path_with_its_type(cache, tmp_path, family, mime, name, data):
    kept = await cache.store(MediaFile(data, family, mime, name))
    assert kept.mime_type == mime
    assert Path(kept.path).is_absolute()
    assert isinstance(cache, MemoryMediaCache) or tmp_path in Path(kept.path).parents
    assert Path(kept.path).suffix == Path(name).suffix


async def test_two_files_of_one_name_are_two_files(cache):
    file = MediaFile(b"x", "document", "text/plain", "same.txt")
    assert (await cache.store(file)).path != (await cache.store(file)).path


async def test_field_84_what_is_no_image_is_refused_as_one(cache):
    with pytest.raises(MediaError):
        await cache.store(MediaFile(b"<html></html>", "image", "image/png", "a.png"))
