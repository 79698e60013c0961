"""Which messages are on their way to the host, and which of them a stop still keeps from it (turns §2.6, §14 H29).

A message is on its way from its claim to its hand-over; attachments make that last up to a minute. Behind it wait the
events of its conversation that came later. It refuses to know what is prepared and what becomes of a stopped message.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, final

BEHIND: Final = 1024
"""Messages of one conversation that are remembered as waiting behind a prepared one; the oldest is forgotten first."""


@dataclass(slots=True, eq=False)
class Preparation:
    """One message on its way. ``stopped`` once somebody stopped it; its preparation is then broken off."""

    sender: str | None
    stopped: bool = False
    scope: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))

    def stop(self) -> None:
        """Break the preparation off; idempotent."""
        if not self.stopped:
            self.stopped = True
            # A deadline that is over: it cancels what is awaited inside, and only that.
            self.scope.reschedule(asyncio.get_running_loop().time())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was on its way in a conversation at some moment.

    Attributes:
        prepared: the messages being prepared.
        behind: senders of the messages that waited behind them, by message id.
    """

    prepared: tuple[Preparation, ...] = ()
    behind: tuple[tuple[str, str | None], ...] = ()


@final
class Preparations:
    """The messages on their way, by conversation. Owned by one event loop."""

    def __init__(self) -> None:
        self._prepared: dict[str, list[Preparation]] = {}
        self._behind: dict[str, dict[str, str | None]] = {}
        self._dropped: set[tuple[str, str]] = set()
        self._handing: dict[str, list[asyncio.Event]] = {}

    @asynccontextmanager
    async def under_way(self, conversation_id: str, sender: str | None) -> AsyncGenerator[Preparation, None]:
        """Prepare a message inside; ends early, without an error, when it is stopped."""
        made = Preparation(sender)
        self._prepared.setdefault(conversation_id, []).append(made)
        try:
            async with made.scope:
                yield made
        except TimeoutError:
            if not made.stopped:
                raise
        finally:
            self._prepared[conversation_id].remove(made)
            if not self._prepared[conversation_id]:
                del self._prepared[conversation_id]

    @contextmanager
    def handing_over(self, conversation_id: str) -> Generator[None, None, None]:
        """Hand a message over inside: too late to keep it back, and not yet a run that can be stopped."""
        over = asyncio.Event()
        self._handing.setdefault(conversation_id, []).append(over)
        try:
            yield
        finally:
            over.set()
            self._handing[conversation_id].remove(over)
            if not self._handing[conversation_id]:
                del self._handing[conversation_id]

    async def handed_over(self, conversation_id: str, seconds: float) -> None:
        """Wait, for so many seconds at most, until what is being handed over runs or waits for its turn."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for over in tuple(self._handing.get(conversation_id, ())):
                    await over.wait()

    def conversations(self) -> Iterable[str]:
        """Return the conversations in which a message is being prepared."""
        return tuple(self._prepared)

    def waits(self, conversation_id: str, message_id: str, sender: str | None) -> None:
        """Remember a message that is looked at only after an earlier one of its conversation."""
        behind = self._behind.setdefault(conversation_id, {})
        behind[message_id] = sender
        if len(behind) > BEHIND:
            del behind[next(iter(behind))]

    def turn_of(self, conversation_id: str, message_id: str) -> bool:
        """A message's time has come; ``False`` when it was dropped while it waited."""
        behind = self._behind.get(conversation_id)
        if behind is not None:
            behind.pop(message_id, None)
            if not behind:
                del self._behind[conversation_id]
        key = conversation_id, message_id
        dropped = key in self._dropped
        self._dropped.discard(key)
        return not dropped

    def snapshot(self, conversation_id: str) -> Snapshot:
        """Return what is on its way now: a stop reaches what came before it and nothing else."""
        behind = self._behind.get(conversation_id, {})
        return Snapshot(tuple(self._prepared.get(conversation_id, ())), tuple(behind.items()))

    def stop(self, before: Snapshot, user_id: str | None) -> int:
        """Stop what ``user_id`` sent (``None``: what anybody sent) of what was being prepared; returns how many."""
        reached = [item for item in before.prepared if user_id is None or item.sender == user_id]
        for item in reached:
            item.stop()
        return len(reached)

    def drop(self, conversation_id: str, before: Snapshot, user_id: str | None) -> int:
        """Drop what waited behind them, by the same rule; returns how many."""
        waiting = self._behind.get(conversation_id, {})
        reached = [
            message_id
            for message_id, sender in before.behind
            if message_id in waiting and (user_id is None or sender == user_id)
        ]
        self._dropped.update((conversation_id, message_id) for message_id in reached)
        return len(reached)
