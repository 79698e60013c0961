"""The ledger's file: crashes at every call, real kills, racing processes, modes, history and slow disks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from canon_hermes_plugin.domain.approvals.ledger import RETENTION_MS, decode, encode
from canon_hermes_plugin.infrastructure.files import approval_store
from canon_hermes_plugin.infrastructure.files.approval_store import (
    ARCHIVE_NAME,
    LEDGER_NAME,
    LOCK_NAME,
    FileLedger,
)
from canon_hermes_plugin.infrastructure.files.disk import OsDisk
from canon_hermes_plugin.ports.approvals import Change, Entry, LedgerView
from canon_hermes_plugin.ports.errors import LedgerError

from .model_disk import Killed, ModelDisk

NOW = 1_900_000_000_000


def entry(approval_id: str, **fields: Any) -> dict[str, Any]:
    return {"approvalId": approval_id, "conversationId": "cv", "status": "pending", "expiresAt": NOW, **fields}


def settled(approval_id: str, at: int = NOW) -> dict[str, Any]:
    return entry(approval_id, status="expired", resolvedAt=at)


def put(store: FileLedger, *entries: Entry) -> None:
    store.transact_now(lambda _: Change(None, {str(item["approvalId"]): item for item in entries}))


def read_all(store: FileLedger, ids: list[str]) -> dict[str, Entry]:
    def decide(view: LedgerView) -> Change[dict[str, Entry]]:
        return Change({key: found for key in ids if (found := view.get(key)) is not None})

    return store.transact_now(decide)


# --- crashes --------------------------------------------------------------------------------------------------------

STEPS: list[list[dict[str, Any]]] = [
    [entry("a", status="creating", createClaimId="c", createClaimExpiresAt=NOW)],
    [entry("a")],
    [settled("a"), entry("b")],
    [settled("b", NOW - 1)],
    [settled("c", NOW - 2), settled("d", NOW - 3)],
    [entry("e")],
    [settled("e", NOW - 4), settled("f", NOW - 5)],
    [entry("g")],
    [settled("g", NOW + 1)],
    [entry("h")],
]
IDS = list("abcdefgh")


def history(upto: int) -> dict[str, Entry]:
    merged: dict[str, Entry] = {}
    for step in STEPS[:upto]:
        merged |= {item["approvalId"]: item for item in step}
    return merged


def run_until_death(disk: ModelDisk, home: Path) -> int:
    """Run the steps; return how many were acknowledged before the process died."""
    store, done = FileLedger(home, lambda: NOW, disk=disk, keep=(2, 1)), 0
    try:
        for step in STEPS:
            put(store, *step)
            done += 1
    except Killed:
        return done
    return done


def total_calls(tmp_path: Path) -> int:
    disk = ModelDisk(tmp_path)
    assert run_until_death(disk, tmp_path / "home") == len(STEPS)
    return disk.calls


def test_i19_k4_k5_after_a_crash_at_any_call_every_legal_disk_holds_what_was_acknowledged(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    calls = total_calls(tmp_path)
    states = 0
    for death in range(1, calls + 1):
        disk = ModelDisk(tmp_path)
        disk.die_after = death
        acknowledged = run_until_death(disk, home)
        for state in disk.legal_states():
            states += 1
            store = FileLedger(home, lambda: NOW, disk=ModelDisk(tmp_path, state), keep=(2, 1))
            store.tidy_now()
            found = read_all(store, IDS)
            assert found in (history(acknowledged), history(acknowledged + 1)), (death, acknowledged)
            put(store, entry("later"))
            assert read_all(store, [*IDS, "later"]) == {**found, "later": entry("later")}
    assert calls > 30
    assert states > 100


def test_d29_what_a_crashed_writer_left_is_removed_at_start_up(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    disk = ModelDisk(tmp_path)
    disk.die_after = 4  # home made and synced, temporary file made and synced, not renamed
    run_until_death(disk, home)
    disk.die_after = None
    assert any(path.name.endswith(".tmp") for path in disk.files)
    FileLedger(home, lambda: NOW, disk=disk).tidy_now()
    assert not any(path.name.endswith(".tmp") for path in disk.files)


def test_d29_young_temporary_files_of_a_living_writer_stay(tmp_path):
    young, old = tmp_path / f".{LEDGER_NAME}.1.ab.tmp", tmp_path / f".{LEDGER_NAME}.2.cd.tmp"
    for path in (young, old):
        path.write_bytes(b"x")
    os.utime(old, (time.time() - 3700, time.time() - 3700))
    FileLedger(tmp_path, lambda: NOW).tidy_now()
    assert (young.exists(), old.exists()) == (True, False)


def test_d29_new_directories_are_made_durable_in_their_parents(tmp_path):
    disk = ModelDisk(tmp_path)
    deep = tmp_path / "x" / "home"
    deep.mkdir(parents=True)  # the lock file lives on the real disk
    put(FileLedger(deep, lambda: NOW, disk=disk), entry("a"))
    assert {tmp_path / "x", deep} <= disk.durable.directories
    assert disk.pending == []


class FailingDisk:
    """The real disk, with one call that fails."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._disk = OsDisk()
        self.armed = False

    def __getattr__(self, name: str) -> Any:
        if self.armed and name == self._name:
            return self._fail
        return getattr(self._disk, name)

    def _fail(self, *_: object) -> None:
        raise OSError(28, "no space left on device")


