"""Twins of silence: turns that can be silenced from their own context, and reports about it (interactions §5.7)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import final

from canon_hermes_plugin.ports.canon import VerbPort


@final
@dataclass(slots=True, eq=False)
class QuietTurn:
    """A turn that may choose silence."""

    conversation_id: str
    silenced: bool = False
    over: bool = False


@final
class MemorySilencer:
    """Silences the turn that the calling context was bound to by :meth:`enter`."""

    def __init__(self) -> None:
        self._current: ContextVar[QuietTurn | None] = ContextVar("canon_memory_turn", default=None)

    def enter(self, turn: QuietTurn) -> None:
        """Bind the calling context to ``turn``, as a host's lifecycle does."""
        self._current.set(turn)

    def silence(self, conversation_id: str) -> bool:
        turn = self._current.get()
        if turn is None or turn.over or turn.conversation_id != conversation_id:
            return False
        turn.silenced = True
        return True


@final
class MemorySilenceReporter:
    """Reports to a Canon in memory, whatever becomes of it.

    Args:
        canon: takes the reports, as calls of the verb ``no_reply``.
        seconds: bound of one report.
    """

    def __init__(self, canon: VerbPort, seconds: float = 3.0) -> None:
        self._canon = canon
        self._seconds = seconds

    async def report(self, conversation_id: str, message_id: str | None, *, reasoned: bool) -> None:
        envelope = {"conversationId": conversation_id} | ({"messageId": message_id} if message_id else {})
        with suppress(Exception):  # §5.7: every failure is swallowed
            async with asyncio.timeout(self._seconds):
                await self._canon.call_verb(
                    "no_reply", envelope=envelope, value={"reason": "given"} if reasoned else {}
                )
