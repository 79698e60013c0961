"""The outbox on disk: one private file for each operation that is being delivered, gone when it is over.

Decides how an operation becomes durable and which files are entries. Refuses to know when something is sent. Everything
runs in one worker thread of its own, in order: never on an event loop, and never behind the host's long jobs.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar, final

from canon_hermes_plugin.domain.turns.outbox_format import decode, encode
from canon_hermes_plugin.infrastructure.files.disk import Disk, OsDisk, make_directories, write_durably
from canon_hermes_plugin.ports.errors import OutboxError
from canon_hermes_plugin.ports.outbox import OutboxEntry

logger = logging.getLogger(__name__)

R = TypeVar("R")

DIRECTORY: Final = "outbox"
SUFFIX: Final = ".json"
STRAY_SECONDS: Final = 60.0
"""A temporary file of this age was left by a killed writer."""


def directory_of(home: Path, scope: str) -> Path:
    """Return where the entries of ``scope`` lie below a Canon home. The name tells neither agent nor key."""
    return home / DIRECTORY / _digest(scope)


@final
class FileOutbox:
    """The outbox of one agent in one environment.

    Attributes:
        home: the Canon home; created when missing.
        scope: names agent and environment; another scope of the same home sees nothing of this one.
        disk: the file system.
    """

    def __init__(self, home: Path, scope: str, *, disk: Disk | None = None) -> None:
        self._directory = directory_of(home, scope)
        self._scope = scope
        self._disk: Disk = disk or OsDisk()
        self._order = 0
        self._warned = False
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="canon-outbox")

    async def keep(self, entry: OutboxEntry) -> None:
        await self._run(lambda: self.keep_now(entry))

    async def forget(self, operation_id: str) -> None:
        await self._run(lambda: self.forget_now(operation_id))

    async def leftover(self) -> Sequence[OutboxEntry]:
        return await self._run(self.leftover_now)

    def keep_now(self, entry: OutboxEntry) -> None:
        """Do :meth:`keep` in the calling thread."""
        # Of the wall clock, so that it grows across processes too; within one it grows whatever the clock does.
        self._order = max(self._order + 1, time.time_ns())
        path = self._path(entry.operation_id)
        try:
            data = encode(entry, scope=self._scope, order=self._order)
            make_directories(self._disk, self._directory)
            temporary = f".{path.name}.{os.getpid()}.{secrets.token_hex(6)}.tmp"
            write_durably(self._disk, path, data, temporary=temporary)
        except (OSError, ValueError) as error:
            raise OutboxError(f"an operation cannot be kept ({type(error).__name__})") from error

    def forget_now(self, operation_id: str) -> None:
        """Do :meth:`forget` in the calling thread."""
        try:
            self._disk.remove(self._path(operation_id))
        except OSError as error:
            raise OutboxError(f"an operation cannot be removed ({type(error).__name__})") from error

    def leftover_now(self) -> list[OutboxEntry]:
        """Do :meth:`leftover` in the calling thread, and remove what a killed writer left behind."""
        try:
            names = self._disk.names(self._directory)
        except OSError as error:
            raise OutboxError(f"the outbox cannot be read ({type(error).__name__})") from error
        found: list[tuple[int, OutboxEntry]] = []
        unreadable = 0
        for name in names:
            if name.startswith(".") and name.endswith(".tmp"):
                self._remove_stray(self._directory / name)
                continue
            try:
                found.append(self._read(name))
            except (OSError, ValueError):
                unreadable += 1
        if unreadable and not self._warned:
            self._warned = True
            logger.warning("canon outbox: %s file(s) in %s are not readable; left there", unreadable, self._directory)
        return [entry for _, entry in sorted(found, key=lambda item: item[0])]

    async def _run(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _path(self, operation_id: str) -> Path:
        return self._directory / f"{_digest(operation_id)}{SUFFIX}"

    def _read(self, name: str) -> tuple[int, OutboxEntry]:
        path = self._directory / name
        order, entry = decode(self._disk.read(path) or b"", scope=self._scope)
        if path != self._path(entry.operation_id):
            raise ValueError("its name is another one's")
        return order, entry

    def _remove_stray(self, path: Path) -> None:
        with suppress(OSError):
            if self._disk.age(path) >= STRAY_SECONDS:
                self._disk.remove(path)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
