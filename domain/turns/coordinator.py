"""The coordinator: whatever the host says about its turns becomes exactly one durable answer each (turns §2 to §4).

It finds the turn a call belongs to, lets the turn decide, and executes what follows through the ports. It refuses to
know the host's names for any of this, and it keeps the host waiting for nothing but the durable answer itself.
"""

from __future__ import annotations

import asyncio
import logging

from canon_hermes_plugin.domain.turns.ending import TurnEnding
from canon_hermes_plugin.domain.turns.model import (
    Ack,
    HostMedia,
    HostText,
    Outcome,
    SubagentEnd,
    ToolEnd,
    ToolStart,
    TurnStart,
)
from canon_hermes_plugin.domain.turns.output import SEAL_BYTES
from canon_hermes_plugin.domain.turns.outside import OutsideDelivery, text_answer
from canon_hermes_plugin.domain.turns.rooms import Rooms
from canon_hermes_plugin.domain.turns.settling import Settling
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.domain.turns.world import TurnCanon, World
from canon_hermes_plugin.ports.canon import TypingStatus
from canon_hermes_plugin.ports.host import HostLanes
from canon_hermes_plugin.ports.time import Clock, IdSource, Tasks

HEARTBEAT = 10.0
"""Seconds between two publications of an open turn whose state does not change."""

DRAIN = 3.0
"""Seconds that background work may go on after :meth:`TurnCoordinator.close`."""

NOTE = "hermes-note-"
"""Prefix of the ids of acknowledged chatter: an edit naming one is chatter too."""

DRAFT = "hermes-draft-"
"""Prefix of the ids of previews that belong to no turn."""

_log = logging.getLogger(__name__)


