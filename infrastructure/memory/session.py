"""The twin of the host's provenance of a turn: whoever runs turns binds it, each task and thread reads its own."""

from __future__ import annotations

from contextvars import ContextVar, Token
from dataclasses import fields
from typing import final

from canon_hermes_plugin.ports.host import SessionSnapshot


@final
class MemorySession:
    """Implements :class:`canon_hermes_plugin.ports.host.SessionContext`.

    Attributes:
        outside: what is read where no turn was bound; nothing by default. The host reads the environment there.
        unreadable: the host's context cannot be read.
    """

    def __init__(self, outside: SessionSnapshot | None = None) -> None:
        self.outside = outside or SessionSnapshot()
        self.unreadable = False

    def bind(self, session: SessionSnapshot) -> Token[tuple[MemorySession, SessionSnapshot] | None]:
        """Bind a turn to the calling context; returns what undoes it."""
        return _BOUND.set((self, session))

    def clear(self) -> None:
        """The turn of the calling context is over."""
        _BOUND.set((self, SessionSnapshot()))

    def snapshot(self) -> SessionSnapshot:
        if self.unreadable:
            return SessionSnapshot()
        bound = _BOUND.get()
        session = bound[1] if bound is not None and bound[0] is self else self.outside
        values = {field.name: (getattr(session, field.name) or "").strip() or None for field in fields(session)}
        platform = values.pop("platform")
        return SessionSnapshot(platform and platform.casefold(), **values)


_BOUND: ContextVar[tuple[MemorySession, SessionSnapshot] | None] = ContextVar("canon_memory_session", default=None)
