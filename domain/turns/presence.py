"""The typing indicator of a conversation (turns §2.7; field faults 18, 19, 21).

The host owns the refresh; this decides which of its calls reach Canon. Showing needs an open turn that does not wait
for a person. Hiding always counts and is repeated a few times. Every call supersedes the ones before it, so a slow
answer never undoes a newer wish. Refuses to know why the host calls.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass

from canon_hermes_plugin.domain.turns.rooms import Rooms
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.domain.turns.world import World
from canon_hermes_plugin.ports.canon import TypingStatus
from canon_hermes_plugin.ports.errors import CanonError

HIDE_PAUSES = (0.5, 1.0, 2.0)
"""Seconds before each repetition of a failed stop."""

EARLY = 3.0
"""Seconds for which a request made just before its turn opened still counts."""

_REMEMBERED = 512

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Indicator:
    """What is wished and what is known of one conversation's indicator."""

    wish: TypingStatus | None = None
    generation: int = 0
    shown: bool | None = None
    busy: bool = False
    early: tuple[float, TypingStatus] | None = None


class Presence:
    """Steers the indicators of all conversations. Used by the gateway loop only; no call waits for Canon."""

    def __init__(self, world: World, rooms: Rooms) -> None:
        self._world = world
        self._rooms = rooms
        self._indicators: OrderedDict[str, _Indicator] = OrderedDict()

    def show(self, conversation_id: str, status: TypingStatus) -> None:
        """Show the indicator if a turn of the conversation works."""
        indicator = self._indicator(conversation_id)
        turns = self._rooms.open_turns(conversation_id)
        if not turns:
            # The host's refresh begins before the lifecycle does.
            indicator.early = (self._world.clock.monotonic(), status)
        elif not _all_wait(turns):
            self._wish(conversation_id, indicator, status)

    def hide(self, conversation_id: str) -> None:
        """Hide the indicator; nothing is sent when it is known to be hidden."""
        indicator = self._indicator(conversation_id)
        indicator.early = None
        if indicator.busy or indicator.shown is not False:
            self._wish(conversation_id, indicator, None)

    def opened(self, conversation_id: str) -> None:
        """A turn opened: grant a request that came a moment too early."""
        self.steer(conversation_id)
        indicator = self._indicators.get(conversation_id)
        if indicator is None or indicator.early is None:
            return
        asked_at, status = indicator.early
        indicator.early = None
        if self._world.clock.monotonic() - asked_at <= EARLY:
            self.show(conversation_id, status)

    def ended(self, conversation_id: str) -> None:
        """A turn ended: without another one the indicator goes, whatever the host does later."""
        self.steer(conversation_id)
        indicator = self._indicators.get(conversation_id)
        if indicator is not None and not self._rooms.open_turns(conversation_id):
            self.hide(conversation_id)

    def steer(self, conversation_id: str) -> None:
        """Pause the host's refresh exactly while every open turn of the conversation waits for a person."""
        turns = self._rooms.open_turns(conversation_id)
        if turns and _all_wait(turns):
            self._world.lanes.pause_typing(conversation_id)
        else:
            self._world.lanes.resume_typing(conversation_id)

    def _indicator(self, conversation_id: str) -> _Indicator:
        indicator = self._indicators.setdefault(conversation_id, _Indicator())
        self._indicators.move_to_end(conversation_id)
        if len(self._indicators) > _REMEMBERED:
            self._indicators.popitem(last=False)
        return indicator

    def _wish(self, conversation_id: str, indicator: _Indicator, wish: TypingStatus | None) -> None:
        indicator.wish = wish
        indicator.generation += 1
        if not indicator.busy:
            indicator.busy = True
            self._world.tasks.spawn(self._fulfil(conversation_id, indicator), name=f"typing {conversation_id}")

    async def _fulfil(self, conversation_id: str, indicator: _Indicator) -> None:
        try:
            seen = -1
            while seen != indicator.generation:
                seen = indicator.generation
                await self._send(conversation_id, indicator)
        finally:
            indicator.busy = False

    async def _send(self, conversation_id: str, indicator: _Indicator) -> None:
        """Send the present wish; a stop is repeated until it succeeds, is superseded or runs out of tries."""
        wish, generation = indicator.wish, indicator.generation
        for pause in (*HIDE_PAUSES, None):
            try:
                if wish is None:
                    await self._world.canon.set_typing(conversation_id, typing=False)
                else:
                    await self._world.canon.set_typing(conversation_id, typing=True, status=wish)
            except CanonError as error:
                _log.debug("typing not updated conversation=%s error=%s", conversation_id, type(error).__name__)
                indicator.shown = None
            else:
                indicator.shown = wish is not None
                return
            if wish is not None or pause is None:
                return
            await self._world.clock.sleep(pause)
            if indicator.generation != generation:
                return


def _all_wait(turns: tuple[Turn, ...]) -> bool:
    return all(turn.state == "waiting_input" for turn in turns)
