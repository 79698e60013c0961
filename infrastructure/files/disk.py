"""The file system as a small port: the calls whose order decides what a crash can leave behind.

Everything durable of the approvals ledger goes through it, so that a test can stop after every call and rebuild every
disk that is legal at that point. It knows nothing of what the files mean.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, final

PRIVATE_FILE: Final = 0o600
PRIVATE_DIRECTORY: Final = 0o700
_SHARING_CODES: Final = frozenset({5, 32, 33})
_RENAME_ATTEMPTS: Final = 10


class Disk(Protocol):
    """File calls, each one step. Every failure is an ``OSError``."""

    def read(self, path: Path) -> bytes | None:
        """Return the file's bytes, or ``None`` when there is no such file."""
        ...

    def names(self, directory: Path) -> list[str]:
        """Return the names in ``directory``, sorted; none when it does not exist."""
        ...

    def age(self, path: Path) -> float:
        """Return the seconds since the file was last written."""
        ...

    def is_directory(self, path: Path) -> bool:
        """Return whether the directory exists."""
        ...

    def make_directory(self, path: Path) -> bool:
        """Create one private directory; ``False`` when it exists."""
        ...

    def create(self, path: Path, data: bytes) -> None:
        """Create a file that does not exist yet, private from its creation, holding ``data``. Not yet durable."""
        ...

    def sync_file(self, path: Path) -> None:
        """Make the file's content durable."""
        ...

    def replace(self, source: Path, target: Path) -> None:
        """Rename ``source`` over ``target``. Not yet durable."""
        ...

    def remove(self, path: Path) -> None:
        """Remove the file; a missing one is fine."""
        ...

    def sync_directory(self, path: Path) -> None:
        """Make creations, renames and removals in ``path`` durable."""
        ...


@final
class OsDisk:
    """The operating system's files. Platform limits are probed by name, never by import (field faults 46, 47)."""

    def read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None

    def names(self, directory: Path) -> list[str]:
        try:
            return sorted(path.name for path in directory.iterdir())
        except FileNotFoundError:
            return []

    def age(self, path: Path) -> float:
        return time.time() - path.stat().st_mtime

    def is_directory(self, path: Path) -> bool:
        return path.is_dir()

    def make_directory(self, path: Path) -> bool:
        try:
            path.mkdir(mode=PRIVATE_DIRECTORY)
        except FileExistsError:
            return False
        return True

    def create(self, path: Path, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags, PRIVATE_FILE), "wb") as file:
            file.write(data)

    def sync_file(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        for attempt in range(1, _RENAME_ATTEMPTS + 1):
            try:
                source.replace(target)
            except OSError as error:
                # A Windows reader holds the file for a moment: wait it out, then fail loudly (field fault 44).
                if getattr(error, "winerror", None) not in _SHARING_CODES or attempt == _RENAME_ATTEMPTS:
                    raise
                time.sleep(min(0.01 * 2**attempt, 0.5) * (0.5 + random.random()))  # noqa: S311 - only spreads retries
            else:
                return

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def sync_directory(self, path: Path) -> None:
        if not hasattr(os, "O_DIRECTORY"):
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_directories(disk: Disk, directory: Path) -> None:
    """Create ``directory`` with its parents and make each new one durable in its parent (D29)."""
    missing: list[Path] = []
    at = directory
    while not disk.is_directory(at):
        missing.append(at)
        at = at.parent
    for path in reversed(missing):
        if disk.make_directory(path):
            disk.sync_directory(path.parent)


def write_durably(disk: Disk, path: Path, data: bytes, *, temporary: str) -> None:
    """Replace ``path`` by ``data`` so that a crash leaves the old bytes or the new ones.

    ``temporary`` is the name of the file written first, beside the target; it is gone afterwards when possible.

    Raises:
        OSError: the step that failed; before the rename the old bytes are intact.
    """
    scratch = path.parent / temporary
    try:
        disk.create(scratch, data)
        disk.sync_file(scratch)
        disk.replace(scratch, path)
    except OSError:
        with suppress(OSError):
            disk.remove(scratch)
        raise
    disk.sync_directory(path.parent)
