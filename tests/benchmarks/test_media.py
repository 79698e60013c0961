"""What taking pictures in costs: they download side by side, and the memory above them stays near their size."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest
from canon_hermes_plugin.domain.media.captures import CaptureStore
from canon_hermes_plugin.domain.media.intake import MediaIntake
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.ports.host import LocalMedia
from canon_hermes_plugin.ports.media import FetchedMedia, MediaFile

pytestmark = pytest.mark.bench

PICTURES = 10
SIZE = 5 * 2**20


class Network:
    """Makes every picture's bytes when it is asked for them; counts how many are under way at once."""

    def __init__(self) -> None:
        self.running = 0
        self.peak = 0

    async def fetch(self, url: str) -> FetchedMedia:
        self.running += 1
        self.peak = max(self.peak, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        return FetchedMedia(b"\x89PNG\r\n\x1a\n" + url.encode() * (SIZE // len(url)), "image/png")


class Disk:
    """Takes files and keeps none of their bytes."""

    async def store(self, file: MediaFile) -> LocalMedia:
        await asyncio.sleep(0)
        return LocalMedia(f"/media/{file.name}", file.mime_type)


async def test_ten_pictures_come_side_by_side_in_memory_near_their_size() -> None:
    network, clock = Network(), VirtualClock()
    store = CaptureStore(clock.monotonic)
    intake = MediaIntake(network, Disk(), store, clock)
    urls = [f"https://files.test/picture-{number}.png" for number in range(PICTURES)]
    tracemalloc.start()
    try:
        result = await intake.take("c", "m", [{"url": url} for url in urls])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(result.media) == PICTURES
    assert network.peak == PICTURES
    assert peak <= 1.15 * PICTURES * SIZE
    assert store.usage() == (0, 0)  # beyond what is kept for tools
