"""One suite for the approvals ledger in a file and in memory (ports/approvals, interactions §9.2)."""

from __future__ import annotations

from pathlib import Path

from canon_hermes_plugin.infrastructure.files.approval_store import LEDGER_NAME, FileLedger
from canon_hermes_plugin.infrastructure.memory.approval_store import MemoryLedger
from canon_hermes_plugin.ports.approvals import LedgerStore
from canon_hermes_plugin.testing.contracts import LedgerStoreContract
from canon_hermes_plugin.testing.contracts.ledger import NOW


class Rig:
    """A store with a settable clock and access to its bytes."""

    def __init__(self, kind: str, home: Path) -> None:
        self.now = NOW
        self._path = home / LEDGER_NAME
        self.memory = MemoryLedger(lambda: self.now) if kind == "memory" else None
        self.store: LedgerStore = self.memory or FileLedger(home, lambda: self.now)

    async def close(self) -> None:
        return

    def read(self) -> bytes | None:
        if self.memory is not None:
            return self.memory.document
        return self._path.read_bytes() if self._path.exists() else None

    def write(self, raw: bytes) -> None:
        if self.memory is not None:
            self.memory.document = raw
        else:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_bytes(raw)


class TestFile(LedgerStoreContract):
    subject = FileLedger

    def factory(self, tmp_path):
        return Rig("file", tmp_path / "home")


class TestMemory(LedgerStoreContract):
    subject = MemoryLedger

    def factory(self, tmp_path):
        return Rig("memory", tmp_path / "home")
