"""Judges the host's configuration and the environment variables: enablement, access, and settings that hurt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from canon_hermes_plugin.domain.doctor.install import version_tuple
from canon_hermes_plugin.domain.doctor.report import Line
from canon_hermes_plugin.domain.host_config import PLATFORM, PLUGIN, at, platform_state, plugin_state, truth
from canon_hermes_plugin.domain.install_plan import ALLOW_ALL, ALLOWED_USERS, needs_access_rule

INSTALL = "canon-hermes install"
_SMART_DEFAULT = (0, 19)
_PATIENT = 300


def config_broken(problem: str) -> Iterator[Line]:
    """Return the lines for a configuration that cannot be read."""
    yield Line(
        "config", "fault", f"the Hermes configuration is unusable: {problem}", "correct that place", required=True
    )
    for check in ("plugin-enabled", "platform-enabled"):
        yield Line(check, "unknown", "cannot be told from a broken configuration", required=True)


def enablement_lines(config: Mapping[str, Any], where: str) -> Iterator[Line]:
    """Return whether plugin and platform are on; ``where`` names the configuration."""
    yield Line("config", "ok", f"configuration {where} is readable", required=True)
    yield _plugin(config)
    yield _platform(config)


def _plugin(config: Mapping[str, Any]) -> Line:
    state = plugin_state(config)
    if state.loads:
        return Line("plugin-enabled", "ok", "the plugin is enabled", required=True)
    if state.ignored:
        meaning = "plugins.enabled is not a list of names, so Hermes ignores all of it"
        return Line("plugin-enabled", "fault", meaning, "make it a list of plugin names", required=True)
    if state.listed:
        meaning = f"conflict: {PLUGIN} is in plugins.enabled and in plugins.disabled, which wins"
    elif state.blocked:
        meaning = f"{PLUGIN} is in plugins.disabled"
    else:
        meaning = f"{PLUGIN} is not in plugins.enabled"
    return Line("plugin-enabled", "fault", meaning, INSTALL, required=True)


def _platform(config: Mapping[str, Any]) -> Line:
    state = platform_state(config)
    if state.enabled:
        return Line("platform-enabled", "ok", "the Canon platform is enabled", required=True)
    written = "is switched off" if state.written is False else "is not enabled"
    return Line("platform-enabled", "fault", f"platforms.{PLATFORM} {written}", INSTALL, required=True)


def access_lines(environ: Mapping[str, str]) -> Iterator[Line]:
    """Return who may talk to the agent."""
    if needs_access_rule(environ, {}):
        yield Line(
            "access",
            "warning",
            "nobody is allowed yet: Hermes asks every person to pair first",
            f"set {ALLOWED_USERS} to user ids, or {ALLOW_ALL}=true",
        )
    elif truth(environ.get(ALLOW_ALL), default=False) or "*" in environ.get(ALLOWED_USERS, ""):
        yield Line("access", "ok", "everyone in the agent's conversations may talk to it")
    else:
        count = len([entry for entry in environ.get(ALLOWED_USERS, "").split(",") if entry.strip()])
        yield Line("access", "ok", f"{count} user ids may talk to the agent")


def home_channel_lines(environ: Mapping[str, str], section: Mapping[str, Any]) -> Iterator[Line]:
    """Return where scheduled deliveries without a target go."""
    configured = environ.get("CANON_HOME_CHANNEL", "").strip() or at(section, "home_channel", "chat_id")
    if configured:
        yield Line("home-channel", "ok", f"home channel: {configured}")
    else:
        yield Line(
            "home-channel",
            "note",
            "no home channel: scheduled deliveries need an explicit target",
            "set CANON_HOME_CHANNEL to a conversation id",
        )


def advice_lines(config: Mapping[str, Any], host_version: str | None) -> Iterator[Line]:
    """Return the settings that hurt, and why."""
    newer = version_tuple(host_version or "") >= _SMART_DEFAULT
    yield _approvals_mode(config, newer=newer)
    yield _approvals_patience(config, newer=newer)
    yield from _streaming(config)
    yield from _display(config)


def multiplexing_lines(config: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[Line]:
    """Return whether one gateway serves several profiles, which the plugin refuses."""
    word = environ.get("GATEWAY_MULTIPLEX_PROFILES", "").strip()
    configured = at(config, "gateway", "multiplex_profiles")
    if configured is None:
        configured = at(config, "multiplex_profiles")
    if truth(word or None, default=truth(configured, default=False)):
        yield Line(
            "multiplexing",
            "fault",
            "profile multiplexing is on: one process would serve several agents, and the platform refuses to start",
            "set gateway.multiplex_profiles to false and run one gateway for each profile",
        )
    else:
        yield Line("multiplexing", "ok", "one profile for each gateway process")


def _approvals_mode(config: Mapping[str, Any], *, newer: bool) -> Line:
    written = at(config, "approvals", "mode")
    mode = "off" if written is False else str(written or ("smart" if newer else "manual")).strip().lower()
    fix = "hermes config set approvals.mode manual"
    if mode == "manual":
        return Line("approvals-mode", "ok", "people decide about dangerous commands (approvals.mode manual)")
    if mode == "off":
        return Line("approvals-mode", "warning", "dangerous commands run without asking (approvals.mode off)", fix)
    by_default = "" if written else ", the default of this host"
    return Line(
        "approvals-mode",
        "warning",
        f"a model may approve commands in your place (approvals.mode {mode}{by_default})",
        fix,
    )


def _approvals_patience(config: Mapping[str, Any], *, newer: bool) -> Line:
    key = "timeout" if newer else "gateway_timeout"
    written = at(config, "approvals", key)
    seconds = written if isinstance(written, int | float) and not isinstance(written, bool) else 60 if newer else 300
    if seconds >= _PATIENT:
        return Line("approvals-timeout", "ok", f"people have {seconds:g} s to decide (approvals.{key})")
    return Line(
        "approvals-timeout",
        "note",
        f"people have only {seconds:g} s to decide before the command is denied",
        f"hermes config set approvals.{key} {_PATIENT}",
    )


def _streaming(config: Mapping[str, Any]) -> Iterator[Line]:
    for_canon = at(config, "display", "platforms", PLATFORM, "streaming")
    enabled = truth(for_canon, default=truth(at(config, "streaming", "enabled"), default=False))
    transport = at(config, "streaming", "transport")
    if transport is False or str(transport).lower() == "off":
        enabled = False
    if enabled:
        yield Line("streaming", "ok", "answers are shown while they grow")
    else:
        yield Line(
            "streaming",
            "note",
            "streaming is off: people see an answer only when it is complete",
            "hermes config set streaming.enabled true",
        )
    fresh = at(config, "streaming", "fresh_final_after_seconds")
    if isinstance(fresh, int | float) and not isinstance(fresh, bool) and fresh > 0:
        yield Line(
            "streaming-final",
            "warning",
            "streaming.fresh_final_after_seconds makes the host send long answers a second way",
            "set it to 0",
        )


def _display(config: Mapping[str, Any]) -> Iterator[Line]:
    """Name the switches whose chatter the plugin keeps out of the conversation anyway, and those that hide errors."""
    mode = at(config, "display", "busy_input_mode")
    if mode == "steer":
        yield Line(
            "busy-input",
            "note",
            "display.busy_input_mode does not apply to Canon: each message says itself whether it waits or interrupts",
        )
    if truth(at(config, "display", "platforms", PLATFORM, "show_reasoning"), default=False) or truth(
        at(config, "display", "show_reasoning"), default=False
    ):
        yield Line(
            "display",
            "warning",
            "display.show_reasoning puts the model's reasoning in front of every answer",
            f"set display.platforms.{PLATFORM}.show_reasoning to false",
        )
    else:
        yield Line("display", "ok", "no display setting disturbs answers")
