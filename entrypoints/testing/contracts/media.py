"""Inbound media: what every downloader and every cache of files promises (:mod:`canon_hermes_plugin.ports.media`)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

import pytest
from canon_hermes_plugin.ports.errors import MediaError
from canon_hermes_plugin.ports.media import (
    MAX_MEDIA_BYTES,
    FetchedMedia,
    MediaCache,
    MediaFamily,
    MediaFetcher,
    MediaFile,
)
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
URL = "https://files.example/dir/picture?sig=secret"


class MediaFetcherDriver(Driver, Protocol):
    """The subject and the place its files lie in.

    Attributes:
        fetcher: the subject.
    """

    fetcher: MediaFetcher

    def serve(self, url: str, media: FetchedMedia) -> None:
        """Put a file behind an address."""
        ...

    def hold(self) -> None:
        """Let every further download wait until it is cancelled."""
        ...


class MediaFetcherContract(Contract[MediaFetcherDriver]):
    """The suite of a downloader."""

    @on_a_loop
    async def test_a_file_arrives_whole_with_its_bare_type(self, files: MediaFetcherDriver) -> None:
        files.serve(URL, FetchedMedia(PNG, "image/png"))
        assert await files.fetcher.fetch(URL) == FetchedMedia(PNG, "image/png")
        files.serve(URL, FetchedMedia(b"x"))
        assert (await files.fetcher.fetch(URL)).mime_type is None

    @on_a_loop
    async def test_what_is_not_there_is_a_media_error_without_the_address(self, files: MediaFetcherDriver) -> None:
        with pytest.raises(MediaError) as error:
            await files.fetcher.fetch(URL)
        assert "secret" not in str(error.value)
        assert "files.example" not in str(error.value)

    @pytest.mark.parametrize(("size", "fits"), [(MAX_MEDIA_BYTES, True), (MAX_MEDIA_BYTES + 1, False)])
    @on_a_loop
    async def test_the_bound_is_exact(self, files: MediaFetcherDriver, size: int, fits: bool) -> None:
        files.serve(URL, FetchedMedia(bytes(size)))
        if fits:
            assert len((await files.fetcher.fetch(URL)).data) == size
        else:
            with pytest.raises(MediaError):
                await files.fetcher.fetch(URL)

    @pytest.mark.parametrize(
        "address",
        [
            "",
            "no address",
            "file:///etc/passwd",
            "ftp://files.example/a",
            "http://127.0.0.1/a",
            "http://[::1]/a",
            "http://10.0.0.1/a",
            "http://169.254.169.254/latest/meta-data",
        ],
    )
    @on_a_loop
    async def test_nothing_is_fetched_from_where_canon_cannot_be(self, files: MediaFetcherDriver, address: str) -> None:
        with pytest.raises(MediaError):
            await files.fetcher.fetch(address)

    @on_a_loop
    async def test_cancelling_ends_a_download_at_once(self, files: MediaFetcherDriver) -> None:
        files.serve(URL, FetchedMedia(PNG))
        files.hold()
        running = asyncio.ensure_future(files.fetcher.fetch(URL))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


class MediaCacheDriver(Driver, Protocol):
    """The subject.

    Attributes:
        cache: the subject.
        root: the directory real files must lie under; ``None`` for a cache that keeps them elsewhere.
    """

    cache: MediaCache
    root: Path | None


class MediaCacheContract(Contract[MediaCacheDriver]):
    """The suite of a cache."""

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
    @on_a_loop
    async def test_a_file_is_kept_under_an_absolute_path_with_its_type(
        self, kept: MediaCacheDriver, family: MediaFamily, mime: str, name: str, data: bytes
    ) -> None:
        stored = await kept.cache.store(MediaFile(data, family, mime, name))
        assert stored.mime_type == mime
        path = Path(stored.path)
        assert path.is_absolute()
        if kept.root is not None:
            assert kept.root in path.parents
            assert await asyncio.to_thread(path.read_bytes) == data
        assert path.suffix == Path(name).suffix

    @on_a_loop
    async def test_two_files_of_one_name_are_two_files(self, kept: MediaCacheDriver) -> None:
        file = MediaFile(b"x", "document", "text/plain", "same.txt")
        assert (await kept.cache.store(file)).path != (await kept.cache.store(file)).path

    @on_a_loop
    async def test_field_84_what_is_no_image_is_refused_as_one(self, kept: MediaCacheDriver) -> None:
        with pytest.raises(MediaError):
            await kept.cache.store(MediaFile(b"<html></html>", "image", "image/png", "a.png"))
