"""Every host internal the plugin borrows, each with a probe and a fallback (hermes-host §14).

Nothing else in the package touches a host name that begins with an underscore. A name that a host version lacks costs
one feature and one log line, never a turn. The contract tests call every function here against the installed host.
This module decides nothing: it reads, stores and calls.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

from canon_hermes_plugin.ports.errors import UnsupportedHostError

_LOG = logging.getLogger(__name__)

HostObject = Any
"""An object of the host, which ships no types."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """One borrowed name: where it lives, and what is lost without it."""

    owner: str
    name: str
    effect: str


BORROWED: tuple[Borrowed, ...] = (
    Borrowed("adapter", "_active_sessions", "messages waiting behind a run start through the host's own queue"),
    Borrowed("adapter", "_session_tasks", "a queued message after /stop waits for the next event of its session"),
    Borrowed("adapter", "_pending_messages", "a queued message starts after, not within, the host's hand-over"),
    Borrowed("adapter", "_mark_connected", "the host's status display does not show the platform as connected"),
    Borrowed("adapter", "_mark_disconnected", "the host's status display may show a stale connection"),
    Borrowed("adapter", "_set_fatal_error", "a refused key is logged only; the host keeps reconnecting"),
    Borrowed("adapter", "_notify_fatal_error", "a refused key at run time is logged only"),
    Borrowed("adapter", "_acquire_platform_lock", "a second gateway with the same key is not refused"),
    Borrowed("adapter", "_release_platform_lock", "a second gateway waits until this process ended"),
    Borrowed("runner", "_running_agents", "interrupt and interleave fall back to queueing"),
    Borrowed("runner", "_queued_events", "none: the overflow of the host's own queue stays with the host"),
    Borrowed("runner", "_is_user_authorized", "messages to a busy session are checked by the host when they start"),
    Borrowed("runner", "_agent_has_active_subagents", "an interrupt is not held back for running sub-agents"),
    Borrowed("runner", "_session_has_compression_in_flight", "an interrupt is not held back for context compression"),
    Borrowed("runner", "session_store", "after a crash the host resumes a session whose answer is delivered anyway"),
    Borrowed("runner", "_draining", "a stopping gateway is noticed only when it disconnects"),
)


def module(name: str) -> HostObject:
    """Return a module of the host, imported when it is needed; raises ImportError where the host lacks it."""
    return importlib.import_module(name)


def host_version() -> str:
    """Return the installed host's version, or ``unknown``."""
    try:
        return version("hermes-agent")
    except PackageNotFoundError:
        return "unknown"


def missing(adapter: HostObject, runner: HostObject) -> tuple[Borrowed, ...]:
    """Return the borrowed names the present host does not offer; a missing runner is not a missing name."""
    owners = {"adapter": adapter, "runner": runner}
    return tuple(
        item for item in BORROWED if owners[item.owner] is not None and not _has(owners[item.owner], item.name)
    )


def _has(owner: HostObject, name: str) -> bool:
    return hasattr(owner, name)


def refuse_multiplexing() -> None:
    """Refuse a gateway that serves several profiles in one process, before any profile is read (field row 25).

    Raises:
        UnsupportedHostError: the set-up is a multiplexing one.
    """
    if _multiplexed_by_environment() or _multiplexed_by_scope() or _multiplexed_by_config():
        message = (
            "gateway.multiplex_profiles is on: one process would serve several agents. Turn it off and run one gateway "
            "per Hermes profile."
        )
        raise UnsupportedHostError(message)


def _multiplexed_by_environment() -> bool:
    return os.environ.get("GATEWAY_MULTIPLEX_PROFILES", "").strip().lower() in {"1", "true", "yes", "on"}


def _multiplexed_by_scope() -> bool:
    try:
        scope = module("agent.secret_scope")
    except ImportError:
        return False
    return bool(scope.is_multiplex_active())


def _multiplexed_by_config() -> bool:
    try:
        reader = module("hermes_cli.config")
    except ImportError:
        return False
    try:
        config: object = reader.read_raw_config()
    except Exception:  # noqa: BLE001 - an unreadable config is the host's to report, not a proof of multiplexing
        return False
    gateway = cast("dict[str, Any]", config).get("gateway") if isinstance(config, dict) else None
    return isinstance(gateway, dict) and cast("dict[str, Any]", gateway).get("multiplex_profiles") is True