class TurnCoordinator:
    """Owns the open turns of one adapter.

    Every coroutine runs on the gateway loop; the plain methods may be called from any thread. ``tasks`` belongs to the
    coordinator alone.

    Args:
        canon: Canon's request side.
        lanes: the host's sessions.
        clock: time.
        ids: randomness.
        tasks: background work.
        seal_bytes: half of the overflow limit the adapter reports to the host (H1).
    """

    def __init__(  # noqa: PLR0913 - the composition root names every port once
        self,
        *,
        canon: TurnCanon,
        lanes: HostLanes,
        clock: Clock,
        ids: IdSource,
        tasks: Tasks,
        seal_bytes: int = SEAL_BYTES,
    ) -> None:
        self._world = World(canon, lanes, clock, ids, tasks)
        self._seal_bytes = seal_bytes
        self._rooms = Rooms(self._world)
        self._settling = Settling(self._world)
        self._outside = OutsideDelivery(self._world, self._settling)
        self._ending = TurnEnding(self._world, self._rooms, self._settling)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heart: asyncio.Task[None] | None = None

    async def open(self, start: TurnStart) -> Turn:
        """Open a turn. Its ``thinking`` goes out first, then its node is retired; nothing of that is waited for."""
        self._loop = asyncio.get_running_loop()
        turn_id = f"hermes-{self._world.ids.hex(20)}"
        turn = Turn(turn_id, start, self._world.clock.now_ms(), seal_bytes=self._seal_bytes)
        self._rooms.enter(turn)
        self._world.tasks.spawn(self._announce(turn), name=f"announce {turn.id}")
        if self._heart is None:
            self._heart = asyncio.create_task(self._beat(), name="turn-heartbeat")
        return turn

    async def boundary(self, turn: Turn, start: TurnStart, outcome: Outcome = "success") -> Turn:
        """Close ``turn`` with what the run produced and open the next one of the same lifecycle (H2, H3, H4).

        Calls that still carry the old turn count for the new one.
        """
        turn = self._latest(turn)
        await self.complete(turn, outcome)
        turn.successor = await self.open(start)
        return turn.successor

    async def text(self, turn: Turn | None, text: HostText) -> Ack:
        """Answer the host's ``send`` or ``edit_message``. Never raises; waits only for out-of-turn deliveries."""
        try:
            return await self._text(turn, text)
        except Exception as error:  # noqa: BLE001 - the host delivers twice when a send raises (hermes-host §3.5)
            _log.error("text call failed conversation=%s error=%s", text.conversation_id, type(error).__name__)
            return Ack(ok=False, error=f"{type(error).__name__} inside the Canon plugin")

    async def media(self, turn: Turn | None, media: HostMedia) -> Ack:
        """Answer the host's media calls. Never raises."""
        return Ack(ok=False, error="media is not supported yet")

    async def complete(self, turn: Turn, outcome: Outcome) -> None:
        """End ``turn``: deliver, blank or clear, publish. Raises only cancellation: it ends the wait, not the work."""
        turn = self._latest(turn)
        done = asyncio.get_running_loop().create_future()

        async def work() -> None:
            try:
                await self._ending.end(turn, outcome)
            finally:
                if not done.done():
                    done.set_result(None)

        self._world.tasks.spawn(work(), name=f"complete {turn.id}")
        await done

    def tool_started(self, turn: Turn, start: ToolStart) -> None:
        """Record a tool call's start; any thread."""
        turn = self._latest(turn)
        if turn.tool_started(start):
            self._poke(turn)

    def tool_finished(self, turn: Turn, end: ToolEnd) -> None:
        """Record a tool call's end; any thread."""
        turn = self._latest(turn)
        if turn.tool_finished(end):
            self._poke(turn)

    def subagent_finished(self, turn: Turn, end: SubagentEnd) -> None:
        """Record a sub-agent's end; any thread."""
        turn = self._latest(turn)
        if turn.subagent_finished(end):
            self._poke(turn)

    def answer_confirmed(self, turn: Turn, text: str) -> None:
        """Take the host's authoritative final text of the run (H1); any thread."""
        turn = self._latest(turn)
        if turn.confirm(text):
            self._poke(turn)

    def silence(self, turn: Turn) -> bool:
        """Silence ``turn``: idempotent, ``False`` when it is over; any thread."""
        turn = self._latest(turn)
        silenced = turn.silence()
        if silenced:
            _log.info("silence chosen turn=%s conversation=%s", turn.id, turn.conversation_id)
            self._poke(turn)
        return silenced

    def lift_silence(self, turn: Turn) -> None:
        """Let ``turn`` speak again because a person joined it; any thread."""
        turn = self._latest(turn)
        if turn.lift_silence():
            _log.info("silence lifted turn=%s conversation=%s", turn.id, turn.conversation_id)
            self._poke(turn)

    async def waiting(self, turn: Turn, waiting: bool) -> None:
        """Enter or leave ``waiting_input``; requests nest. A denial is a leave like any other (H7)."""
        turn = self._latest(turn)
        turn.wait(waiting)
        self._steer_typing(turn.conversation_id)
        self._publish(turn)

    async def typing(
        self,
        turn: Turn | None,
        conversation_id: str,
        on: bool,
        status: TypingStatus = "thinking",
    ) -> None:
        """Show or hide the typing indicator."""

    def open_turns(self, conversation_id: str) -> tuple[Turn, ...]:
        """Return the open turns of a conversation, oldest first; any thread."""
        return self._rooms.open_turns(conversation_id)

    async def close(self) -> None:
        """Give background work a few seconds and leave no task behind. Open turns stay as they are."""
        heart, self._heart = self._heart, None
        if heart is not None:
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)
        await self._world.tasks.drain(DRAIN)

    async def _text(self, turn: Turn | None, text: HostText) -> Ack:
        owner = self._owner(turn, text)
        if owner is not None:
            return self._owned(owner, text)
        if turn is not None and text.job_id is None and self._latest(turn).silenced and not turn.closed:
            return Ack(ok=True, message_id=self._note(), facts={"silenced": True, "turnId": turn.id})
        bubble = text.bubble or ""
        if bubble.startswith(NOTE):
            return Ack(ok=True, message_id=bubble, facts={"suppressedAuxiliary": True})
        if text.finalize is False or (text.finalize is None and text.expect_edits and not text.notify):
            return Ack(
                ok=True, message_id=bubble or f"{DRAFT}{self._world.ids.hex(16)}", facts={"previewDropped": True}
            )
        aside = text.notify and bool(self.open_turns(text.conversation_id))
        return await self._outside.deliver(text.conversation_id, text_answer(text, aside=aside))

    def _owner(self, turn: Turn | None, text: HostText) -> Turn | None:
        """Return the open turn ``text`` belongs to: never a guess between several (H39)."""
        if text.job_id is not None or text.foreign_loop:
            return None
        if turn is not None:
            turn = self._latest(turn)
            return turn if self._rooms.knows(turn) and not turn.closed else None
        return self._rooms.owner_of(text.conversation_id, text.bubble) if text.bubble else None

    def _owned(self, turn: Turn, text: HostText) -> Ack:
        marked = text.expect_edits or text.notify or text.finalize is not None
        if not marked and turn.is_confirmed_answer(text.content):
            return self._staged(turn, HostText(text.conversation_id, text.content, notify=True, reply_to=text.reply_to))
        return self._staged(turn, text) if marked else self._auxiliary(turn, text)

    def _staged(self, turn: Turn, text: HostText) -> Ack:
        bubble = turn.stage(text)
        if bubble is None:
            return self._auxiliary(turn, text)
        self._poke(turn)
        self._publish(turn)
        pending = text.notify or bool(text.finalize)
        facts = {"streaming": True, "turnId": turn.id, "finalPending": pending}
        return Ack(ok=True, message_id=bubble, facts={**facts, "silenced": True} if turn.silenced else facts)

    def _auxiliary(self, turn: Turn, text: HostText) -> Ack:
        facts = {"suppressedAuxiliary": True, "turnId": turn.id}
        return Ack(ok=True, message_id=text.bubble or self._note(), facts=facts)

    def _note(self) -> str:
        return f"{NOTE}{self._world.ids.hex(16)}"

    @staticmethod
    def _latest(turn: Turn) -> Turn:
        while turn.successor is not None:
            turn = turn.successor
        return turn

    def _poke(self, turn: Turn) -> None:
        """Show the turn's latest view soon; any thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._poke_now, turn)

    def _poke_now(self, turn: Turn) -> None:
        room = self._rooms.find(turn.conversation_id)
        view = room.views.get(turn.id) if room is not None else None
        if view is not None:
            view.poke()

    def _publish(self, turn: Turn) -> None:
        self._world.tasks.spawn(self._publish_now(turn), name=f"publish {turn.id}")

    async def _publish_now(self, turn: Turn) -> None:
        with self._rooms.visit(turn.conversation_id) as room:
            await room.publisher.changed(turn)

    async def _announce(self, turn: Turn) -> None:
        with self._rooms.visit(turn.conversation_id) as room:
            await room.publisher.opening(turn)
            view = room.views.get(turn.id)
            if view is not None:
                view.start()

    async def _beat(self) -> None:
        while turns := self._rooms.all_open():
            await self._world.clock.sleep(HEARTBEAT)
            for turn in turns:
                with self._rooms.visit(turn.conversation_id) as room:
                    await room.publisher.repeat(turn)
        self._heart = None

    def _steer_typing(self, conversation_id: str) -> None:
        turns = self.open_turns(conversation_id)
        if turns and all(turn.state == "waiting_input" for turn in turns):
            self._world.lanes.pause_typing(conversation_id)
        else:
            self._world.lanes.resume_typing(conversation_id)
