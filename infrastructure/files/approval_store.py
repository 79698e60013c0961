"""The approvals ledger on disk: one file under one lock, replaced as a whole (interactions §9.1, §9.2).

Decides how a change becomes durable and nothing about approvals. What it last read or wrote stays in memory, keyed by
the file's exact bytes, so that a change costs its durable write and not a new reading of everything. Settled entries
beyond a small number move to :mod:`.approval_archive`. All calls run in one worker thread, never on an event loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
from collections.abc import Callable, Generator, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, final

from canon_hermes_plugin.domain.approvals.ledger import (
    decode,
    encode_entry,
    is_prunable,
    is_settled,
    join_document,
    retention_stamp,
    validate_entry,
)
from canon_hermes_plugin.infrastructure.files.approval_archive import ApprovalArchive
from canon_hermes_plugin.infrastructure.files.disk import Disk, OsDisk, make_directories, write_durably
from canon_hermes_plugin.infrastructure.files.locks import has_system_lock
from canon_hermes_plugin.ports.approvals import Change, Entry, LedgerView
from canon_hermes_plugin.ports.errors import LedgerError

logger = logging.getLogger(__name__)

R = TypeVar("R")

LEDGER_NAME: Final = "detached-approvals.json"
LOCK_NAME: Final = ".detached-approvals.lock"
ARCHIVE_NAME: Final = "detached-approvals.archive"
SETTLED_HIGH: Final = 128
"""More settled entries than this in the ledger file, and the oldest move to the history …"""
SETTLED_LOW: Final = 64
"""… until this many are left: the newest, which older installs can still answer from."""
PROCESS_ID: Final = secrets.token_hex(16)
"""Names this process in claims; informational only."""
STRAY_SECONDS: Final = 3600.0
_LOCK_POLL: Final = 0.004
_mutexes: dict[Path, threading.RLock] = {}
_mutexes_guard: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What the file holds: its bytes, its entries, and each entry's encoded form when it is already known."""

    raw: bytes | None
    entries: Mapping[str, Entry]
    parts: Mapping[str, str]


@final
class _View:
    """A ledger at one instant, history included."""

    def __init__(self, entries: Mapping[str, Entry], find: Callable[[str], Entry | None], now_ms: int) -> None:
        self._entries = entries
        self._find = find
        self._now_ms = now_ms

    def get(self, approval_id: str) -> Entry | None:
        entry = self._entries.get(approval_id)
        entry = entry if entry is not None else self._find(approval_id)
        return None if entry is None or is_prunable(entry, self._now_ms) else entry

    def active(self) -> list[Entry]:
        chosen = [e for e in self._entries.values() if not is_settled(e) and not is_prunable(e, self._now_ms)]
        return sorted(chosen, key=lambda entry: str(entry["approvalId"]))


