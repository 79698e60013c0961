"""Publishing turn states (turns §2.2, §2.3; H27).

Decides when a state goes out: in order per conversation, on change, and again as a heartbeat while the turn is open.
Refuses to know why a state changed.
"""

from __future__ import annotations

import asyncio
import logging

from canon_hermes_plugin.domain.turns.plan import real_message_id
from canon_hermes_plugin.domain.turns.states import INITIAL_STATE, is_closed
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.domain.turns.world import World
from canon_hermes_plugin.ports.canon import TurnPublication, TurnState
from canon_hermes_plugin.ports.errors import CanonError

_log = logging.getLogger(__name__)


class TurnPublisher:
    """Publishes the turns of one conversation. Used by the gateway loop only; every publication is best effort."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._order = asyncio.Lock()
        self._published: dict[str, TurnState] = {}

    async def opening(self, turn: Turn) -> None:
        """Publish that ``turn`` began."""
        async with self._order:
            await self._send(turn, INITIAL_STATE, opening=True)

    async def changed(self, turn: Turn) -> None:
        """Publish the turn's state unless it is already public."""
        async with self._order:
            state = turn.state
            if not is_closed(state) and self._published.get(turn.id) != state:
                await self._send(turn, state)

    async def repeat(self, turn: Turn) -> None:
        """Publish an open turn's state again, with a fresh queue depth."""
        async with self._order:
            state = turn.state
            if not is_closed(state):
                await self._send(turn, state)

    async def closing(self, turn: Turn) -> None:
        """Publish the closed state of ``turn`` and forget it."""
        async with self._order:
            await self._send(turn, turn.state)
            self._published.pop(turn.id, None)

    async def _send(self, turn: Turn, state: TurnState, *, opening: bool = False) -> None:
        self._published[turn.id] = state
        lanes = self._world.lanes
        message_id = real_message_id(turn.start.message_id)
        publication = TurnPublication(
            turn.conversation_id,
            state,
            max(0, lanes.queue_depth(turn.start.session_key)),
            self._world.clock.now_ms(),
            {
                "supportsInterrupt": True,
                "supportsQueue": True,
                "supportsInterleave": lanes.supports_interleave(),
                "supportsInputInterrupt": state != "waiting_input",
                "supportsNonFinalPermanentMessages": False,
            },
            turn_id=turn.id,
            active_message_ids=(message_id,) if opening and message_id else (),
            opened_at=turn.opened_at,
        )
        try:
            await self._world.canon.publish_turn(publication)
        except CanonError as error:
            _log.debug("turn state not published turn=%s state=%s error=%s", turn.id, state, type(error).__name__)