# --- the adapter's base class ---------------------------------------------------------------------------------------


def mark_connected(adapter: HostObject) -> None:
    """Tell the host that the platform is up."""
    adapter._mark_connected()


def mark_disconnected(adapter: HostObject) -> None:
    """Tell the host that the platform is down."""
    adapter._mark_disconnected()


def set_fatal(adapter: HostObject, code: str, message: str, *, retryable: bool) -> None:
    """Record why the platform cannot run; a non-retryable reason stops the host's reconnecting."""
    adapter._set_fatal_error(code, message, retryable=retryable)


def claim(adapter: HostObject, name: str) -> bool:
    """Take the host's lock on ``name``; ``False``, recorded as the reason, when another gateway of this machine has it.

    Blocking. A lock that cannot be kept on this machine refuses nobody.
    """
    lock = getattr(adapter, "_acquire_platform_lock", None)
    try:
        return not callable(lock) or bool(lock("canon", name, "the Canon API key is"))
    except OSError as error:
        _LOG.warning("the lock against a second gateway cannot be kept: %s", type(error).__name__)
        return True


def release_claim(adapter: HostObject) -> None:
    """Give back what :func:`claim` took for this adapter; idempotent. Blocking."""
    release = getattr(adapter, "_release_platform_lock", None)
    if callable(release):
        with suppress(OSError):
            release()


async def notify_fatal(adapter: HostObject) -> None:
    """Ask the host to take the platform down. Await it only in a task that ``disconnect`` never cancels (§0 rule 8)."""
    await adapter._notify_fatal_error()


def session_is_busy(adapter: HostObject, key: str) -> bool:
    """Whether the host holds the session's guard."""
    return key in _table(adapter, "_active_sessions")


def owner_is_running(adapter: HostObject, key: str) -> bool:
    """Whether a live processing task of the host owns the session."""
    task = _table(adapter, "_session_tasks").get(key)
    return isinstance(task, asyncio.Future) and not task.done()


def on_owner_end(adapter: HostObject, key: str, call: Callable[[], None]) -> bool:
    """Call ``call`` when the host's task that owns the session ends; ``False`` when there is none."""
    task = _table(adapter, "_session_tasks").get(key)
    if not isinstance(task, asyncio.Future) or task.done():
        return False
    cast("asyncio.Future[None]", task).add_done_callback(lambda _: call())
    return True


def fill_slot(adapter: HostObject, key: str, event: HostObject) -> bool:
    """Put ``event`` into the session's free "next" slot; ``False`` when the slot is taken or gone."""
    slots = getattr(adapter, "_pending_messages", None)
    if not isinstance(slots, dict) or key in slots:
        return False
    slots[key] = event
    return True


def peek_slot(adapter: HostObject, key: str) -> HostObject | None:
    """Return what lies in the session's "next" slot and leave it there."""
    return _table(adapter, "_pending_messages").get(key)


def take_slot(adapter: HostObject, key: str) -> HostObject | None:
    """Take what lies in the session's "next" slot."""
    return _table(adapter, "_pending_messages").pop(key, None)


def _table(owner: HostObject, name: str) -> dict[str, Any]:
    """Return one of the host's dictionaries, or an empty one when this host has none of that name."""
    found = getattr(owner, name, None)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def allowed_path(adapter: HostObject, path: str) -> str | None:
    """Return the path of a local file the host's policy lets out, ``None`` when it does not."""
    check = getattr(adapter, "validate_media_delivery_path", None)
    if not callable(check):
        return path
    allowed: object = check(path)
    return allowed if isinstance(allowed, str) else None


def is_safe_url(url: str) -> bool:
    """Return the host's verdict about an address (hermes-host §15). Blocking: resolves names.

    A host without that check gives no objection; the downloader has its own.
    """
    try:
        policy = module("tools.url_safety")
    except ImportError:
        return True
    return bool(policy.is_safe_url(url))


# --- the runner -----------------------------------------------------------------------------------------------------


def runner_of(handler: object) -> HostObject | None:
    """Return the runner behind the busy handler the host installs: it is a bound method in both lines."""
    return getattr(handler, "__self__", None)


def take_overflow(runner: HostObject, key: str) -> list[HostObject]:
    """Take the events of the host's own overflow queue, oldest first."""
    waiting: Any = _table(runner, "_queued_events").pop(key, None)
    return list(waiting or ())


