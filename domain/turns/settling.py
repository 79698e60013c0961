"""Bringing an operation with an unknown outcome to an end (turns §4.3, H12; field faults 6, 9, 88, 90).

Decides how often and how long an ambiguous operation is replayed: the identical messages under their own ids, from the
first one that is not known to be stored. Refuses to know what is in them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from canon_hermes_plugin.domain.turns.delivery import Operation, transmit
from canon_hermes_plugin.domain.turns.world import World
from canon_hermes_plugin.ports.errors import DeliveryError

PAUSES = (2.0, 8.0, 30.0, 60.0)
"""Seconds before each replay; each replay is a whole series of attempts of the client."""

_log = logging.getLogger(__name__)

Done = Callable[[bool], Awaitable[None]]
"""Called once at the end, with whether the operation settled."""


@dataclass(slots=True)
class _Case:
    """One operation with an unknown outcome, and whether something works on it."""

    operation: Operation
    done: Done | None
    running: bool = False

    @property
    def id(self) -> str:
        """The id of the operation's last message."""
        return self.operation.messages[-1].message_id or ""


class Settling:
    """Replays unsettled operations in the background."""

    def __init__(self, world: World) -> None:
        self._world = world

        self._open: dict[str, _Case] = {}

    def start(self, operation: Operation, done: Done | None = None) -> None:
        """Begin to settle ``operation``; returns at once."""
        case = _Case(operation, done)
        self._open[case.id] = case
        self._begin(case)

    def resume(self) -> None:
        """Go on with what was cut short, for example by a reconnect."""
        for case in self._open.values():
            if not case.running:
                self._begin(case)

    def _begin(self, case: _Case) -> None:
        case.running = True
        self._world.tasks.spawn(self._settle(case), name=f"settle {case.id}")

    async def _settle(self, case: _Case) -> None:
        try:
            settled = await self._replay(case.operation)
        finally:
            case.running = False
        del self._open[case.id]
        if not settled:
            _log.error("operation id=%s did not settle", case.id)
        if case.done is not None:
            await case.done(settled)

    async def _replay(self, operation: Operation) -> bool:
        for pause in PAUSES:
            await self._world.clock.sleep(pause)
            try:
                await transmit(self._world.canon, operation)
            except DeliveryError as error:
                _log.info("operation id=%s is still open: %s", operation.messages[-1].message_id, error.certainty)
                if error.certainty == "definitive" and not error.retryable:
                    return False
            else:
                return True
        return False
