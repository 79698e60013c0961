"""Replaces a file as a whole: readers see the old bytes or the new ones, never a part, never a wider mode.

It decides how bytes reach the disk and refuses to know what they mean. Nothing here imports a platform module: what a
system lacks is probed by name (field faults 46, 47).
"""

from __future__ import annotations

import errno
import os
import random
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PRIVATE = 0o600
"""Owner may read and write; nobody else anything."""

_SHARING_CODES = frozenset({5, 32, 33})
"""Windows: access denied, sharing violation, lock violation. A reader holds the file; it passes (field fault 44)."""

_STRAY_AGE = 60.0


@dataclass(frozen=True, slots=True)
class AtomicWriter:
    """Writes files durably.

    Attributes:
        replace: the system's rename; replaced in tests.
        sleep: how to wait between tries, in seconds.
        jitter: a random number in [0, 1).
        attempts: tries of the rename while a Windows reader holds the file.
    """

    replace: Callable[[str, str], None] = os.replace
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random  # noqa: S311 - spreads retries, guards nothing
    attempts: int = 10

    def write(self, path: Path, data: bytes, *, mode: int = PRIVATE) -> None:
        """Replace ``path`` by ``data`` with permission bits ``mode``; parents are created private.

        The temporary file is private from its creation, lies beside the target and is gone afterwards, whatever
        happens. A symbolic link stays a link: its target is replaced.

        Raises:
            OSError: nothing was replaced; the old file is intact.
        """
        target = _target_of(path)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = target.parent / f".{target.name}.{os.getpid()}.{secrets.token_hex(6)}.tmp"
        try:
            _write_new(temporary, data, mode)
            self._swap(temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_directory(target.parent)

    def _swap(self, temporary: Path, target: Path) -> None:
        for attempt in range(1, self.attempts + 1):
            try:
                self.replace(str(temporary), str(target))
            except OSError as error:
                if getattr(error, "winerror", None) not in _SHARING_CODES or attempt == self.attempts:
                    raise
                self.sleep(min(0.01 * 2**attempt, 0.5) * (0.5 + self.jitter()))
            else:
                return


def _target_of(path: Path) -> Path:
    """Return where a write of ``path`` goes: through symbolic links, to what they name."""
    if not path.is_symlink():
        return path
    loop = OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    try:
        target = path.resolve()
    except RuntimeError as error:  # a loop of links, up to Python 3.12
        raise loop from error
    if target.is_symlink():  # since Python 3.13 a loop resolves to itself
        raise loop
    return target


def write_atomic(path: Path, data: bytes, *, mode: int = PRIVATE) -> None:
    """Replace ``path`` by ``data``; see :meth:`AtomicWriter.write`."""
    AtomicWriter().write(path, data, mode=mode)


def clean_strays(path: Path, *, older_than: float = _STRAY_AGE) -> list[Path]:
    """Remove temporary files that a killed writer of ``path`` left behind and return them.

    Call it under the lock that guards ``path``. Files younger than ``older_than`` seconds stay: an older release of the
    plugin may be writing without that lock.
    """
    removed: list[Path] = []
    for stray in strays(path):
        with suppress(OSError):
            if time.time() - stray.stat().st_mtime >= older_than:
                stray.unlink()
                removed.append(stray)
    return removed


def strays(path: Path) -> list[Path]:
    """Return the temporary files beside ``path``, sorted."""
    prefix = f".{path.name}."
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return []
    return [path.parent / name for name in names if name.startswith(prefix) and name.endswith(".tmp")]


def sync_directory(directory: Path) -> None:
    """Make a rename in ``directory`` survive a power cut, where the system can open directories."""
    flag = getattr(os, "O_DIRECTORY", None)
    if flag is None:
        return
    try:
        descriptor = os.open(directory, os.O_RDONLY | flag)
    except OSError:
        return
    try:
        with suppress(OSError):  # some network file systems refuse to sync a directory; the file itself is synced
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_new(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if mode != PRIVATE:
            path.chmod(mode)
        os.fsync(file.fileno())
