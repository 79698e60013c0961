"""How long a question may stay open and which conversation it goes to (interactions §4.1, §4.2, §7.2)."""

from __future__ import annotations

import math
from typing import Any, Final

MINIMUM_SECONDS: Final = 5
BLOCKING_DEFAULT: Final = 300
BLOCKING_CEILING: Final = 1_800
DETACHED_CEILING: Final = 259_200
_PREFIX: Final = "canon:"


def coerce_timeout(value: object, *, default: int = BLOCKING_DEFAULT, ceiling: int = BLOCKING_CEILING) -> int:
    """Return whole seconds within bounds; what is no number gives ``default``, infinities give a bound (D18)."""
    number: Any = value
    try:
        seconds = int(number)
    except OverflowError:
        seconds = ceiling if number > 0 else MINIMUM_SECONDS
    except (TypeError, ValueError):
        seconds = default
    return max(MINIMUM_SECONDS, min(seconds, ceiling))


def detached_timeout(value: object) -> int:
    """Return the seconds a detached approval may wait: 72 hours unless told otherwise."""
    return coerce_timeout(value, default=DETACHED_CEILING, ceiling=DETACHED_CEILING)


def setting_timeout(value: str | None) -> int:
    """Return the seconds of ``HERMES_CLARIFY_TIMEOUT`` or ``HERMES_APPROVAL_TIMEOUT``."""
    return coerce_timeout(value.strip() if value else None)


def capped_by_host(seconds: int, host_seconds: float | None) -> float:
    """Return the wait for an exec approval: no longer than the host itself waits, when that is known (D2)."""
    if host_seconds is None or not math.isfinite(host_seconds) or host_seconds <= 0:
        return seconds
    return min(seconds, host_seconds)


def strip_target(target: str) -> str:
    """Return the conversation id of ``canon:<id>`` or ``<id>``; blank when there is none."""
    return target.strip().removeprefix(_PREFIX).strip()


def resolve_conversation(target: object, active: str | None, home: str | None) -> str:
    """Return the conversation a question goes to.

    Args:
        target: the model's argument.
        active: the conversation of the running Canon turn.
        home: ``CANON_HOME_CHANNEL``.

    Raises:
        ValueError: none of them names one; the text tells the model what to do.
    """
    wanted = "" if target is None else str(target).strip()
    if wanted:
        conversation = strip_target(wanted)
        if not conversation:
            raise ValueError("target names no conversation id; use canon:<conversation id>")
        return conversation
    found = active or (home or "").strip()
    if not found:
        raise ValueError("There is no active Canon conversation: run inside one or pass target canon:<conversation id>")
    return found
