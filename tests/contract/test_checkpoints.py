"""One suite for the place on the stream in a file and in memory (ports/checkpoints), and what only a file can meet."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys

import pytest
from canon_hermes_plugin.infrastructure.files import checkpoint_file
from canon_hermes_plugin.infrastructure.files.checkpoint_file import FileCheckpoints
from canon_hermes_plugin.infrastructure.memory.checkpoints import MemoryCheckpoints
from canon_hermes_plugin.ports.checkpoints import Checkpoint
from canon_hermes_plugin.ports.errors import CheckpointError
from canon_hermes_plugin.testing.contracts import CheckpointStoreContract
from canon_hermes_plugin.testing.contracts.checkpoints import FIRST


class File:
    def __init__(self, path, patch) -> None:
        self.path, self._patch = path, patch
        self.store = FileCheckpoints(path)

    async def close(self) -> None:
        return

    def restart(self) -> FileCheckpoints:
        return FileCheckpoints(self.path)

    def fill_up(self) -> None:
        def full(*_arguments: object) -> None:
            raise OSError(28, "No space left on device")

        self._patch.setattr(checkpoint_file, "write_atomic", full)


class Twin:
    def __init__(self) -> None:
        self.store = MemoryCheckpoints()

    async def close(self) -> None:
        return

    def restart(self) -> MemoryCheckpoints:
        return MemoryCheckpoints(self.store.saved)

    def fill_up(self) -> None:
        self.store.full = True


class TestFile(CheckpointStoreContract):
    subject = FileCheckpoints

    @pytest.fixture(autouse=True)
    def patch(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def factory(self, tmp_path):
        return File(tmp_path / "home" / "streams" / "a.json", self.monkeypatch)


class TestMemory(CheckpointStoreContract):
    subject = MemoryCheckpoints

    def factory(self, tmp_path):
        return Twin()


GOOD = '{"cursor": "e", "done": ["m"], "heardAt": 5}'


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{}",
        GOOD[:-1].encode(),
        GOOD.replace('"e"', "7").encode(),
        GOOD.replace('["m"]', '"m"').encode(),
        GOOD.replace('["m"]', "[5]").encode(),
        GOOD.replace("5}", "true}").encode(),
        GOOD.replace("5}", "5.5}").encode(),
        b"[" * 100_000,
        GOOD.encode() + b" " * 4 * 1024 * 1024,
    ],
)
async def test_a_file_that_cannot_be_trusted_counts_as_none_and_the_next_save_replaces_it(tmp_path, caplog, raw):
    path = tmp_path / "a.json"
    path.write_bytes(raw)
    store = FileCheckpoints(path)
    assert await store.load() is None
    assert "not usable" in caplog.text
    await store.save(FIRST)
    assert await store.load() == FIRST


async def test_a_directory_in_its_place_is_told_and_harmless(tmp_path, caplog):
    (tmp_path / "a.json").mkdir()
    assert await FileCheckpoints(tmp_path / "a.json").load() is None
    assert "not usable" in caplog.text


async def test_a_loop_of_links_in_its_place_is_told_and_harmless(tmp_path):
    path = tmp_path / "a.json"
    path.symlink_to(path)
    with pytest.raises(CheckpointError):
        await FileCheckpoints(path).save(FIRST)
    assert await FileCheckpoints(path).load() is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.timeout(10)
async def test_a_pipe_in_its_place_keeps_nobody_waiting(tmp_path, caplog):
    os.mkfifo(tmp_path / "a.json")
    assert await FileCheckpoints(tmp_path / "a.json").load() is None
    assert "not usable" in caplog.text


async def test_what_could_not_be_read_back_is_not_written(tmp_path):
    store = FileCheckpoints(tmp_path / "a.json")
    await store.save(FIRST)
    with pytest.raises(CheckpointError, match="bytes"):
        await store.save(Checkpoint("e", tuple(f"{number}".zfill(5000) for number in range(1024)), 1))
    assert await store.load() == FIRST


@pytest.mark.skipif(os.name == "nt", reason="permission bits")
async def test_nobody_else_may_read_it(tmp_path):
    path = tmp_path / "new" / "streams" / "a.json"
    await FileCheckpoints(path).save(FIRST)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_what_a_killed_writer_left_behind_is_removed(tmp_path):
    path = tmp_path / "a.json"
    await FileCheckpoints(path).save(FIRST)
    left = tmp_path / ".a.json.1.abc.tmp"
    left.write_bytes(b"{")
    os.utime(left, (0, 0))
    assert await FileCheckpoints(path).load() == FIRST
    assert [item.name for item in tmp_path.iterdir()] == ["a.json"]


WRITER = """
import asyncio, itertools, sys
from pathlib import Path
from canon_hermes_plugin.infrastructure.files.checkpoint_file import FileCheckpoints
from canon_hermes_plugin.ports.checkpoints import Checkpoint

async def write():
    store = FileCheckpoints(Path(sys.argv[1]))
    for number in itertools.count():
        await store.save(Checkpoint(f"e{number}", tuple(f"m{number}" for _ in range(500)), number))
        if number == 5:
            print("ready", flush=True)

asyncio.run(write())
"""


def test_a_writer_killed_at_any_moment_leaves_a_whole_checkpoint(tmp_path):
    path = tmp_path / "a.json"
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        writer.kill()
        writer.communicate()
        found = asyncio.run(FileCheckpoints(path).load())
        assert found is not None
        assert found == Checkpoint(f"e{found.heard_at}", (f"m{found.heard_at}",) * 500, found.heard_at)
