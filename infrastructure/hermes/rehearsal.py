"""Whether code only rehearses: inside of a test kit nobody's real credentials are looked up.

Decides that one kit is in use at a time, in the whole process, because tools find their adapter through the process.
Refuses to know what a kit consists of.
"""

from __future__ import annotations

from contextvars import ContextVar
from threading import Lock
from typing import Final

from canon_hermes_plugin.ports.errors import CredentialsError

in_rehearsal: Final[ContextVar[bool]] = ContextVar("canon_in_rehearsal", default=False)
"""The calling code belongs to a rehearsed turn, also after its kit was closed: a thread may outlive it."""

_lock = Lock()
_holders: list[object] = []


def begin(holder: object) -> None:
    """Note that ``holder`` is in use from now on.

    Raises:
        RuntimeError: another one is.
    """
    with _lock:
        if _holders:
            raise RuntimeError(
                "another CanonHermes is entered: one test uses one plugin (the fixtures canon, canon_turn and "
                "canon_hermes share one, too); call plugin.turn() again for another turn, or leave the first one"
            )
        _holders.append(holder)


def end(holder: object) -> None:
    """Note that ``holder`` is not in use any more; idempotent."""
    with _lock:
        _holders[:] = [item for item in _holders if item is not holder]


def active() -> bool:
    """Whether the process rehearses, or the calling code belongs to a rehearsal; any thread."""
    return in_rehearsal.get() or bool(_holders)


def refuse_real_credentials() -> None:
    """Raise CredentialsError in a rehearsal: whoever is asked there, it is nobody real."""
    if active():
        raise CredentialsError(
            "this code runs in a test on CanonHermes whose plugin is not connected; no real credentials are used there"
        )
