"""Judges what is installed: versions, entry point, launcher, hooks and borrowed host internals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from canon_hermes_plugin.domain.doctor.report import Line, State

SUPPORTED_HOSTS = ((0, 18, 2), (0, 20))
"""The first supported host version, and the first one that is not."""
HOST_RANGE = "0.18.2 up to, not including, 0.20"
SUPPORTED_PYTHONS = ((3, 11), (3, 14))

Launcher = Literal["absent", "same", "other", "not python", "unreadable"]


@dataclass(frozen=True, slots=True)
class InstallFacts:
    """What is installed here.

    Attributes:
        plugin_version: the package's version, ``None`` when it is not installed.
        checkout: the package runs from a source checkout.
        python: the interpreter's version.
        host_version: the host's version, ``None`` when it is not installed.
        entry_point: what the host will import for this plugin, ``None`` when it cannot see the plugin.
        launcher: how the ``hermes`` on the path relates to this environment.
        launcher_path: that ``hermes``.
        hooks_missing: hooks the plugin uses and the host lacks; ``None`` when the host could not be looked at.
        internals_missing: (borrowed name, what is lost without it); ``None`` when the host could not be looked at.
    """

    plugin_version: str | None
    checkout: bool
    python: tuple[int, int]
    host_version: str | None
    entry_point: str | None
    launcher: Launcher
    launcher_path: str
    hooks_missing: tuple[str, ...] | None
    internals_missing: tuple[tuple[str, str], ...] | None


def install_lines(facts: InstallFacts) -> Iterator[Line]:
    """Return what is installed, and where."""
    yield _plugin(facts)
    yield _python(facts)
    yield _host(facts)
    if facts.entry_point is None:
        yield Line(
            "entry-point",
            "fault",
            "Hermes cannot see the plugin: no entry point canon-hermes in this environment",
            "pip install canon-hermes-plugin into the environment that runs hermes",
            required=True,
        )
    else:
        yield Line("entry-point", "ok", f"entry point canon-hermes leads to {facts.entry_point}", required=True)
    yield _launcher(facts)


def host_lines(facts: InstallFacts) -> Iterator[Line]:
    """Return what of the host the plugin builds on is there."""
    yield _hooks(facts)
    yield _internals(facts)


def version_tuple(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, for comparison."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def host_supported(version: str) -> bool:
    """Tell whether the plugin supports this host."""
    lowest, first_beyond = SUPPORTED_HOSTS
    return lowest <= version_tuple(version) < first_beyond


def _plugin(facts: InstallFacts) -> Line:
    if facts.plugin_version is None:
        return Line(
            "plugin-version", "unknown", "canon-hermes-plugin: not installed", "pip install canon-hermes-plugin"
        )
    origin = " (source checkout)" if facts.checkout else ""
    return Line("plugin-version", "ok", f"canon-hermes-plugin {facts.plugin_version}{origin}")


def _python(facts: InstallFacts) -> Line:
    lowest, first_beyond = SUPPORTED_PYTHONS
    shown = ".".join(map(str, facts.python))
    if lowest <= facts.python < first_beyond:
        return Line("python-version", "ok", f"Python {shown}")
    return Line("python-version", "fault", f"Python {shown} is not supported", "use Python 3.11, 3.12 or 3.13")


def _host(facts: InstallFacts) -> Line:
    if facts.host_version is None:
        return Line(
            "host-version",
            "fault",
            "Hermes Agent is not installed in this environment",
            "install canon-hermes-plugin into the environment that runs hermes",
            required=True,
        )
    if host_supported(facts.host_version):
        return Line("host-version", "ok", f"hermes-agent {facts.host_version} (supported: {HOST_RANGE})", required=True)
    return Line(
        "host-version",
        "fault",
        f"hermes-agent {facts.host_version} is outside the supported range {HOST_RANGE}",
        "pip install 'hermes-agent>=0.18.2,<0.20'",
        required=True,
    )


def _launcher(facts: InstallFacts) -> Line:
    if facts.launcher == "same":
        return Line("launcher", "ok", f"hermes on the path runs in this environment ({facts.launcher_path})")
    fix = "run canon-hermes from the environment of the hermes you use, or install the plugin there"
    meanings = {
        "absent": "no hermes command on the path",
        "other": f"the hermes on the path belongs to another environment ({facts.launcher_path})",
        "not python": f"the hermes on the path is no Python launcher ({facts.launcher_path})",
        "unreadable": f"the hermes on the path cannot be inspected ({facts.launcher_path})",
    }
    state: State = "warning" if facts.launcher == "other" else "unknown"
    return Line("launcher", state, meanings[facts.launcher], fix)


def _hooks(facts: InstallFacts) -> Line:
    if facts.hooks_missing is None:
        return Line("hooks", "unknown", "the host's hooks could not be looked at")
    if facts.hooks_missing:
        return Line(
            "hooks",
            "warning",
            f"this host lacks hooks: {', '.join(facts.hooks_missing)}; turns show less activity",
            "use a supported hermes-agent",
        )
    return Line("hooks", "ok", "the host offers every hook the plugin uses")


def _internals(facts: InstallFacts) -> Line:
    if facts.internals_missing is None:
        return Line("host-internals", "unknown", "the host's borrowed internals could not be looked at")
    if not facts.internals_missing:
        return Line("host-internals", "ok", "every borrowed host internal is present")
    lost = "; ".join(f"{name} ({effect})" for name, effect in facts.internals_missing)
    return Line("host-internals", "warning", f"missing host internals: {lost}", "use a supported hermes-agent")