@pytest.mark.parametrize("call", ["read", "create", "sync_file", "replace"])
def test_k11_a_failing_disk_is_the_ledger_error_and_the_old_bytes_stay(tmp_path, call):
    disk: Any = FailingDisk(call)
    store = FileLedger(tmp_path, lambda: NOW, disk=disk)
    put(store, entry("a"))
    before = (tmp_path / LEDGER_NAME).read_bytes()
    disk.armed = True
    with pytest.raises(LedgerError):
        put(store, entry("b"))
    disk.armed = False
    assert (tmp_path / LEDGER_NAME).read_bytes() == before
    assert not list(tmp_path.glob(".*.tmp"))
    put(store, entry("b"))
    assert read_all(store, ["a", "b"]) == {"a": entry("a"), "b": entry("b")}


def test_after_a_failed_directory_sync_memory_and_file_agree(tmp_path):
    disk: Any = FailingDisk("sync_directory")
    store = FileLedger(tmp_path, lambda: NOW, disk=disk)
    put(store, entry("a"))
    disk.armed = True
    with pytest.raises(LedgerError):
        put(store, entry("b"))
    disk.armed = False
    assert read_all(store, ["a", "b"]) == read_all(FileLedger(tmp_path, lambda: NOW), ["a", "b"])


# --- platforms ------------------------------------------------------------------------------------------------------


def test_field_44_a_windows_reader_is_waited_out_and_a_lasting_one_fails_loudly(tmp_path, monkeypatch):
    source, target = tmp_path / "s", tmp_path / "t"
    source.write_bytes(b"new")
    tries: list[int] = []

    def busy(self: Path, _: Path) -> Path:
        tries.append(1)
        error = PermissionError(13, "sharing")
        error.winerror = 32  # type: ignore[attr-defined]
        if len(tries) < 3 or not target.exists():
            raise error
        return self

    monkeypatch.setattr(Path, "replace", busy)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(PermissionError):
        OsDisk().replace(source, target)
    assert len(tries) == 10
    tries.clear()
    target.write_bytes(b"old")
    OsDisk().replace(source, target)
    assert len(tries) == 3


def test_field_46_47_without_a_usable_fcntl_a_mutex_guards_the_ledger(tmp_path, monkeypatch):
    monkeypatch.setattr(approval_store, "has_system_lock", lambda: False)
    put(FileLedger(tmp_path, lambda: NOW), entry("a"))
    assert not (tmp_path / LOCK_NAME).exists()


