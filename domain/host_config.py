"""Decides what a decoded Hermes configuration means for this plugin, as the host itself would (hermes-host §1.3, §10).

Pure: the configuration comes in as data. Shapes that the host ignores are told apart from shapes it obeys.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

from canon_hermes_plugin.ports.profiles import PlatformSettings

PLUGIN = "canon-hermes"
PLATFORM = "canon"

_REFERENCE = re.compile(r"\$\{([^}]+)\}")
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class PluginState:
    """How ``plugins`` treats this plugin.

    Attributes:
        listed: named in ``plugins.enabled``.
        blocked: named in ``plugins.disabled``, which wins.
        ignored: ``plugins.enabled`` is no list, or holds an entry for which the host ignores the whole list.
    """

    listed: bool
    blocked: bool
    ignored: bool

    @property
    def loads(self) -> bool:
        """Tell whether the host loads the plugin."""
        return self.listed and not self.blocked and not self.ignored


@dataclass(frozen=True, slots=True)
class PlatformState:
    """How ``platforms.canon`` stands. ``written`` is ``None`` when no ``enabled`` key is written anywhere."""

    enabled: bool
    written: bool | None


def at(config: object, *path: str) -> Any:  # noqa: ANN401 - decoded YAML
    """Return the value at ``path``, ``None`` where a step is missing or no mapping."""
    here: Any = config
    for key in path:
        here = cast("Mapping[str, Any]", here).get(key) if isinstance(here, Mapping) else None
    return here


def plugin_state(config: Mapping[str, Any], name: str = PLUGIN) -> PluginState:
    """Return how the host treats the plugin ``name``."""
    enabled, disabled = at(config, "plugins", "enabled"), at(config, "plugins", "disabled")
    usable, blocking = _as_names(enabled), _as_names(disabled)
    return PluginState(
        listed=isinstance(enabled, list) and name in enabled,
        blocked=blocking is not None and name in blocking,
        ignored=enabled is not None and usable is None,
    )


def platform_state(config: Mapping[str, Any], name: str = PLATFORM) -> PlatformState:
    """Return whether the platform is enabled; the top-level section wins over ``gateway.platforms``."""
    top, nested = at(config, "platforms", name), at(config, "gateway", "platforms", name)
    sections = [cast("Mapping[str, Any]", section) for section in (top, nested) if isinstance(section, Mapping)]
    written = next((section["enabled"] for section in sections if "enabled" in section), None)
    return PlatformState(
        enabled=truth(written, default=False),
        written=None if written is None else truth(written, default=False),
    )


def platform_section(config: Mapping[str, Any], name: str = PLATFORM) -> dict[str, Any]:
    """Return the platform's settings, the top-level section laid over ``gateway.platforms``, ``extra`` merged."""
    merged: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for section in (at(config, "gateway", "platforms", name), at(config, "platforms", name)):
        if isinstance(section, Mapping):
            settings = cast("Mapping[str, Any]", section)
            merged.update(settings)
            if isinstance(settings.get("extra"), Mapping):
                extra.update(settings["extra"])
    if extra:
        merged["extra"] = extra
    return merged


def expanded(value: Any, environ: Mapping[str, str]) -> Any:  # noqa: ANN401 - decoded YAML
    """Return ``value`` with every ``${VARIABLE}`` that is set replaced, in all depths, as the host does."""
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: environ.get(found[1], found[0]), value)
    if is_mapping(value):
        return {key: expanded(entry, environ) for key, entry in value.items()}
    return [expanded(entry, environ) for entry in value] if is_sequence(value) else value


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether decoded YAML is a mapping."""
    return isinstance(value, Mapping)


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Tell whether decoded YAML is a list."""
    return isinstance(value, list)


def credentials_section(config: Mapping[str, Any], environ: Mapping[str, str]) -> PlatformSettings:
    """Return what the platform's settings say about credentials."""
    section = expanded(platform_section(config), environ)
    extra = section.get("extra")
    return PlatformSettings(
        api_key=section.get("api_key"),
        token=section.get("token"),
        extra=extra if is_mapping(extra) else {},
    )


def truth(value: object, *, default: bool) -> bool:
    """Return the host's reading of a switch: words count, anything else keeps the default."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return bool(value)
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else default
    return default


def _as_names(value: object) -> frozenset[Hashable] | None:
    """Return a list's entries; ``None`` for another shape or a list the host cannot turn into a set."""
    if not isinstance(value, list):
        return None
    entries = cast("Sequence[Any]", value)
    try:
        return frozenset(entries)
    except TypeError:
        return None
