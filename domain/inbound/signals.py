"""Takes runtime signals from Canon and decides what each of them reaches (turns §2.6, §14 H29).

A signal reaches what was there when it became known: when its event arrived, or when the request that found it began.
What was handed over after that is spared, however long Canon's answer takes. It refuses to know how a run is ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, final

from canon_hermes_plugin.domain.inbound.preparing import Preparation, Preparations, Snapshot
from canon_hermes_plugin.ports.canon import RuntimeSignal, SignalPort
from canon_hermes_plugin.ports.errors import CanonError
from canon_hermes_plugin.ports.host import HostInbox

_log = logging.getLogger(__name__)

SIGNAL_WAIT: Final = 5.0
"""Seconds a message waits at most for a signal that came before it."""
RETRIES: Final = (1.0, 2.0, 4.0)
"""Seconds between the attempts to take a signal that Canon announced; after them it is left to the poll."""
LATER: Final = 1024
"""Messages handed over since a signal became known that are remembered; the oldest is forgotten first."""


@dataclass(slots=True, eq=False)
class KnownSignal:
    """A signal that lies, or may lie, at Canon.

    Attributes:
        before: what was on its way when it became known.
        announced: Canon said that it is there; otherwise somebody asks whether one is.
        later: ids of the messages that came after it and were handed over.
    """

    before: Snapshot
    announced: bool
    later: dict[str, None] = field(default_factory=dict[str, None])

    def handed_over(self, message_id: str, preparation: Preparation) -> None:
        """Take note of a message that is handed over, unless it was on its way already."""
        if preparation in self.before.prepared or any(message_id == key for key, _ in self.before.behind):
            return
        self.later[message_id] = None
        if len(self.later) > LATER:
            del self.later[next(iter(self.later))]


@final
class SignalGate:
    """Lets a signal that came first take effect first: a stop must not end the run of the message after it."""

    def __init__(self) -> None:
        self._pending: dict[str, tuple[asyncio.Event, float]] = {}

    @contextmanager
    def applying(self, conversation_id: str) -> Generator[None, None, None]:
        """Apply a signal inside; messages of the conversation that are ready meanwhile wait for its end."""
        pending = self._pending[conversation_id] = asyncio.Event(), asyncio.get_running_loop().time()
        try:
            yield
        finally:
            pending[0].set()
            if self._pending.get(conversation_id) is pending:
                del self._pending[conversation_id]

    async def applied(self, conversation_id: str, seconds: float) -> None:
        """Wait while a signal of the conversation is being applied, at most until so many seconds after its start."""
        pending = self._pending.get(conversation_id)
        if pending is not None:
            applied, since = pending
            with suppress(TimeoutError):
                async with asyncio.timeout_at(since + seconds):  # wait_for may swallow a cancellation on Python 3.11
                    await applied.wait()


@final
class SignalDesk:
    """Asks Canon for signals and has them applied. Owned by one event loop.

    Attributes:
        gate: holds messages back while a signal is being applied.
        owner_id: the agent's owner once known, who stops everybody's messages.
    """

    def __init__(self, signals: SignalPort, inbox: HostInbox, preparing: Preparations) -> None:
        self.gate = SignalGate()
        self.owner_id: str | None = None
        self._signals = signals
        self._inbox = inbox
        self._preparing = preparing
        self._known: dict[str, list[KnownSignal]] = {}
        self._waiting: dict[str, int] = {}
        self._asking: set[str] = set()

    def owed(self) -> Iterable[str]:
        """Return the conversations in which Canon announced a signal that nobody could take yet."""
        return tuple(key for key in self._known if key not in self._asking)

    def under_way(self, conversation_id: str) -> bool:
        """Whether a signal of the conversation is, or may be, on its way."""
        return conversation_id in self._known

    def handed_over(self, conversation_id: str, message_id: str | None, preparation: Preparation) -> None:
        """A message is handed over now: the signals that were known before it spare it."""
        if message_id is not None:
            for known in self._known.get(conversation_id, ()):
                known.handed_over(message_id, preparation)

    def waits(self, conversation_id: str) -> None:
        """An announcement arrived that :meth:`announced` will be called for when an earlier one is done with."""
        self._learn(conversation_id, announced=True)
        self._waiting[conversation_id] = self._waiting.get(conversation_id, 0) + 1

    async def announced(self, conversation_id: str) -> None:
        """Canon says that a signal is there: take it, with some patience, and apply it.

        Raises:
            CanonError: Canon refuses to give it, or the host could not be told.
        """
        known = self._announcement(conversation_id)
        self._asking.add(conversation_id)
        try:
            with self.gate.applying(conversation_id):
                for pause in (*RETRIES, None):
                    if await self._took(conversation_id, known):
                        return
                    if pause is not None:
                        await asyncio.sleep(pause)
        finally:
            self._asking.discard(conversation_id)
        _log.warning("the signal of %s could not be taken; the next poll asks for it", conversation_id)

    async def poll(self, conversation_id: str) -> None:
        """Take the conversation's pending signal, if there is one, and apply it.

        Raises:
            CanonError: Canon did not answer, or the host could not be told.
        """
        if conversation_id in self._asking:
            return
        known = next(reversed(self._known.get(conversation_id, [])), None)
        if known is None:
            known = self._learn(conversation_id, announced=False)
        try:
            with self.gate.applying(conversation_id):
                await self._take(conversation_id, known)
        finally:
            if not known.announced:
                self._forget(conversation_id, known)

    def stop(self, conversation_id: str, before: Snapshot, user_id: str | None, *, drop: bool = False) -> None:
        """Stop what was on its way and is ``user_id``'s; the owner and nobody in particular stop everybody's."""
        whose = None if user_id == self.owner_id else user_id
        stopped = self._preparing.stop(before, whose)
        dropped = self._preparing.drop(conversation_id, before, whose) if drop else 0
        if stopped or dropped:
            _log.info("%d message(s) on their way in %s stopped, %d dropped", stopped, conversation_id, dropped)

    async def _took(self, conversation_id: str, known: KnownSignal) -> bool:
        """Ask for an announced signal; ``False`` when it is worth another attempt."""
        try:
            await self._take(conversation_id, known)
        except CanonError as error:
            if known not in self._known.get(conversation_id, ()):
                raise  # it was taken, and the host could not be told; or Canon refuses for good
            _log.debug("signal of %s not taken: %s", conversation_id, error)
            return False
        return True

    async def _take(self, conversation_id: str, known: KnownSignal) -> None:
        try:
            signal = await self._signals.consume_signal(conversation_id)
        except CanonError as error:
            if not error.retryable:
                self._forget(conversation_id, known)
            raise
        # Announced again meanwhile: Canon gives the newest one, which reaches what came in between.
        newest = next(reversed(self._known.get(conversation_id, [])), known)
        reached = known if signal is None else newest
        try:
            if signal is not None:
                await self._apply(conversation_id, signal, reached)
        finally:
            self._forget(conversation_id, known)
            self._forget(conversation_id, reached)

    async def _apply(self, conversation_id: str, signal: RuntimeSignal, known: KnownSignal) -> None:
        _log.info("runtime signal %s for %s", signal.kind, conversation_id)
        if signal.kind != "new_session":
            self.stop(conversation_id, known.before, signal.updated_by, drop=signal.kind == "stop_and_drop")
        await self._preparing.handed_over(conversation_id, SIGNAL_WAIT)
        await self._inbox.apply_signal(conversation_id, signal.kind, signal.updated_by, known.later.keys())

    def _announcement(self, conversation_id: str) -> KnownSignal:
        """Return what was noted when the announcement arrived: now, or while it waited for an earlier one."""
        waiting = self._waiting.pop(conversation_id, 0)
        if waiting > 1:
            self._waiting[conversation_id] = waiting - 1
        noted = next(reversed(self._known.get(conversation_id, [])), None) if waiting else None
        return noted or self._learn(conversation_id, announced=True)

    def _learn(self, conversation_id: str, *, announced: bool) -> KnownSignal:
        known = KnownSignal(self._preparing.snapshot(conversation_id), announced)
        self._known.setdefault(conversation_id, []).append(known)
        return known

    def _forget(self, conversation_id: str, known: KnownSignal) -> None:
        found = self._known.get(conversation_id, [])
        if known in found:
            found.remove(known)
            if not found:
                del self._known[conversation_id]
