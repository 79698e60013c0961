"""Bringing an operation with an unknown outcome to an end (turns §4.3, H12; field faults 6, 9, 88, 90).

Decides how often and how long an operation is replayed: the identical messages under their own ids, from the first one
that is not known to be stored. Refuses to know what is in them, and which process began to send them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextvars import Context
from dataclasses import dataclass
from typing import Literal

from canon_hermes_plugin.domain.turns.delivery import Operation, transmit
from canon_hermes_plugin.domain.turns.dispatch import Dispatch
from canon_hermes_plugin.domain.turns.world import World
from canon_hermes_plugin.ports.errors import DeliveryError

PAUSES = (2.0, 8.0, 30.0, 60.0)
"""Seconds before each replay; each replay is a whole series of attempts of the client."""

ONCE = (0.0,)
"""The pauses of a single replay."""

AGAIN = 300.0
"""Seconds between two replays of what no series has brought to an end."""

LIFETIME_MS = 24 * 3600 * 1000
"""Age at which an operation is given up; the host's own bound for such replays (hermes-host §4.9)."""

_TAKEN = 409
"""Canon has another message under this id: no replay will change that."""

_log = logging.getLogger(__name__)

End = Literal["settled", "refused", "unreachable", "unclear", "expired"]
"""How a series of replays ended: stored; refused for good; provably not stored so far; perhaps stored; or too old."""

Done = Callable[[End], Awaitable[bool]]
"""Returns whether the operation is over: only an ``unreachable`` one may be tried later. Not asked when ``unclear``."""


@dataclass(frozen=True, slots=True)
class Case:
    """One operation with an unknown outcome.

    Attributes:
        operation: what is replayed.
        begun_at: when it was first to be sent, milliseconds since the epoch.
        done: what follows a series of replays.
    """

    operation: Operation
    begun_at: int
    done: Done


@dataclass(eq=False, slots=True)
class _Line:
    """Cases that settle one after another, and whether something works on them."""

    cases: deque[Case]
    pauses: tuple[float, ...]
    caught_up: Callable[[], None]
    running: bool = False


class Settling:
    """Replays unsettled operations in the background, and has them forgotten when they are over."""

    def __init__(self, world: World, dispatch: Dispatch) -> None:
        self._world = world
        self._dispatch = dispatch
        self._lines: list[_Line] = []
        self._resting = False
        self._rounds: asyncio.Task[None] | None = None

    def start(self, operation: Operation, done: Done) -> None:
        """Begin to settle ``operation``; returns at once."""
        case = Case(operation, self._world.clock.now_ms(), done)
        self._add(_Line(deque([case]), PAUSES, lambda: None))

    def replay(self, cases: Iterable[Case], caught_up: Callable[[], None]) -> None:
        """Begin to settle what an earlier process left, one after another and without delay; returns at once.

        ``caught_up`` is called when all of it is over, or when it turns out to take longer.
        """
        self._add(_Line(deque(cases), (*ONCE, *PAUSES), caught_up))

    def resume(self) -> None:
        """Go on with what was cut short or is tried later, for example after a reconnect."""
        self._resting = False
        self._begin_idle()
        self._watch()

    async def rest(self) -> None:
        """Begin nothing by itself any more, until the next :meth:`resume`."""
        self._resting = True
        rounds, self._rounds = self._rounds, None
        if rounds is not None:
            rounds.cancel()
            await asyncio.gather(rounds, return_exceptions=True)

    def _add(self, line: _Line) -> None:
        self._lines.append(line)
        self._begin(line, line.pauses)
        self._watch()

    def _watch(self) -> None:
        """Have what is open tried now and then."""
        if self._lines and self._rounds is None and not self._resting:
            self._rounds = asyncio.create_task(self._try_again(), name="settle again", context=Context())

    async def _try_again(self) -> None:
        # The connection may hold for long, and nobody may say anything meanwhile.
        while True:
            await self._world.clock.sleep(AGAIN)
            self._begin_idle(ONCE)

    def _begin_idle(self, pauses: tuple[float, ...] | None = None) -> None:
        for line in list(self._lines):
            if not line.running:
                self._begin(line, pauses or line.pauses)

    def _begin(self, line: _Line, pauses: tuple[float, ...]) -> None:
        line.running = True
        self._world.tasks.spawn(self._work(line, pauses), name=f"settle {line.cases[0].operation.id}")

    async def _work(self, line: _Line, pauses: tuple[float, ...]) -> None:
        try:
            for case in list(line.cases):
                end = await self._replay(line, case, pauses)
                if await self._over(case, end):
                    await self._leave(line, case, end)
                elif end == "unclear":
                    # It may be the only one that Canon never answers: what is behind it is tried, but not for long.
                    pauses = ONCE
                else:
                    return
        finally:
            line.running = False
            if not line.cases:
                self._lines.remove(line)
            if not self._lines and self._rounds is not None:
                self._rounds.cancel()
                self._rounds = None
            line.caught_up()

    async def _over(self, case: Case, end: End) -> bool:
        if end == "settled":
            return True
        _log.error("operation id=%s did not settle: %s", case.operation.id, end)
        # What may be stored stays open: whatever was said in its place could stand beside it.
        return end != "unclear" and await case.done(end)

    async def _leave(self, line: _Line, case: Case, end: End) -> None:
        await self._dispatch.forget(case.operation)
        line.cases.remove(case)
        if end == "settled":
            # Last, so that it happens once: whatever comes before may be cut short and is repeated then.
            await case.done(end)

    async def _replay(self, line: _Line, case: Case, pauses: tuple[float, ...]) -> End:
        status: int | None = None
        for pause in pauses:
            await self._world.clock.sleep(pause)
            if self._world.clock.now_ms() - case.begun_at > LIFETIME_MS:
                return "expired"
            try:
                await transmit(self._world.canon, case.operation)
            except DeliveryError as error:
                _log.info("operation id=%s is still open: %s", case.operation.id, error.certainty)
                line.caught_up()
                status = error.status_code
                if error.certainty == "definitive" and not error.retryable:
                    return "unclear" if case.operation.doubtful else "refused"
            else:
                return "settled"
        if status == _TAKEN:
            return "refused"
        return "unclear" if case.operation.doubtful else "unreachable"
