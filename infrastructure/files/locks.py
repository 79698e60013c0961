"""One advisory lock per file, shared with every process and release that uses the same lock file."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

LOCK_SECONDS = 30.0


class LockTimeoutError(OSError):
    """Another process held the lock for longer than the allowed wait."""


@contextmanager
def locked(lock_file: Path, *, timeout: float = LOCK_SECONDS) -> Generator[None]:
    """Hold the lock ``lock_file`` (POSIX ``flock``) for the body; created private, never removed.

    Raises:
        LockTimeoutError: not free within ``timeout`` seconds.
        OSError: the lock file cannot be created.
    """
    from filelock import FileLock, SoftFileLock, Timeout  # keeps the command line fast to start

    lock_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = (FileLock if has_system_lock() else SoftFileLock)(lock_file, timeout=timeout, mode=0o600)
    try:
        lock.acquire()
    except Timeout as error:
        raise LockTimeoutError(f"another process holds {lock_file} for more than {timeout:g} s") from error
    try:
        yield
    finally:
        lock.release()


def has_system_lock() -> bool:
    """Probe what a lock needs instead of trusting an import (field fault 47)."""
    if sys.platform == "win32":
        return True
    try:
        module = import_module("fcntl")
    except ImportError:
        return False
    return all(hasattr(module, name) for name in ("flock", "LOCK_EX", "LOCK_NB", "LOCK_UN"))