@final
class FileLedger:
    """The ledger of one Canon home. Several instances and processes may share the files.

    Attributes:
        home: the Canon home; created when missing.
        now_ms: wall clock, used for retention only.
        disk: the file system.
        keep: how many settled entries make the oldest move to the history, and how many stay then.
    """

    def __init__(
        self,
        home: Path,
        now_ms: Callable[[], int],
        *,
        disk: Disk | None = None,
        keep: tuple[int, int] = (SETTLED_HIGH, SETTLED_LOW),
    ) -> None:
        self._home = home
        self._path = home / LEDGER_NAME
        self._now_ms = now_ms
        self._disk: Disk = disk or OsDisk()
        self._archive = ApprovalArchive(home / ARCHIVE_NAME, self._disk)
        self._cache = _Loaded(None, {}, {})
        self._keep_high, self._keep_low = keep
        self._warned = False
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="canon-ledger")

    async def transact(self, decide: Callable[[LedgerView], Change[R]]) -> R:
        return await self._run(lambda: self.transact_now(decide))

    async def snapshot(self) -> list[Entry]:
        return await self._run(self.snapshot_now)

    async def find(self, approval_id: str) -> Entry | None:
        return await self._run(lambda: self.transact_now(lambda view: Change(view.get(approval_id))))

    async def tidy(self) -> None:
        await self._run(self.tidy_now)

    def transact_now(self, decide: Callable[[LedgerView], Change[R]]) -> R:
        """Do :meth:`transact` in the calling thread."""
        with self._guarded():
            now_ms = self._now_ms()
            loaded = self._load()
            change = decide(_View(loaded.entries, self._archive.find, now_ms))
            self._store(loaded, change.entries, now_ms)
            return change.result

    def snapshot_now(self) -> list[Entry]:
        """Do :meth:`snapshot` in the calling thread."""
        with self._guarded():
            return _View(self._load().entries, self._archive.find, self._now_ms()).active()

    def tidy_now(self) -> None:
        """Do :meth:`tidy` in the calling thread."""
        with suppress(LedgerError), self._guarded():
            for directory, prefix in ((self._home, f".{LEDGER_NAME}."), (self._archive.directory, ".")):
                for name in self._disk.names(directory):
                    if name.startswith(prefix) and name.endswith(".tmp"):
                        self._remove_stray(directory / name)
            self._archive.expire(self._now_ms())

    def restore_history(self) -> int:
        """Put the whole history back into the ledger file and return how many entries came back.

        The way back to a release that knows the single file only: run it with the gateway stopped.

        Raises:
            LedgerError: something cannot be read or written; nothing is lost.
        """
        with self._guarded():
            now_ms = self._now_ms()
            loaded = self._load()
            kept = {k: e for k, e in self._archive.everything().items() if not is_prunable(e, now_ms)}
            back = {key: entry for key, entry in kept.items() if key not in loaded.entries}
            if back:
                self._write({**loaded.entries, **back}, dict(loaded.parts))
            self._archive.remove_all()
            return len(back)

    async def _run(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    @contextmanager
    def _guarded(self) -> Generator[None]:
        """Hold the lock; turn every file failure into the ledger error, and warn once with the file's name."""
        try:
            make_directories(self._disk, self._home)
            with _exclusive(self._home / LOCK_NAME):
                yield
        except OSError as error:
            self._warn("unusable")
            raise LedgerError(f"The approvals ledger cannot be used ({type(error).__name__})") from error
        except LedgerError:
            self._warn("not usable until it is repaired by hand")
            raise

    def _warn(self, state: str) -> None:
        if not self._warned:
            self._warned = True
            logger.warning("canon approvals: ledger %s is %s", self._path, state)

    def _load(self) -> _Loaded:
        raw = self._disk.read(self._path)
        if raw != self._cache.raw:
            self._cache = _Loaded(raw, {} if raw is None else decode(raw), {})
        return self._cache

    def _store(self, loaded: _Loaded, changed: Mapping[str, Entry], now_ms: int) -> None:
        entries = {**loaded.entries, **changed}
        parts = {key: text for key, text in loaded.parts.items() if key not in changed}
        gone = [key for key, entry in entries.items() if is_prunable(entry, now_ms)]
        for key in gone:
            del entries[key]
        if not gone and all(loaded.entries.get(key) == entry for key, entry in changed.items()):
            return
        for key, entry in changed.items():
            validate_entry(key, entry)
        self._move_history(entries, parts, loaded.entries.keys() - changed.keys(), now_ms)
        self._write(entries, parts)

    def _move_history(
        self, entries: dict[str, Entry], parts: dict[str, str], durable: AbstractSet[str], now_ms: int
    ) -> None:
        # Only what the file already says may enter the history: a crash in between must not show half a change.
        settled = [key for key, entry in entries.items() if key in durable and is_settled(entry)]
        if len(settled) <= self._keep_high:
            return
        settled.sort(key=lambda key: (retention_stamp(entries[key]), key))
        moving = settled[: len(settled) - self._keep_low]
        self._archive.add([(entries[key], parts.pop(key, "") or encode_entry(key, entries[key])) for key in moving])
        for key in moving:
            del entries[key]
        self._archive.expire(now_ms)

    def _write(self, entries: Mapping[str, Entry], parts: dict[str, str]) -> None:
        complete: dict[str, str] = {key: parts.get(key) or encode_entry(key, entries[key]) for key in sorted(entries)}
        data = join_document(complete.values())
        temporary = f".{LEDGER_NAME}.{os.getpid()}.{secrets.token_hex(8)}.tmp"
        write_durably(self._disk, self._path, data, temporary=temporary)
        self._cache = _Loaded(data, entries, complete)

    def _remove_stray(self, path: Path) -> None:
        with suppress(OSError):
            if self._disk.age(path) >= STRAY_SECONDS:
                self._disk.remove(path)


@contextmanager
def _exclusive(path: Path) -> Generator[None]:
    """Hold the ledger's lock: a mutex in this process and, where the system has one, an advisory file lock."""
    with _mutexes_guard:
        mutex = _mutexes.setdefault(path, threading.RLock())
    with mutex:
        if not has_system_lock():
            yield
            return
        from filelock import FileLock, Timeout  # here, so that importing this module stays cheap

        lock = FileLock(path, mode=0o600)
        while True:
            # Blocking without a limit, but never longer than the process itself wants to live.
            with suppress(Timeout):
                lock.acquire(timeout=1.0, poll_interval=_LOCK_POLL)
                break
            if not threading.main_thread().is_alive():
                raise LedgerError("The approvals ledger stayed locked until this process ended")
        try:
            yield
        finally:
            lock.release()
