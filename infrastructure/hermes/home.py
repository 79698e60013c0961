"""Finds the home of the active Hermes profile, and asks whether this install may change it (hermes-host §10.1, §10.4).

It follows the same order as the ``hermes`` command: a home that already is a profile, the profile made sticky by
``hermes profile use``, the home itself. It reads no setting.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from canon_hermes_plugin.ports.errors import ConfigurationError, UnsupportedHostError


@dataclass(frozen=True, slots=True)
class HostHome:
    """The files of one Hermes profile.

    Attributes:
        root: the profile's home directory.
        profile: the profile's name, ``default`` for a root.
    """

    root: Path
    profile: str

    @property
    def config(self) -> Path:
        """The host's configuration file."""
        return self.root / "config.yaml"

    @property
    def env(self) -> Path:
        """The host's environment file; its values win over the process environment in the gateway."""
        return self.root / ".env"


def active_home(environ: Mapping[str, str] | None = None) -> HostHome:
    """Return the home that ``hermes`` would use.

    Raises:
        UnsupportedHostError: the host is not importable here.
        ConfigurationError: the sticky profile does not exist.
    """
    environ = os.environ if environ is None else environ
    try:
        host = import_module("hermes_constants")
    except ImportError as error:
        raise UnsupportedHostError(
            "Hermes Agent cannot be imported here; install canon-hermes-plugin into the environment that runs hermes"
        ) from error
    home = Path(host.get_hermes_home())
    if home.parent.name == "profiles":
        return HostHome(home, home.name)
    root = Path(host.get_default_hermes_root())
    name = None if environ.get("HERMES_S6_SUPERVISED_CHILD") else _sticky_profile(root)
    if name is None:
        return HostHome(home, "default")
    profile = root / "profiles" / name
    if not profile.is_dir():
        raise ConfigurationError(f"the active Hermes profile {name!r} does not exist; run hermes profile use default")
    return HostHome(profile, name)


def managed_by() -> str | None:
    """Return the package manager that owns this Hermes install and its configuration, or ``None``.

    Raises:
        UnsupportedHostError: the host's configuration helpers are not importable.
    """
    try:
        owner: object = import_module("hermes_cli.config").get_managed_system()
    except ImportError as error:
        raise UnsupportedHostError(
            "the configuration helpers of Hermes Agent cannot be imported; reinstall hermes-agent"
        ) from error
    return str(owner) if owner else None


def managed_keys(names: Iterable[str]) -> tuple[str, ...]:
    """Return which environment variables an administrator pins on this machine, so that ``.env`` cannot set them."""
    try:
        is_managed: Callable[[str], bool] = import_module("hermes_cli.managed_scope").is_env_managed
    except ImportError:
        return ()
    return tuple(name for name in names if is_managed(name))


def _sticky_profile(root: Path) -> str | None:
    try:
        name = (root / "active_profile").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return name if name and name != "default" else None
