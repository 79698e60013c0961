"""The host's approval and question registries, borrowed with probes and fallbacks (hermes-host §8, §14).

The host answers "the session's oldest approval" through its public function. Settling one particular entry needs its
queue, which is private: where that is missing, callers fall back to the public function and to waiting their turn.
This module decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from threading import Lock
from typing import Any, cast

from canon_hermes_plugin.ports.interactions import ExecChoice

HostEntry = Any
"""One of the host's waiting approvals."""

_ANSWERING = Lock()


def waiting_entries(session_key: str) -> list[HostEntry] | None:
    """Return the session's waiting approvals, oldest first; ``None`` when the host does not show them."""
    module = _module("tools.approval")
    queues = getattr(module, "_gateway_queues", None)
    lock = getattr(module, "_lock", None)
    if not isinstance(queues, dict) or lock is None:
        return None
    with lock:
        entries = list(cast("dict[str, Iterable[HostEntry]]", queues).get(session_key, ()))
    return entries if all(_is_entry(entry) for entry in entries) else None


def entry_command(entry: HostEntry) -> str:
    """Return the command an entry waits for, as the host shows it to people."""
    data: object = getattr(entry, "data", None)
    command = cast("dict[str, Any]", data).get("command", "") if isinstance(data, dict) else ""
    return redacted(str(command))


def redacted(command: str) -> str:
    """Return ``command`` without secrets, as the host's prompt shows it; unchanged when the host cannot tell."""
    redact = getattr(_module("gateway.run"), "_redact_approval_command", None)
    return str(redact(command)) if callable(redact) else command


def redacts() -> bool:
    """Whether :func:`redacted` gives the very words that the host's prompt shows."""
    return callable(getattr(_module("gateway.run"), "_redact_approval_command", None))


def settle_entry(session_key: str, entry: HostEntry, choice: ExecChoice) -> bool:
    """Answer exactly this entry; ``False`` when it no longer waits."""
    module = _module("tools.approval")
    queues, lock = getattr(module, "_gateway_queues", None), getattr(module, "_lock", None)
    if not isinstance(queues, dict) or lock is None:
        return False
    sessions = cast("dict[str, list[HostEntry]]", queues)
    with lock:
        waiting = sessions.get(session_key, [])
        if not any(item is entry for item in waiting):
            return False
        waiting[:] = [item for item in waiting if item is not entry]
        if not waiting:
            sessions.pop(session_key, None)
    entry.result = choice
    entry.event.set()
    return True


def settle_oldest(session_key: str, choice: ExecChoice) -> bool:
    """Answer the session's oldest approval through the host's public function."""
    resolve = getattr(_module("tools.approval"), "resolve_gateway_approval", None)
    return bool(resolve(session_key, choice)) if callable(resolve) else False


def settle_clarify(clarify_id: str, text: str) -> bool:
    """Answer one of the host's questions through its public function; ``False`` when it has its answer already."""
    module = _module("tools.clarify_gateway")
    resolve = getattr(module, "resolve_gateway_clarify", None)
    questions: object = getattr(module, "_entries", None)
    with _ANSWERING:
        # Until the asking thread wakes, the host's function would let a second answer replace the first.
        entry = cast("dict[str, HostEntry]", questions).get(clarify_id) if isinstance(questions, dict) else None
        answered = getattr(getattr(entry, "event", None), "is_set", None)
        if not callable(resolve) or (callable(answered) and answered()):
            return False
        return bool(resolve(clarify_id, text))


def clarify_waiting(session_key: str) -> bool:
    """Whether a question of the host waits in this session; True when the host cannot tell."""
    pending = getattr(_module("tools.clarify_gateway"), "has_pending", None)
    return bool(pending(session_key)) if callable(pending) else True


def approval_seconds() -> float | None:
    """Return how long the host waits for an exec approval: ``timeout`` on 0.19, ``gateway_timeout`` on 0.18."""
    module = _module("tools.approval")
    direct = getattr(module, "_get_approval_timeout", None)
    config = getattr(module, "_get_approval_config", None)
    try:
        # Both lines have the function, but on 0.18 it tells the terminal's time limit.
        if callable(direct) and not _reads(getattr(module, "_await_gateway_decision", None), "gateway_timeout"):
            return _seconds(direct())
        settings: object = config() if callable(config) else None
        if isinstance(settings, dict):
            return _seconds(cast("dict[str, Any]", settings).get("gateway_timeout", 300))
    except Exception:  # noqa: BLE001 - an unreadable host setting only loses the cap
        return None
    return None


def is_interrupted() -> bool:
    """Whether the host wants the calling thread's run to stop."""
    asked = getattr(_module("tools.interrupt"), "is_interrupted", None)
    return bool(asked()) if callable(asked) else False


def register_toolset_alias(alias: str, toolset: str) -> bool:
    """Give the toolset a second name; ``False`` when the host has no aliases."""
    registry = getattr(_module("tools.registry"), "registry", None)
    register = getattr(registry, "register_toolset_alias", None)
    if not callable(register):
        return False
    register(alias, toolset)
    return True


def _module(name: str) -> HostEntry | None:
    """Import a host module when it is needed; ``None`` where no such host is installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def _reads(function: object, name: str) -> bool:
    """Whether a function of the host names ``name`` in its code."""
    return name in getattr(getattr(function, "__code__", None), "co_consts", ())


def _is_entry(entry: HostEntry) -> bool:
    return callable(getattr(getattr(entry, "event", None), "set", None)) and hasattr(entry, "result")


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def platform_section(name: str) -> dict[str, Any]:
    """Return ``platforms.<name>`` of the host's configuration; empty when it cannot be read."""
    read = getattr(_module("hermes_cli.config"), "read_raw_config", None)
    try:
        raw: object = read() if callable(read) else None
    except Exception:  # noqa: BLE001 - an unreadable configuration is the host's to report
        return {}
    for keys in (("platforms", name), ("gateway", "platforms", name)):
        section: object = raw
        for key in keys:
            section = cast("dict[str, Any]", section).get(key) if isinstance(section, dict) else None
        if isinstance(section, dict):
            return cast("dict[str, Any]", section)
    return {}
