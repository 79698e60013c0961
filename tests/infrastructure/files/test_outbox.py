"""The outbox in files: private, untroubled by foreign files, whole after any death (field fault 90)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from canon_hermes_plugin.infrastructure.files.outbox import DIRECTORY, FileOutbox, directory_of
from canon_hermes_plugin.ports.errors import OutboxError
from canon_hermes_plugin.testing.contracts.outbox import entry

from .model_disk import Killed, ModelDisk


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def files(home: Path) -> list[Path]:
    return sorted(path for path in (home / DIRECTORY).rglob("*") if path.is_file())


def test_an_entry_is_one_private_file_whose_path_tells_no_id(home):
    store = FileOutbox(home, "key and environment")
    store.keep_now(entry("secret-turn", conversation_id="conv_secret"))
    (path,) = files(home)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, home / DIRECTORY, home)} == {0o700}
    assert "secret" not in str(path.relative_to(home))
    assert "key" not in str(path.relative_to(home))
    store.forget_now(entry("secret-turn").operation_id)
    assert files(home) == []


def changed(path: Path, **fields: object) -> bytes:
    return json.dumps({**json.loads(path.read_bytes()), **fields}).encode()


def test_foreign_files_are_left_there_and_told_once_without_their_content(home, caplog):
    store = FileOutbox(home, "one")
    store.keep_now(entry("a"))
    store.keep_now(entry("b"))
    FileOutbox(home, "two").keep_now(entry("private"))
    first, second = (store._path(entry(name).operation_id) for name in "ab")
    folder, others = directory_of(home, "one"), next(directory_of(home, "two").iterdir())
    strange = {
        "note.txt": b"my private note",
        f"{'0' * 32}.json": first.read_bytes(),
        others.name: others.read_bytes(),
        "newer.json": changed(first, format="canon-hermes-plugin/outbox/2"),
        "wide.json": changed(first, more=1),
        "deep.json": b"[" * 100_000,
        "binary.json": b"\xff\xfe",
    }
    for name, data in strange.items():
        (folder / name).write_bytes(data)
    (folder / "folder.json").mkdir()
    first.write_bytes(changed(first, messages=[{"text": "private"}]))
    caplog.set_level(logging.DEBUG)
    for _ in range(2):
        assert store.leftover_now() == [entry("b")]
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name in strange} == strange
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "private" not in caplog.text
    assert second.exists()


def test_temporary_files_of_a_killed_writer_are_removed_when_they_are_old(home):
    store = FileOutbox(home, "one")
    store.keep_now(entry("a"))
    old, young = (directory_of(home, "one") / f".{name}.json.1.ab.tmp" for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"{")
    os.utime(old, (1, 1))
    assert store.leftover_now() == [entry("a")]
    assert (old.exists(), young.exists()) == (False, True)


async def test_a_disk_that_refuses_is_one_error_of_the_tree(home, monkeypatch):
    store = FileOutbox(home, "one")
    await store.keep(entry("a"))

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    for name, call in (
        ("create", store.keep(entry("b"))),
        ("remove", store.forget(entry("a").operation_id)),
        ("names", store.leftover()),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(type(store._disk), name, full)
            with pytest.raises(OutboxError):
                await call
    assert await store.leftover() == [entry("a")]
    assert len(files(home)) == 1


async def test_the_loop_does_not_wait_for_the_disk(home, monkeypatch):
    store = FileOutbox(home, "one")
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()
    sync = type(store._disk).sync_file

    def slow(disk, path):
        asyncio.run_coroutine_threadsafe(gate.wait(), loop).result(10)
        sync(disk, path)

    monkeypatch.setattr(type(store._disk), "sync_file", slow)
    keeping = asyncio.create_task(store.keep(entry("a")))
    await asyncio.sleep(0.02)
    assert not keeping.done()
    gate.set()
    await keeping
    assert await store.leftover() == [entry("a")]


def test_field_90_a_killed_writer_leaves_the_old_state_or_the_new_one(tmp_path):
    """Every step a crash can follow, every disk it may leave (power cut included)."""
    home = tmp_path / "home"
    old, new, later = entry("a"), replace(entry("a", parts=3), kept_at=1), entry("b")
    stages = [[old], [new], [new, later]]
    steps, seen = 1, set()
    while True:
        disk = ModelDisk(tmp_path)
        store = FileOutbox(home, "one", disk=disk)
        store.keep_now(old)
        returned = 0
        disk.die_after = disk.calls + steps
        try:
            for item in (new, later):
                store.keep_now(item)
                returned += 1
        except Killed:
            pass
        else:
            break
        for state in disk.legal_states():
            found = FileOutbox(home, "one", disk=ModelDisk(tmp_path, state)).leftover_now()
            assert found in stages[returned : returned + 2]
            seen.add(len(found) + sum(len(item.messages) for item in found))
        steps += 1
    assert steps > 5
    assert seen == {2, 4, 6}


WRITER = """
import sys
from pathlib import Path
from canon_hermes_plugin.infrastructure.files.outbox import FileOutbox
from canon_hermes_plugin.testing.contracts.outbox import entry

store = FileOutbox(Path(sys.argv[1]), "one")
number = 0
while True:
    number += 1
    store.keep_now(entry(f"n{number}", parts=200))
    print(number, flush=True)
    if number > 3:
        store.forget_now(entry(f"n{number - 3}", parts=200).operation_id)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
@pytest.mark.parametrize("moment", range(4))
def test_field_90_what_was_reported_as_kept_survives_sigkill_whole(home, moment, caplog):
    command = [sys.executable, "-c", WRITER, str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(8 + 5 * moment):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        told = [int(line) for line in process.stdout.read().split() if line]
    reported = max([8 + 5 * moment, *told])
    found = FileOutbox(home, "one").leftover_now()
    names = [item.operation_id for item in found]
    assert [entry(f"n{number}").operation_id for number in range(reported - 2, reported + 1)] == [
        name for name in names if int(name.rpartition("-n")[2]) in range(reported - 2, reported + 1)
    ]
    assert all(item == entry(item.operation_id.rpartition("-")[2], parts=200) for item in found)
    assert len(found) <= 5
    assert caplog.records == []
