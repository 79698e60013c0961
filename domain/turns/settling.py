"""Bringing an operation with an unknown outcome to an end (turns §4.3, H12; field faults 6, 9, 88, 90).

Decides how often and how long an operation is replayed: the identical messages under their own ids, from the first one
that is not known to be stored. Refuses to know what is in them, and which process began to send them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from canon_hermes_plugin.domain.turns.delivery import Operation, transmit
from canon_hermes_plugin.domain.turns.dispatch import Dispatch
from canon_hermes_plugin.domain.turns.world import World
from canon_hermes_plugin.ports.errors import DeliveryError

PAUSES = (2.0, 8.0, 30.0, 60.0)
"""Seconds before each replay; each replay is a whole series of attempts of the client."""

LIFETIME_MS = 24 * 3600 * 1000
"""Age at which an operation is given up; the host's own bound for such replays (hermes-host §4.9)."""

_TAKEN = 409
"""Canon has another message under this id: no replay will change that."""

_log = logging.getLogger(__name__)

End = Literal["settled", "refused", "unreachable", "expired"]
"""How a series of replays ended: stored, refused for good, Canon did not take it yet, or too old to be said."""

Done = Callable[[End], Awaitable[bool]]
"""Called after a series. Returns whether the operation is over: only an ``unreachable`` one may be tried later."""


@dataclass(frozen=True, slots=True)
class Case:
    """One operation with an unknown outcome.

    Attributes:
        operation: what is replayed.
        begun_at: when it was first to be sent, milliseconds since the epoch.
        done: what follows.
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

    def start(self, operation: Operation, done: Done) -> None:
        """Begin to settle ``operation``; returns at once."""
        case = Case(operation, self._world.clock.now_ms(), done)
        self._add(_Line(deque([case]), PAUSES, lambda: None))

    def replay(self, cases: Iterable[Case], caught_up: Callable[[], None]) -> None:
        """Begin to settle what an earlier process left, one after another and without delay; returns at once.

        ``caught_up`` is called when all of it is over, or when it turns out to take longer.
        """
        self._add(_Line(deque(cases), (0.0, *PAUSES), caught_up))

    def resume(self) -> None:
        """Go on with what was cut short or is tried later, for example after a reconnect."""
        for line in list(self._lines):
            if not line.running:
                self._begin(line)

    def _add(self, line: _Line) -> None:
        self._lines.append(line)
        self._begin(line)

    def _begin(self, line: _Line) -> None:
        line.running = True
        self._world.tasks.spawn(self._work(line), name=f"settle {line.cases[0].operation.id}")

    async def _work(self, line: _Line) -> None:
        try:
            while line.cases:
                if not await self._settle(line, line.cases[0]):
                    return
        finally:
            line.running = False
            if not line.cases:
                self._lines.remove(line)
            line.caught_up()

    async def _settle(self, line: _Line, case: Case) -> bool:
        """Settle the first case of ``line``; ``False`` when it stays there for later."""
        end = await self._replay(line, case)
        if end != "settled":
            _log.error("operation id=%s did not settle: %s", case.operation.id, end)
            if not await case.done(end):
                return False
        await self._dispatch.forget(case.operation)
        line.cases.popleft()
        if end == "settled":
            # Last, so that it happens once: whatever comes before may be cut short and is repeated then.
            await case.done(end)
        return True

    async def _replay(self, line: _Line, case: Case) -> End:
        status: int | None = None
        for pause in line.pauses:
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
                    return "refused"
            else:
                return "settled"
        return "refused" if status == _TAKEN else "unreachable"
