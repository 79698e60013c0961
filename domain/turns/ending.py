"""Ending a turn: its answer, its node and its last public state, in that order (turns §4.4; H6, H12).

Decides what is delivered for which outcome and when the node may go. Refuses to know the host: it gets a turn and an
outcome.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Literal

from canon_hermes_plugin.domain.turns.delivery import DeliveryState, Operation, Verdict
from canon_hermes_plugin.domain.turns.dispatch import Dispatch
from canon_hermes_plugin.domain.turns.media import collect
from canon_hermes_plugin.domain.turns.model import Outcome
from canon_hermes_plugin.domain.turns.node import ConversationNode
from canon_hermes_plugin.domain.turns.notice import Notices
from canon_hermes_plugin.domain.turns.plan import plan
from canon_hermes_plugin.domain.turns.presence import Presence
from canon_hermes_plugin.domain.turns.rooms import Room, Rooms
from canon_hermes_plugin.domain.turns.settling import End, Settling
from canon_hermes_plugin.domain.turns.states import OUTCOME_EVENTS
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.domain.turns.world import World
from canon_hermes_plugin.ports.errors import DeliveryError

HAND_OVER = 0.75
"""Seconds between the durable answer and the clearing of the node, for viewers to change over."""

BLANK_AGAIN = (1.0, 4.0, 15.0, 60.0)
"""Seconds between two attempts to blank a node that may show words of a silenced turn."""

Delivered = Literal["delivered", "nothing", "failed", "open"]

_log = logging.getLogger(__name__)


class TurnEnding:
    """Ends turns. Used by the gateway loop only."""

    def __init__(self, world: World, rooms: Rooms, dispatch: Dispatch, settling: Settling, presence: Presence) -> None:
        self._world = world
        self._dispatch = dispatch
        self._presence = presence
        self._rooms = rooms
        self._settling = settling
        self._notices = Notices(world, settling)
        self._unreleased: dict[str, Turn] = {}
        """The last turn of each conversation whose node is not known to be gone."""

    def resume(self) -> None:
        """Go on with nodes whose release was cut short or failed, for example after a reconnect."""
        for turn in list(self._unreleased.values()):
            self._start_release(turn, 0.0)

    async def end(self, turn: Turn, outcome: Outcome) -> None:
        """Close ``turn`` with ``outcome``: gate first, then the answer, the public state, and the node last."""
        with self._rooms.visit(turn.conversation_id) as room:
            if not turn.close(OUTCOME_EVENTS[outcome]):
                return
            try:
                await self._finish(turn, room, outcome)
            finally:
                self._rooms.leave(turn)
                self._presence.ended(turn.conversation_id)

    async def _finish(self, turn: Turn, room: Room, outcome: Outcome) -> None:
        view = room.views.get(turn.id)
        delivered: Delivered = "failed"
        try:
            if turn.silenced or outcome != "success":
                _log.info("turn=%s delivers nothing: silent=%s outcome=%s", turn.id, turn.silenced, outcome)
                delivered = "nothing"
            else:
                if view is not None:
                    self._rooms.spawn(turn.conversation_id, view.flush(), f"last-view {turn.id}")
                delivered = await self._deliver(turn)
        except asyncio.CancelledError:
            delivered = "open" if turn.book.state is DeliveryState.RESERVED else "failed"
            raise
        finally:
            room.publisher.forget(turn)
            self._rooms.spawn(turn.conversation_id, room.publisher.publish(turn, turn.state), f"publish {turn.id}")
            if delivered != "open":
                self._start_release(turn, HAND_OVER if delivered == "delivered" else 0.0)

    async def _deliver(self, turn: Turn) -> Delivered:
        answer = turn.answer()
        files, missing = await collect(turn.media)
        if missing:
            answer = replace(answer, text=f"{answer.text}\n\n{_missing(missing)}".strip("\n"))
        operation = Operation(plan(replace(answer, media=files), turn.conversation_id, turn.book.next_id))
        if not operation.messages:
            return "nothing"
        verdict, operation = turn.book.prepare(operation)
        if verdict is Verdict.REFUSE:
            _log.error("turn=%s has another unsettled operation", turn.id)
            return "failed"
        try:
            await self._dispatch.send(operation, turn)
        except DeliveryError as error:
            return await self._failed(turn, operation, error)
        except asyncio.CancelledError:
            # The platform disconnects. Part of the answer may be stored: the rest follows with the next connection.
            self._keep_trying(turn, operation)
            raise
        turn.book.settle()
        return "delivered"

    async def _failed(self, turn: Turn, operation: Operation, error: DeliveryError) -> Delivered:
        _log.error("final of turn=%s failed: %s, status=%s", turn.id, error.certainty, error.status_code)
        if error.certainty == "definitive" and not error.retryable:
            turn.book.fail("definitive")
            await self._notify(turn)
            await self._dispatch.forget(operation)
            return "failed"
        # An outage that provably stored nothing is waited out like one that may have: the plan stays reserved.
        self._keep_trying(turn, operation)
        return "open"

    def _keep_trying(self, turn: Turn, operation: Operation) -> None:
        turn.book.fail("ambiguous")

        async def done(end: End) -> bool:
            if end == "settled":
                turn.book.settle()
            elif end != "expired" and not await self._notify(turn) and end == "unreachable":
                return False
            await self._release_node(turn, HAND_OVER if end == "settled" else 0.0)
            return True

        self._settling.start(operation, done)

    async def _notify(self, turn: Turn) -> bool:
        """Tell the person that there was an answer; return whether that is stored or being settled."""
        return await self._notices.tell_undelivered(turn.conversation_id, turn.id, turn.start.message_id)

    def _start_release(self, turn: Turn, pause: float) -> None:
        self._unreleased[turn.conversation_id] = turn
        work = self._release_node(turn, pause)
        self._rooms.spawn(turn.conversation_id, work, f"release-node {turn.id}")

    async def _release_node(self, turn: Turn, pause: float) -> None:
        self._unreleased[turn.conversation_id] = turn
        with self._rooms.visit(turn.conversation_id) as room:
            if pause:
                await self._world.clock.sleep(pause)
            if not await self._cleared(turn, room.node):
                # Canon makes a message of a node that is cleared while it shows something: better it stays.
                _log.warning("the node at the end of turn=%s is not known to be blank; not cleared", turn.id)
            elif self._unreleased.get(turn.conversation_id) is turn:
                del self._unreleased[turn.conversation_id]

    async def _cleared(self, turn: Turn, node: ConversationNode) -> bool:
        for pause in (*BLANK_AGAIN, None):
            blank = turn.silenced or node.tells_silenced
            if (not blank or await node.write(turn, turn.blank(), last=True)) and await node.clear(turn):
                return True
            if pause is not None:
                await self._world.clock.sleep(pause)
        return False


def _missing(count: int) -> str:
    return "An attachment could not be delivered." if count == 1 else f"{count} attachments could not be delivered."