def test_field_47_a_partial_fcntl_is_not_trusted(monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", type(sys)("fcntl"))
    assert approval_store.has_system_lock() is False


def test_field_49_the_file_is_ascii_whatever_the_locale(tmp_path):
    put(FileLedger(tmp_path, lambda: NOW), entry("a", summary="Größe 🚢 \ud800"))
    raw = (tmp_path / LEDGER_NAME).read_bytes()
    assert raw.isascii()
    assert decode(raw)["a"]["summary"] == "Größe 🚢 \ud800"


def test_files_are_private_from_their_creation(tmp_path):
    home = tmp_path / "home"
    before = os.umask(0)
    try:
        store = FileLedger(home, lambda: NOW, keep=(1, 0))
        put(store, settled("a"), settled("b"))
        put(store, entry("c"))
    finally:
        os.umask(before)
    segment = next((home / ARCHIVE_NAME).iterdir())
    for path in (home / LEDGER_NAME, home / LOCK_NAME, segment):
        assert path.stat().st_mode & 0o777 == 0o600, path
    assert home.stat().st_mode & 0o777 == 0o700


def test_the_lock_file_is_never_removed(tmp_path):
    put(FileLedger(tmp_path, lambda: NOW), entry("a"))
    inode = (tmp_path / LOCK_NAME).stat().st_ino
    put(FileLedger(tmp_path, lambda: NOW), entry("b"))
    assert (tmp_path / LOCK_NAME).stat().st_ino == inode


# --- history --------------------------------------------------------------------------------------------------------


def test_settled_entries_move_to_the_history_and_are_still_found(tmp_path):
    store = FileLedger(tmp_path, lambda: NOW, keep=(4, 2))
    put(store, *(settled(f"s{i}", NOW - i) for i in range(6)))
    put(store, entry("open"))
    in_file = decode((tmp_path / LEDGER_NAME).read_bytes())
    assert set(in_file) == {"open", "s0", "s1"}
    ids = [f"s{i}" for i in range(6)]
    assert read_all(store, ids) == {key: settled(key, NOW - i) for i, key in enumerate(ids)}
    assert read_all(FileLedger(tmp_path, lambda: NOW), ids) == read_all(store, ids)


def test_history_expires_with_its_entries_and_its_files_go(tmp_path):
    now = [NOW]
    store = FileLedger(tmp_path, lambda: now[0], keep=(1, 0))
    put(store, settled("a"), settled("b"))
    put(store, settled("c"))
    assert list((tmp_path / ARCHIVE_NAME).iterdir())
    now[0] = NOW + RETENTION_MS + 1
    assert read_all(store, ["a", "b"]) == {}
    now[0] += 1
    store.tidy_now()
    assert list((tmp_path / ARCHIVE_NAME).iterdir()) == []


def test_a_broken_history_fails_closed_for_what_it_could_hold(tmp_path):
    store = FileLedger(tmp_path, lambda: NOW, keep=(1, 0))
    put(store, settled("a"), settled("b"))
    put(store, entry("open"))
    next((tmp_path / ARCHIVE_NAME).iterdir()).write_bytes(b"[]")
    fresh = FileLedger(tmp_path, lambda: NOW)
    with pytest.raises(LedgerError):
        read_all(fresh, ["a"])
    assert read_all(fresh, ["open"]) == {"open": entry("open")}


def test_the_way_back_puts_all_history_into_the_one_file(tmp_path):
    store = FileLedger(tmp_path, lambda: NOW, keep=(2, 1))
    everything = {f"s{i}": settled(f"s{i}", NOW - i) for i in range(9)}
    put(store, *everything.values())
    everything["new"] = entry("new")
    put(store, everything["new"])
    assert store.restore_history() == 8
    assert decode((tmp_path / LEDGER_NAME).read_bytes()) == everything
    assert list((tmp_path / ARCHIVE_NAME).iterdir()) == []


def test_a_file_written_by_an_older_install_is_taken_over(tmp_path):
    old = {f"s{i:04}": settled(f"s{i:04}", NOW - i) for i in range(600)}
    (tmp_path / LEDGER_NAME).write_text(json.dumps(old, indent=2, sort_keys=True), encoding="utf-8")
    store = FileLedger(tmp_path, lambda: NOW)
    put(store, entry("new"))
    assert len(decode((tmp_path / LEDGER_NAME).read_bytes())) == 65
    assert read_all(store, list(old)) == old


def test_what_another_process_wrote_is_seen(tmp_path):
    store = FileLedger(tmp_path, lambda: NOW)
    put(store, entry("a"))
    (tmp_path / LEDGER_NAME).write_bytes(encode({"a": entry("a", summary="by hand")}))
    assert read_all(store, ["a"])["a"]["summary"] == "by hand"


# --- event loop -----------------------------------------------------------------------------------------------------


class SlowDisk:
    """The real disk, slowly; notes which threads waited for it."""

    def __init__(self) -> None:
        self._disk = OsDisk()
        self.threads: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._disk, name)

        def slow(*args: Any) -> Any:
            self.threads.add(threading.get_ident())
            time.sleep(0.03)
            return call(*args)

        return slow


async def test_field_71_a_slow_disk_never_holds_the_event_loop(tmp_path, caplog):
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.slow_callback_duration = 0.025  # less than one call of the disk
    disk: Any = SlowDisk()
    store = FileLedger(tmp_path, lambda: NOW, disk=disk)
    await store.transact(lambda _: Change(None, {"a": entry("a")}))
    await store.snapshot()
    await store.find("absent")
    await store.tidy()
    assert disk.threads
    assert threading.get_ident() not in disk.threads
    complaints = [record.getMessage() for record in caplog.records if record.name == "asyncio"]
    assert [text for text in complaints if "approval_store" in text] == []