def knows_runs(runner: HostObject) -> bool:
    """Whether running agents can be found, and with them interrupt and interleave."""
    return isinstance(getattr(runner, "_running_agents", None), dict)


def live_agent(runner: HostObject, key: str) -> HostObject | None:
    """Return the session's running agent; the host's "not started yet" placeholder has no ``interrupt`` and is none."""
    agent = _table(runner, "_running_agents").get(key)
    return agent if callable(getattr(agent, "interrupt", None)) else None


def is_starting(runner: HostObject, key: str) -> bool:
    """Whether the session's run has begun but the host does not show its agent yet: it looks every 50 ms."""
    return _table(runner, "_running_agents").get(key) is not None and live_agent(runner, key) is None


def works_for(agent: HostObject, host_session: str | None) -> bool:
    """Whether a run the host reports under this session id is the agent's own, as far as the two can be compared."""
    own = getattr(agent, "session_id", None)
    return not own or not host_session or own == host_session


def interrupt_agent(agent: HostObject) -> bool:
    """Ask a run to end soon. No text is handed over: the host would run it inside the same lifecycle (turns §14 H2)."""
    agent.interrupt()
    return True


def steer_agent(agent: HostObject, text: str) -> bool:
    """Put ``text`` into a run at its next tool boundary; ``False`` when the run does not take it."""
    steer = getattr(agent, "steer", None)
    return bool(steer(text)) if callable(steer) else False


def can_steer(agent: HostObject | None) -> bool:
    """Whether ``agent`` takes in text while it runs."""
    return agent is not None and callable(getattr(agent, "steer", None))


def is_authorized(runner: HostObject, source: HostObject) -> bool | None:
    """Return the host's verdict about a sender, ``None`` when it cannot be asked."""
    check = getattr(runner, "_is_user_authorized", None)
    return bool(check(source)) if callable(check) else None


def has_subagents(runner: HostObject, agent: HostObject) -> bool:
    """Whether the run drives sub-agents that an interrupt would kill."""
    check = getattr(runner, "_agent_has_active_subagents", None)
    return bool(check(agent)) if callable(check) else False


async def is_compressing(runner: HostObject, key: str) -> bool:
    """Whether a context compression runs for the session: plain on 0.18, a coroutine on 0.19 (turns §14 H5)."""
    check = getattr(runner, "_session_has_compression_in_flight", None)
    if not callable(check):
        return False
    verdict: Any = check(key)
    return bool(await verdict if inspect.isawaitable(verdict) else verdict)


def is_draining(runner: HostObject) -> bool:
    """Whether the gateway is stopping and starts no further turns."""
    return bool(getattr(runner, "_draining", False))


def drop_resume(runner: HostObject, key: str, ended_at: int) -> bool:
    """Take back the mark that makes the host resume a session, unless the session went on after ``ended_at`` (ms).

    Waits for the host's file: not for an event loop.
    """
    store: HostObject = getattr(runner, "session_store", None)
    try:
        entry = next((entry for entry in store.list_sessions() if entry.session_key == key), None)
        if entry is None or entry.updated_at.timestamp() * 1000 > ended_at:
            return False
        return bool(store.clear_resume_pending(key))
    except Exception as error:  # noqa: BLE001 - whatever the host's store does: a word too many is no lost connection
        _LOG.debug("a session is left to the host: %s", type(error).__name__)
        return False


def approval_blocks(key: str) -> bool:
    """Whether a dangerous-command approval of the host waits in this session."""
    try:
        approvals = module("tools.approval")
    except ImportError:
        return False
    return bool(approvals.has_blocking_approval(key))


def clarify_waits(key: str) -> bool:
    """Whether a question of the host waits in this session: a person's next plain message answers it, nobody else's."""
    try:
        questions = module("tools.clarify_gateway")
    except ImportError:
        return False
    return questions.get_pending_for_session(key, include_choice_prompts=True) is not None


def take_leftover_steer(agent: HostObject) -> str:
    """Take the text that was put into a run but not read by it; called on the run's own thread."""
    drain = getattr(agent, "_drain_pending_steer", None)
    leftover: object = drain() if callable(drain) else None
    return leftover if isinstance(leftover, str) else ""
