"""Ten pictures over real HTTP: side by side, in memory near their size."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc

import pytest
from canon_hermes_plugin.domain.media.captures import CaptureStore
from canon_hermes_plugin.domain.media.intake import MediaIntake
from canon_hermes_plugin.infrastructure.canon.media import HttpMediaFetcher
from canon_hermes_plugin.infrastructure.hermes.media import HermesMediaCache
from canon_hermes_plugin.infrastructure.system import SystemClock

pytestmark = pytest.mark.bench

PICTURES = 10
SIZE = 5 * 2**20
PIECES = 10
PAUSE = 0.05

SERVER = f"""
import asyncio
now = peak = 0

async def serve(reader, writer):
    global now, peak
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    if head.startswith(b"GET /peak"):
        body = str(peak).encode()
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
    else:
        now += 1
        peak = max(peak, now)
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: image/png\\r\\nContent-Length: {SIZE}\\r\\n\\r\\n")
        for number in range({PIECES}):
            await asyncio.sleep({PAUSE})
            piece = b"\\x89PNG\\r\\n\\x1a\\n" if number == 0 else b""
            writer.write(piece.ljust({SIZE // PIECES}, b"x"))
            await writer.drain()
        now -= 1
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
"""A picture takes half a second because the server is slow, not because anybody works."""


@pytest.fixture
def server():
    """The address of a picture server in a process of its own: its memory is not ours."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.communicate()


async def take(server, count):
    """Take ``count`` pictures in as one message; return the seconds and the result."""
    clock = SystemClock()
    intake = MediaIntake(HttpMediaFetcher(lambda url: True), HermesMediaCache(), CaptureStore(clock.monotonic), clock)
    start = time.monotonic()
    result = await intake.take("c", "m", [{"url": f"{server}/{number}.png"} for number in range(count)])
    return time.monotonic() - start, result


async def test_ten_pictures_of_five_mb_download_side_by_side_in_memory_near_their_size(server, homes, record_property):
    await take(server, 1)  # certificates, imports
    one = min([(await take(server, 1))[0] for _ in range(2)])
    ten = min([(await take(server, PICTURES))[0] for _ in range(2)])
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        _, result = await take(server, PICTURES)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    parallel = int((await HttpMediaFetcher(lambda url: True).fetch(f"{server}/peak")).data)
    ratio = (peak - before) / (PICTURES * SIZE)
    record_property("figures", {"one": one, "ten": ten, "peak": parallel, "memory ratio": ratio})
    assert len(result.media) == PICTURES
    assert {os.stat(media.path).st_size for media in result.media} == {SIZE}  # noqa: PTH116 - nothing else runs
    assert parallel == PICTURES
    assert ten <= 3 * one
    assert ratio <= 1.35
