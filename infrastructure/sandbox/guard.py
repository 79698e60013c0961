"""Makes sure that a child does not outlive a parent that was killed outright.

A minimal shell waits on a pipe whose other end only the parent holds. When the parent dies, in whatever way, the pipe
ends, and the shell kills the child's process group and removes its files. Decides nothing else. Where there is no POSIX
shell it does nothing.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

_SHELL = Path("/bin/sh")
_SCRIPT = 'read -r _; kill -s KILL -- "-$1"; [ -z "$2" ] || { sleep 1; rm -rf -- "$2"; }'


class Guard:
    """Watches over the process group ``group`` and, when given, the directory ``root``."""

    def __init__(self, group: int, root: Path | None) -> None:
        self._watcher: subprocess.Popen[bytes] | None = None
        if _SHELL.exists():
            self._watcher = subprocess.Popen(  # noqa: S603 - a fixed script, its arguments quoted
                [str(_SHELL), "-c", _SCRIPT, "guard", str(group), str(root or "")],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def release(self) -> None:
        """Stop watching, before the child's id can belong to somebody else; idempotent."""
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.communicate()
            self._watcher = None
