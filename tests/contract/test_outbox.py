"""One suite for the outbox in files and in memory (ports/outbox; field fault 90)."""

from __future__ import annotations

from pathlib import Path

from canon_hermes_plugin.infrastructure.files.outbox import FileOutbox
from canon_hermes_plugin.infrastructure.memory.outbox import MemoryOutbox
from canon_hermes_plugin.ports.outbox import Outbox
from canon_hermes_plugin.testing.contracts import OutboxContract


class FileRig:
    """An outbox in files."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.store: Outbox = FileOutbox(home, "agent one")

    async def close(self) -> None:
        return

    def reopened(self) -> Outbox:
        return FileOutbox(self.home, "agent one")

    def other_agent(self) -> Outbox | None:
        return FileOutbox(self.home, "agent two")

    def damage(self, operation_id: str, keep_bytes: int) -> None:
        path = self._path(operation_id)
        path.write_bytes(path.read_bytes()[:keep_bytes])

    def stored(self, operation_id: str) -> bytes | None:
        path = self._path(operation_id)
        return path.read_bytes() if path.exists() else None

    def _path(self, operation_id: str) -> Path:
        return FileOutbox(self.home, "agent one")._path(operation_id)


class MemoryRig:
    """An outbox in memory."""

    def __init__(self) -> None:
        self.memory = MemoryOutbox()
        self.store: Outbox = self.memory

    async def close(self) -> None:
        return

    def reopened(self) -> Outbox:
        return self.memory

    def other_agent(self) -> Outbox | None:
        return None

    def damage(self, operation_id: str, keep_bytes: int) -> None:
        self.memory.documents[operation_id] = self.memory.documents[operation_id][:keep_bytes]

    def stored(self, operation_id: str) -> bytes | None:
        return self.memory.documents.get(operation_id)


class TestFile(OutboxContract):
    subject = FileOutbox

    def factory(self, tmp_path):
        return FileRig(tmp_path / "home")


class TestMemory(OutboxContract):
    subject = MemoryOutbox

    def factory(self, tmp_path):
        del tmp_path
        return MemoryRig()
