"""Where this plugin keeps its files (canon-wire §4.1). Independent of the host's home."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CanonPaths:
    """The files under the Canon home.

    Attributes:
        home: ``CANON_HOME``, else ``~/.canon``.
        profiles: ``CANON_AGENTS_FILE``, else ``CANON_AGENTS_PATH``, else ``agents.json`` in the home.
        pending: ``pending-registrations.json`` in the home.
    """

    home: Path
    profiles: Path
    pending: Path


def canon_paths(environ: Mapping[str, str]) -> CanonPaths:
    """Return the locations ``environ`` asks for; blank variables count as unset, ``~`` is expanded."""
    home = _path(environ, "CANON_HOME") or Path("~/.canon").expanduser()
    profiles = _path(environ, "CANON_AGENTS_FILE") or _path(environ, "CANON_AGENTS_PATH") or home / "agents.json"
    return CanonPaths(home=home, profiles=profiles, pending=home / "pending-registrations.json")


def _path(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name, "").strip()
    return Path(value).expanduser() if value else None
