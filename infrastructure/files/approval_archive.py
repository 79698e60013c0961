"""Settled approvals that nothing can happen to any more, moved out of the ledger file (docs/decisions).

The ledger is rewritten as a whole for every change, so what never changes again must not lie in it. History is kept in
segments: immutable files in the ledger's own format, named after their newest entry and their content. Writing the same
segment twice writes the same file. Callers hold the ledger's lock. It decides nothing about approvals.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, final

from canon_hermes_plugin.domain.approvals.ledger import RETENTION_MS, decode, join_document, retention_stamp
from canon_hermes_plugin.infrastructure.files.disk import Disk, make_directories, write_durably
from canon_hermes_plugin.ports.approvals import Entry
from canon_hermes_plugin.ports.errors import LedgerError

SEGMENT_ENTRIES: Final = 512
_FARTHEST: Final = 10**15 - 1
_SUFFIX: Final = ".json"


@final
class ApprovalArchive:
    """The segments in one directory, indexed by approval id once each."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk
        self._ids: dict[str, frozenset[str]] = {}
        self._recent: tuple[str, Mapping[str, Entry]] = ("", {})

    def find(self, approval_id: str) -> Entry | None:
        """Return the archived entry, or ``None``.

        Raises:
            LedgerError: a segment cannot be read or trusted.
        """
        for name in self._refresh():
            if approval_id in self._ids[name]:
                return self._segment(name).get(approval_id)
        return None

    def everything(self) -> dict[str, Entry]:
        """Return all archived entries; raises as :meth:`find`."""
        merged: dict[str, Entry] = {}
        for name in self._refresh():
            merged |= self._segment(name)
        return merged

    def add(self, parts: Sequence[tuple[Entry, str]]) -> None:
        """Make settled entries with their encoded form durable as new segments; raises ``OSError``."""
        make_directories(self._disk, self._directory)
        for start in range(0, len(parts), SEGMENT_ENTRIES):
            self._write(parts[start : start + SEGMENT_ENTRIES])

    def expire(self, now_ms: int) -> None:
        """Remove segments whose newest entry is past its retention, and what crashed writers left."""
        for name in self._disk.names(self._directory):
            newest = name.split("-", 1)[0]
            if name.endswith(_SUFFIX) and newest.isdecimal() and int(newest) < now_ms - RETENTION_MS:
                self._disk.remove(self._directory / name)

    def remove_all(self) -> None:
        """Remove every segment: their entries are back in the ledger."""
        for name in self._disk.names(self._directory):
            self._disk.remove(self._directory / name)

    @property
    def directory(self) -> Path:
        """Where the segments lie."""
        return self._directory

    def _write(self, parts: Sequence[tuple[Entry, str]]) -> None:
        data = join_document(text for _, text in sorted(parts, key=lambda part: str(part[0]["approvalId"])))
        newest = min(max(int(max(retention_stamp(entry) for entry, _ in parts)) + 1, 0), _FARTHEST)
        name = f"{newest:015d}-{hashlib.sha256(data).hexdigest()[:24]}{_SUFFIX}"
        path = self._directory / name
        if name in self._disk.names(self._directory):
            self._disk.sync_directory(self._directory)
            return
        write_durably(self._disk, path, data, temporary=f".{name}.tmp")

    def _refresh(self) -> list[str]:
        names = [name for name in self._disk.names(self._directory) if name.endswith(_SUFFIX)]
        for name in names:
            if name not in self._ids:
                self._ids[name] = frozenset(self._segment(name))
        for gone in self._ids.keys() - set(names):
            del self._ids[gone]
        return names

    def _segment(self, name: str) -> Mapping[str, Entry]:
        if self._recent[0] != name:
            raw = self._disk.read(self._directory / name)
            if raw is None:
                raise LedgerError("A segment of the approvals history vanished while it was read")
            self._recent = (name, decode(raw))
        return self._recent[1]