async def test_one_warning_per_process_names_the_file(tmp_path, caplog):
    (tmp_path / LEDGER_NAME).write_bytes(b"secret question")
    store = FileLedger(tmp_path, lambda: NOW)
    for _ in range(3):
        with pytest.raises(LedgerError):
            await store.snapshot()
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert LEDGER_NAME in warnings[0]
    assert "secret" not in caplog.text


# --- processes ------------------------------------------------------------------------------------------------------

_PRELUDE = """
import json, os, random, signal, sys, time
from pathlib import Path
from canon_hermes_plugin.infrastructure.files.approval_store import FileLedger
from canon_hermes_plugin.ports.approvals import Change
NOW = 1_900_000_000_000
home = Path(sys.argv[1])

def entry(key, **fields):
    return {"approvalId": key, "conversationId": "cv", "status": "pending", "expiresAt": NOW, **fields}

def count(store, key, extra=None):
    def decide(view):
        found = view.get(key) or entry(key, count=0)
        changed = {key: {**found, "count": found["count"] + 1}}
        if extra is not None:
            changed[extra] = {**entry(extra), "status": "expired", "resolvedAt": NOW - found["count"]}
        return Change(found["count"] + 1, changed)
    return store.transact_now(decide)
"""


def run_script(script: str, home: Path) -> str:
    code = _PRELUDE + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", code, str(home)], capture_output=True, text=True, check=False, timeout=110
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_200_real_kills_lose_nothing_acknowledged_and_corrupt_nothing(tmp_path):
    out = run_script(
        """
        acknowledged = 0
        for round_ in range(200):
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reader)
                store = FileLedger(home, lambda: NOW, keep=(8, 4))
                while True:
                    n = count(store, "n", f"s{random.randrange(10**9)}")
                    os.write(writer, n.to_bytes(8, "big"))
            os.close(writer)
            # Some rounds die before their first operation, some within a later one.
            data = b""
            for _ in range(random.randrange(4)):
                data += os.read(reader, 8)
            time.sleep(random.uniform(0.0, 0.004))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            while chunk := os.read(reader, 65536):
                data += chunk
            os.close(reader)
            last = int.from_bytes(data[len(data) // 8 * 8 - 8 : len(data) // 8 * 8], "big") if len(data) >= 8 else 0
            acknowledged = max(acknowledged, last)
            store = FileLedger(home, lambda: NOW)
            stored = store.transact_now(lambda view: Change((view.get("n") or {}).get("count", 0)))
            assert acknowledged <= stored <= acknowledged + 1, (round_, acknowledged, stored)
            acknowledged = stored
        store.transact_now(lambda view: Change(len(view.active())))
        print(acknowledged)
        """,
        tmp_path,
    )
    assert int(out) > 100


@pytest.mark.slow
def test_i21_eight_processes_racing_on_one_file_lose_and_double_nothing(tmp_path):
    out = run_script(
        """
        children = []
        for worker in range(8):
            child = os.fork()
            if child == 0:
                store = FileLedger(home, lambda: NOW, keep=(40, 20))
                for i in range(40):
                    count(store, "n", f"s{worker}-{i}")
                os._exit(0)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert codes == [0] * 8, codes
        store = FileLedger(home, lambda: NOW)
        ids = [f"s{w}-{i}" for w in range(8) for i in range(40)]
        found = store.transact_now(lambda view: Change(sum(view.get(key) is not None for key in ids)))
        total = store.transact_now(lambda view: Change(view.get("n")["count"]))
        print(json.dumps([total, found]))
        """,
        tmp_path,
    )
    assert json.loads(out) == [320, 320]


def test_an_open_ledger_does_not_keep_the_process_alive(tmp_path):
    out = run_script(
        """
        import asyncio
        async def main():
            store = FileLedger(home, lambda: NOW)
            await store.transact(lambda _: Change(None, {"a": entry("a")}))
        asyncio.run(main())
        print("end")
        """,
        tmp_path,
    )
    assert out.strip() == "end"


async def test_a_locked_ledger_is_waited_for(tmp_path):
    from filelock import FileLock

    store = FileLedger(tmp_path, lambda: NOW)
    lock = FileLock(tmp_path / LOCK_NAME)
    await asyncio.to_thread(lock.acquire)
    waiting = asyncio.create_task(store.transact(lambda _: Change("done", {"a": entry("a")})))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await asyncio.to_thread(lock.release)
    assert await waiting == "done"
