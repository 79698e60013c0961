"""Decides what ``canon-hermes install`` tells about what it found and did (interactions §12.1). No file is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ALLOWED_USERS = "CANON_ALLOWED_USERS"
ALLOW_ALL = "CANON_ALLOW_ALL_USERS"
GATEWAY_ALLOWED_USERS = "GATEWAY_ALLOWED_USERS"


@dataclass(frozen=True, slots=True)
class Installed:
    """What one run changed. ``undisabled``: the plugin was named in ``plugins.disabled``."""

    plugin: bool
    undisabled: bool
    platform: bool
    access: bool

    @property
    def config(self) -> bool:
        """Tell whether the host's configuration was saved."""
        return self.plugin or self.undisabled or self.platform


def needs_access_rule(environ: Mapping[str, str], env_file: Mapping[str, str]) -> bool:
    """Tell whether nobody has decided yet who may talk to the agent: neither variable holds anything, in no place."""
    return not any(place.get(name, "").strip() for place in (environ, env_file) for name in (ALLOWED_USERS, ALLOW_ALL))


def report(done: Installed, config: str, env: str) -> list[str]:
    """Return one line for each fact; ``config`` and ``env`` name the two files."""
    lines = [
        "plugin canon-hermes: enabled now" if done.plugin else "plugin canon-hermes: already enabled",
        "platform canon: enabled now" if done.platform else "platform canon: already enabled",
    ]
    if done.undisabled:
        lines.insert(1, "plugin canon-hermes: removed from plugins.disabled, which would have kept it off")
    lines.append(f"saved {config}" if done.config else f"nothing to change in {config}")
    lines.append(
        f"access: {ALLOW_ALL}=true set in {env}; everyone in the agent's conversations may talk to it"
        if done.access
        else "access: already configured"
    )
    return lines
