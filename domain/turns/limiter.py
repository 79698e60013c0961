"""Live writes at their own pace (turns §3.2, H27).

Decides when a turn's view is written: at most one write in flight, at least 250 ms between two, the latest view wins.
Silence does not wait for its place: the node goes blank at once. Nobody waits for a write. Refuses to know what the
view contains.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from canon_hermes_plugin.domain.turns.node import ConversationNode
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.ports.time import Clock

MIN_GAP = 0.25
"""Seconds between the beginnings of two writes of one turn."""

Spawn = Callable[[Coroutine[Any, Any, None], str], None]
"""Runs work for the turn's conversation in the background, under a name."""


class LiveView:
    """Keeps the node showing what one turn looks like. Used by the gateway loop only."""

    def __init__(self, turn: Turn, node: ConversationNode, clock: Clock, spawn: Spawn) -> None:
        self._turn = turn
        self._node = node
        self._clock = clock
        self._spawn = spawn
        self._started = False
        self._running = False
        self._shown: int | None = None
        self._last = -MIN_GAP

    def start(self) -> None:
        """Begin with the view as it is now: it retires whatever a dead turn left in the node (turns §3.5, H26)."""
        self._started = True
        self.poke()

    def poke(self) -> None:
        """Show the turn's latest view soon; returns at once."""
        if not self._started:
            return
        if self._turn.silenced and not self._turn.closed:
            self._spawn(self._blank(), f"blank {self._turn.id}")
        elif not self._running and self._wanted():
            self._running = True
            self._spawn(self._run(), f"live-view {self._turn.id}")

    async def flush(self) -> None:
        """Write the last view of a turn that has just closed, unless viewers see it already."""
        if self._started and self._turn.start.verbosity == "verbose" and self._shown != self._turn.revision:
            await self._node.write(self._turn, self._turn.view(), last=True)

    async def _blank(self) -> None:
        await self._node.write(self._turn, self._turn.blank())

    def _wanted(self) -> bool:
        if self._turn.closed or self._turn.silenced or self._shown == self._turn.revision:
            return False
        return self._shown is None or self._turn.start.verbosity == "verbose"

    async def _run(self) -> None:
        clock = self._clock
        try:
            while self._wanted():
                pause = self._last + MIN_GAP - clock.monotonic()
                if pause > 0:
                    await clock.sleep(pause)
                    continue
                self._last = clock.monotonic()
                self._shown = self._turn.revision
                await self._node.write(self._turn, self._turn.view())
        finally:
            self._running = False
