"""What captain-webhook borrows from the host's built-in webhook adapter, in one place, each with a probe.

The companion of ``compat.py`` for the webhook platform: nothing else of this package touches the host's underscored
names there. A host where a borrowed name is missing or has another shape gets no captain-webhook: see :func:`missing`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine

_MODULE = "gateway.platforms.webhook"
_ORIGIN = "captain_webhook_delivery"
_TARGET = "captain_webhook_target"
_POLL_SECONDS = 0.01
_METHODS = {
    "handle_message": ("event",),
    "send": ("chat_id", "content", "reply_to", "metadata"),
    "on_processing_start": ("event",),
    "on_processing_complete": ("event", "outcome"),
    "set_busy_session_handler": ("handler",),
}
_TABLES: dict[str, type] = {
    "_delivery_info": dict,
    "_delivery_info_created": dict,
    "_delivery_info_order": deque,
    "_active_sessions": dict,
    "_background_tasks": set,
}


def webhook_adapter_class() -> type[Any]:
    """Return the host's built-in webhook adapter class."""
    return importlib.import_module(_MODULE).WebhookAdapter  # type: ignore[no-any-return]  # untyped host


def requirements_met() -> bool:
    """The built-in's own check: aiohttp can be imported."""
    return bool(importlib.import_module(_MODULE).check_webhook_requirements())


def missing() -> list[str]:
    """Name every borrowed piece this host lacks; an empty list means captain-webhook can work."""
    try:
        module = importlib.import_module(_MODULE)
    except ImportError:
        return [_MODULE]
    adapter = getattr(module, "WebhookAdapter", None)
    if not inspect.isclass(adapter):
        return [f"{_MODULE}.WebhookAdapter"]
    lost = [] if callable(getattr(module, "check_webhook_requirements", None)) else ["check_webhook_requirements"]
    for name, wanted in _METHODS.items():
        method = getattr(adapter, name, None)
        if method is None or not set(wanted) <= set(inspect.signature(method).parameters):
            lost.append(f"WebhookAdapter.{name}({', '.join(wanted)})")
    lost.extend(_missing_tables(adapter))
    return lost


def _missing_tables(adapter: type[Any]) -> list[str]:
    try:
        config = importlib.import_module("gateway.config").PlatformConfig(enabled=True)
        probe = adapter(config)
    except Exception as error:  # noqa: BLE001 - any failure of the host's constructor means: not this host
        return [f"WebhookAdapter(config) ({type(error).__name__})"]
    return [name for name, kind in _TABLES.items() if not isinstance(getattr(probe, name, None), kind)]


def target_of(adapter: Any, chat_id: str) -> dict[str, Any]:  # noqa: ANN401 - host object
    """Return the reply target the built-in stored for ``chat_id``; empty when it stored none."""
    return dict(adapter._delivery_info.get(chat_id, {}))  # noqa: SLF001


def copy_target(adapter: Any, original: str, chat_id: str) -> None:  # noqa: ANN401
    """Make the reply target of ``original`` known under ``chat_id`` too, as fresh as this moment."""
    if original in adapter._delivery_info:  # noqa: SLF001
        _store(adapter, chat_id, adapter._delivery_info[original])  # noqa: SLF001


def restore_target(adapter: Any, chat_id: str, target: dict[str, Any] | None) -> None:  # noqa: ANN401
    """Refresh the age of a reply target, putting it back when the built-in has pruned it."""
    if target:
        _store(adapter, chat_id, target)


def _store(adapter: Any, chat_id: str, target: dict[str, Any]) -> None:  # noqa: ANN401
    now = time.time()
    adapter._delivery_info[chat_id] = target  # noqa: SLF001
    adapter._delivery_info_created[chat_id] = now  # noqa: SLF001
    adapter._delivery_info_order.append((now, chat_id))  # noqa: SLF001


def remember_origin(event: Any, chat_id: str, target: dict[str, Any]) -> None:  # noqa: ANN401
    """Note on the event which delivery it is, and where its answer goes."""
    event.metadata[_ORIGIN] = chat_id
    event.metadata[_TARGET] = target


def target_in(event: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the reply target noted on the event; empty when there is none."""
    metadata: dict[str, Any] = event.metadata or {}
    return dict(metadata.get(_TARGET) or {})


def origin_of(event: Any) -> str | None:  # noqa: ANN401
    """Return the host's own chat id of the delivery ``event`` came with, if it belongs to a conversation."""
    metadata: dict[str, object] = event.metadata or {}
    origin = metadata.get(_ORIGIN)
    return origin if isinstance(origin, str) else None


def in_background(adapter: Any, work: Coroutine[Any, Any, None]) -> None:  # noqa: ANN401
    """Run ``work`` as one of the adapter's own tasks, which the host cancels at shutdown."""
    task = asyncio.get_running_loop().create_task(work)
    adapter._background_tasks.add(task)  # noqa: SLF001
    task.add_done_callback(adapter._background_tasks.discard)  # noqa: SLF001


def is_free(adapter: Any, session_key: str | None) -> bool:  # noqa: ANN401
    """Whether the host runs nothing for ``session_key`` right now."""
    return session_key not in adapter._active_sessions  # noqa: SLF001


async def session_is_free(adapter: Any, session_key: str | None) -> None:  # noqa: ANN401
    """Return when the host has let go of ``session_key`` (observed about 10 ms after completion, hermes-host §3.7)."""
    while not is_free(adapter, session_key):  # noqa: ASYNC110 - the host offers no event to wait for
        await asyncio.sleep(_POLL_SECONDS)


def merges_into_running_turn(adapter: Any) -> bool:  # noqa: ANN401
    """Whether the operator chose the host's steer mode, which adds a delivery to the running turn."""
    mode = os.environ.get("HERMES_GATEWAY_BUSY_INPUT_MODE") or getattr(adapter.gateway_runner, "_busy_input_mode", "")
    return str(mode).strip().lower() == "steer"


def waits_for_a_human(session_key: str) -> bool:
    """Whether a dangerous-command approval blocks the session: the host reads the next message as its answer."""
    try:
        approval = importlib.import_module("tools.approval")
    except ImportError:
        return False
    probe = getattr(approval, "has_blocking_approval", None)
    return bool(probe(session_key)) if callable(probe) else False
