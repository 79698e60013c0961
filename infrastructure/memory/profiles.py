"""In-memory twins of the profile file and the pending registrations. Same rules, no disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy

from canon_hermes_plugin.domain.profiles.bootstrap import merge_bootstrap, parse_bootstrap
from canon_hermes_plugin.ports.profiles import Document


class MemoryProfileStore:
    """Profiles that live as long as the object. ``bootstrap`` works as the variable does."""

    def __init__(self, profiles: Mapping[str, Document] | None = None, *, bootstrap: str | None = None) -> None:
        self._profiles = {name: dict(deepcopy(document)) for name, document in (profiles or {}).items()}
        self._bootstrap = bootstrap

    def location(self) -> str:
        return "memory"

    def load(self) -> Mapping[str, Document]:
        if self._bootstrap is not None:
            self._profiles = merge_bootstrap(self._profiles, parse_bootstrap(self._bootstrap)) or self._profiles
        return deepcopy(self._profiles)

    def save(self, name: str, document: Document) -> None:
        self._profiles[name] = dict(deepcopy(document))


class MemoryPendingRegistrations:
    """Pending registrations that live as long as the object."""

    def __init__(self, entries: Mapping[str, Document] | None = None) -> None:
        self._entries = {name: dict(deepcopy(document)) for name, document in (entries or {}).items()}

    def location(self) -> str:
        return "memory"

    def load(self) -> Mapping[str, Document]:
        return deepcopy(self._entries)

    def update(self, name: str, change: Callable[[Document | None], Document | None]) -> Document | None:
        after = change(deepcopy(self._entries.get(name)))
        if after is None:
            self._entries.pop(name, None)
        else:
            self._entries[name] = dict(deepcopy(after))
        return after
