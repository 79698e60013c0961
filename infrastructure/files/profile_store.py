"""The profile file and the pending registrations on disk. What a usable profile is, the domain decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from canon_hermes_plugin.domain.profiles.bootstrap import merge_bootstrap, parse_bootstrap
from canon_hermes_plugin.domain.settings import BOOTSTRAP
from canon_hermes_plugin.infrastructure.files.json_objects import Entries, JsonObjectFile
from canon_hermes_plugin.infrastructure.files.locations import canon_paths
from canon_hermes_plugin.ports.errors import ConfigurationError
from canon_hermes_plugin.ports.profiles import Document


class FileProfileStore:
    """``agents.json`` (canon-wire §4.1).

    Args:
        file: where the profiles lie.
        bootstrap: the value of the bootstrap variable, ``None`` when unset.
        keep_bootstrap: write what the bootstrap adds; otherwise it is only shown.
    """

    def __init__(self, file: JsonObjectFile, *, bootstrap: str | None = None, keep_bootstrap: bool = True) -> None:
        self._file = file
        self._bootstrap = bootstrap
        self._keep = keep_bootstrap

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], *, keep_bootstrap: bool = True) -> FileProfileStore:
        """Return the store ``environ`` names."""
        bootstrap = environ.get(BOOTSTRAP.env) or None
        return cls(JsonObjectFile(canon_paths(environ).profiles), bootstrap=bootstrap, keep_bootstrap=keep_bootstrap)

    def location(self) -> str:
        return str(self._file.path)

    def load(self) -> Mapping[str, Document]:
        stored = self._file.read()
        if self._bootstrap is None:
            return stored or {}
        wanted = parse_bootstrap(self._bootstrap)
        merged = merge_bootstrap(stored, wanted)
        if merged is None:
            return stored or {}
        if not self._keep:
            return merged
        try:
            self._file.change(lambda current: merge_bootstrap(current, wanted))
        except OSError as error:
            raise ConfigurationError(f"the profiles of {BOOTSTRAP.env} cannot be written: {error}") from error
        return self._file.read() or {}

    def save(self, name: str, document: Document) -> None:
        self._file.change(lambda current: {**(current or {}), name: dict(document)})


class FilePendingRegistrations:
    """``pending-registrations.json`` (canon-wire §2.4)."""

    def __init__(self, file: JsonObjectFile) -> None:
        self._file = file

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> FilePendingRegistrations:
        """Return the store ``environ`` names."""
        return cls(JsonObjectFile(canon_paths(environ).pending))

    def location(self) -> str:
        return str(self._file.path)

    def load(self) -> Mapping[str, Document]:
        return self._file.read() or {}

    def update(self, name: str, change: Callable[[Document | None], Document | None]) -> Document | None:
        result: list[Document | None] = []

        def decide(current: Entries | None) -> Entries | None:
            entries = dict(current or {})
            before = entries.get(name)
            after = change(before)
            result.append(after)
            if after == before:
                return None
            if after is None:
                del entries[name]
            else:
                entries[name] = dict(after)
            return entries

        self._file.change(decide)
        return result[0]
