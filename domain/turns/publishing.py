"""Publishing turn states (turns §2.2, §2.3; H27).

Decides when a state goes out: in order per conversation, on change, and again as a heartbeat while the turn is open.
Refuses to know why a state changed.
"""

from __future__ import annotations

import asyncio
import logging

from canon_hermes_plugin.domain.turns.plan import real_message_id
from canon_hermes_plugin.domain.turns.states import is_closed
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
        self._requested: dict[str, TurnState] = {}

    def news(self, turn: Turn) -> TurnState | None:
        """Return the open turn's state if its publication was not requested yet; the caller must publish it then."""
        state = turn.state
        if is_closed(state) or self._requested.get(turn.id) == state:
            return None
        self._requested[turn.id] = state
        return state

    def forget(self, turn: Turn) -> None:
        """Forget a turn whose last state was requested."""
        self._requested.pop(turn.id, None)

    async def publish(self, turn: Turn, state: TurnState, *, opening: bool = False) -> None:
        """Publish ``state`` after everything requested before it."""
        async with self._order:
            await self._send(turn, state, opening=opening)

    async def repeat(self, turn: Turn) -> None:
        """Publish an open turn's state again, with a fresh queue depth."""
        async with self._order:
            state = turn.state
            if not is_closed(state):
                await self._send(turn, state)

    async def end(self, conversation_id: str, turn_id: str, opened_at: int | None) -> None:
        """Publish the end of a turn of an earlier process."""
        async with self._order:
            capabilities = _capabilities("completed", interleave=self._world.lanes.supports_interleave())
            now = self._world.clock.now_ms()
            await self._publish(
                TurnPublication(
                    conversation_id, "completed", 0, now, capabilities, turn_id=turn_id, opened_at=opened_at
                )
            )

    async def _send(self, turn: Turn, state: TurnState, *, opening: bool = False) -> None:
        lanes = self._world.lanes
        message_id = real_message_id(turn.start.message_id)
        publication = TurnPublication(
            turn.conversation_id,
            state,
            max(0, lanes.queue_depth(turn.start.session_key)),
            self._world.clock.now_ms(),
            _capabilities(state, interleave=lanes.supports_interleave()),
            turn_id=turn.id,
            active_message_ids=(message_id,) if opening and message_id else (),
            opened_at=turn.opened_at,
        )
        await self._publish(publication)

    async def _publish(self, publication: TurnPublication) -> None:
        try:
            await self._world.canon.publish_turn(publication)
        except CanonError as error:
            turn_id, state = publication.turn_id, publication.state
            _log.debug("turn state not published turn=%s state=%s error=%s", turn_id, state, type(error).__name__)


def _capabilities(state: TurnState, *, interleave: bool) -> dict[str, bool]:
    return {
        "supportsInterrupt": True,
        "supportsQueue": True,
        "supportsInterleave": interleave,
        "supportsInputInterrupt": state != "waiting_input",
        "supportsNonFinalPermanentMessages": False,
    }
