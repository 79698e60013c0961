"""Saying what an earlier process began to say and could not finish (turns §4.3; field fault 90).

Decides what becomes of the dead turns of those answers: their public state ends and their node goes, unless a turn of
this process has taken the place. Refuses to know how often something is replayed.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial

from canon_hermes_plugin.domain.turns.delivery import Operation
from canon_hermes_plugin.domain.turns.dispatch import Dispatch
from canon_hermes_plugin.domain.turns.ending import BLANK_AGAIN, HAND_OVER
from canon_hermes_plugin.domain.turns.notice import Notices
from canon_hermes_plugin.domain.turns.rooms import Rooms
from canon_hermes_plugin.domain.turns.settling import LIFETIME_MS, Case, End, Settling
from canon_hermes_plugin.domain.turns.world import World
from canon_hermes_plugin.ports.outbox import OutboxEntry

_log = logging.getLogger(__name__)


class Recovery:
    """Replays the leftovers of earlier processes, once. Used by the gateway loop only."""

    def __init__(self, world: World, rooms: Rooms, dispatch: Dispatch, settling: Settling) -> None:
        self._world = world
        self._rooms = rooms
        self._dispatch = dispatch
        self._settling = settling
        self._notices = Notices(world, settling)
        self._begun = False

    def begin(self) -> None:
        """Begin, unless that was done; returns at once. Canon must have accepted the key."""
        if not self._begun:
            self._world.tasks.spawn(self._begin(), name="recover answers")

    def sessions_of(self, entries: Iterable[OutboxEntry]) -> Mapping[str, int]:
        """Return the sessions of those answers that will be said, each with when its newest one was kept (ms)."""
        young = [entry for entry in entries if self._world.clock.now_ms() - entry.kept_at <= LIFETIME_MS]
        newest: dict[str, int] = {}
        for entry in young:
            if entry.session_key is not None:
                newest[entry.session_key] = max(entry.kept_at, newest.get(entry.session_key, 0))
        return newest

    async def _begin(self) -> None:
        found = await self._dispatch.leftovers()
        if self._begun:
            return
        self._begun = True
        left: dict[str, list[OutboxEntry]] = defaultdict(list)
        for entry in found:
            _log.info("operation id=%s turn=%s was left by an earlier process", entry.operation_id, entry.turn_id)
            left[entry.conversation_id].append(entry)
        for conversation_id, entries in left.items():
            cases = [self._case(entry) for entry in entries]
            self._settling.replay(cases, partial(self._dispatch.caught_up, conversation_id))

    def _case(self, entry: OutboxEntry) -> Case:
        return Case(Operation(entry.messages, inherited=True), entry.kept_at, partial(self._done, entry))

    async def _done(self, entry: OutboxEntry, end: End) -> bool:
        if end == "expired":
            _log.warning("operation id=%s turn=%s is too old to be said", entry.operation_id, entry.turn_id)
        if entry.turn_id is None:
            return True
        if end == "refused":
            reply_to = entry.messages[-1].reply_to
            await self._notices.tell_undelivered(entry.conversation_id, entry.turn_id, reply_to)
        work = self._end_dead_turn(entry, entry.turn_id, said=end == "settled")
        self._rooms.spawn(entry.conversation_id, work, f"end dead turn {entry.turn_id}")
        return True

    async def _end_dead_turn(self, entry: OutboxEntry, turn_id: str, *, said: bool) -> None:
        """End the dead turn publicly. Its node stays when its words were not said: nobody else has them."""
        with self._rooms.visit(entry.conversation_id) as room:
            if not self._rooms.open_turns(entry.conversation_id):
                await room.publisher.end(entry.conversation_id, turn_id, entry.opened_at)
            if not said:
                return
            for pause in (HAND_OVER, *BLANK_AGAIN):
                await self._world.clock.sleep(pause)
                if await room.node.clear_leftover(entry.conversation_id, turn_id):
                    return
            _log.warning("the node of turn=%s, of an earlier process, is not known to be cleared", turn_id)
