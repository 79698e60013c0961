"""The coordinator: whatever the host says about its turns becomes exactly one durable answer each (turns §2 to §4).

It finds the turn a call belongs to, lets the turn decide, and executes what follows through the ports. It refuses to
know the host's names for any of this, and it keeps the host waiting for nothing but the durable answer itself.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Mapping
from contextvars import Context
from dataclasses import replace

from canon_hermes_plugin.domain.turns.dispatch import Dispatch
from canon_hermes_plugin.domain.turns.ending import TurnEnding
from canon_hermes_plugin.domain.turns.media import MediaUploads
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
from canon_hermes_plugin.domain.turns.plan import Answer
from canon_hermes_plugin.domain.turns.presence import Presence
from canon_hermes_plugin.domain.turns.recovery import Recovery
from canon_hermes_plugin.domain.turns.rooms import Room, Rooms
from canon_hermes_plugin.domain.turns.routing import DRAFT, NOTE, Route, TextFacts, route
from canon_hermes_plugin.domain.turns.settling import Settling
from canon_hermes_plugin.domain.turns.states import INITIAL_STATE
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.domain.turns.world import TurnCanon, World
from canon_hermes_plugin.ports.canon import TypingStatus
from canon_hermes_plugin.ports.errors import CanonError
from canon_hermes_plugin.ports.host import HostLanes
from canon_hermes_plugin.ports.outbox import Outbox
from canon_hermes_plugin.ports.time import Clock, IdSource, Tasks

HEARTBEAT = 10.0
"""Seconds between two publications of an open turn whose state does not change."""

DRAIN = 3.0
"""Seconds that background work may go on after :meth:`TurnCoordinator.close`."""

_ACKNOWLEDGED: Mapping[Route, Mapping[str, object]] = {
    Route.CHATTER: {"suppressedAuxiliary": True},
    Route.PREVIEW: {"previewDropped": True},
    Route.LATE: {"duplicateFinal": True},
    Route.SILENCED: {"silenced": True},
}
"""The result flags of texts that go nowhere (turns §12)."""

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
        outbox: keeps what is being delivered.
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
        outbox: Outbox,
        seal_bytes: int = SEAL_BYTES,
    ) -> None:
        self._world = World(canon, lanes, clock, ids, tasks, outbox)
        self._seal_bytes = seal_bytes
        self._rooms = Rooms(self._world)
        self._dispatch = dispatch = Dispatch(self._world)
        self._settling = Settling(self._world, dispatch)
        self._outside = OutsideDelivery(self._world, dispatch, self._settling)
        self._presence = Presence(self._world, self._rooms)
        self._uploads = MediaUploads(self._world)
        self._ending = TurnEnding(self._world, self._rooms, dispatch, self._settling, self._presence)
        self._recovery = Recovery(self._world, self._rooms, dispatch, self._settling)
        self._endings: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opened = asyncio.Event()
        self._opened.set()
        self._heart: asyncio.Task[None] | None = None
        self._recounts: set[str] = set()

    def recover(self) -> None:
        """Go on with what is unsettled, of this process and of earlier ones; returns at once (field fault 90).

        Call it on the gateway loop whenever Canon has accepted the key.
        """
        self._opened.set()
        self._settling.resume()
        self._ending.resume()
        self._recovery.begin()

    async def left_unsaid(self) -> Mapping[str, int]:
        """Return the sessions in which an earlier process left an answer unsaid.

        Each comes with the moment its newest one was kept (ms): that turn was over then, only its delivery is owed.
        """
        return self._recovery.sessions_of(await self._dispatch.look())

    async def open(self, start: TurnStart) -> Turn:
        """Open a turn. Its ``thinking`` goes out first, then its node is retired; nothing of that is waited for."""
        self._loop = asyncio.get_running_loop()
        self._opened.set()
        self._settling.resume()
        turn_id = f"hermes-{self._world.ids.hex(20)}"
        turn = Turn(turn_id, start, self._world.clock.now_ms(), seal_bytes=self._seal_bytes)
        room = self._rooms.enter(turn)
        room.publisher.news(turn)
        self._presence.opened(turn.conversation_id)
        self._rooms.spawn(turn.conversation_id, self._announce(turn, room), f"announce {turn.id}")
        if self._heart is None:
            self._heart = asyncio.create_task(self._beat(), name="turn-heartbeat", context=Context())
        return turn

    async def text(self, turn: Turn | None, text: HostText) -> Ack:
        """Answer the host's ``send`` or ``edit_message``. Never raises; waits only for out-of-turn deliveries."""
        try:
            return await self._text(turn, text)
        except Exception as error:  # noqa: BLE001 - the host delivers twice when a send raises (hermes-host §3.5)
            _log.error("text call failed conversation=%s error=%s", text.conversation_id, type(error).__name__)
            return Ack(ok=False, error=f"{type(error).__name__} inside the Canon plugin")

    async def media(self, turn: Turn | None, media: HostMedia) -> Ack:
        """Answer the host's media calls. A turn's files are delivered with its answer (H10). Never raises."""
        try:
            return await self._media(turn, media)
        except Exception as error:  # noqa: BLE001 - the host delivers twice when a send raises (hermes-host §3.5)
            _log.error("media call failed conversation=%s error=%s", media.conversation_id, type(error).__name__)
            return Ack(ok=False, error=f"{type(error).__name__} inside the Canon plugin")

    async def complete(self, turn: Turn, outcome: Outcome) -> None:
        """End ``turn``: deliver, publish, blank or clear.

        Returns when the answer is stored, or known to be open or lost; the rest follows in the background and in order.
        Raises nothing but cancellation, which ends the wait and not the work. Works on a closed transport.
        """
        # In an empty context, as all work that opens connections: a kept one would keep the turn.
        ending = asyncio.create_task(self._ending.end(turn, outcome), name=f"end {turn.id}", context=Context())
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        try:
            await asyncio.shield(ending)
        except Exception as error:  # noqa: BLE001 - the lifecycle ends whatever happened (turns §4.4)
            # Where it happened, without the exception's text: that may quote a message.
            frames = "".join(traceback.format_tb(error.__traceback__))
            _log.error("end of turn=%s failed: %s\n%s", turn.id, type(error).__name__, frames)
        if not self._opened.is_set():
            await self._drain()

    def tool_started(self, turn: Turn, start: ToolStart) -> None:
        """Record a tool call's start; any thread."""
        if turn.tool_started(start):
            self._poke(turn)

    def tool_finished(self, turn: Turn, end: ToolEnd) -> None:
        """Record a tool call's end; any thread."""
        if turn.tool_finished(end):
            self._poke(turn)

    def subagent_finished(self, turn: Turn, end: SubagentEnd) -> None:
        """Record a sub-agent's end; any thread."""
        if turn.subagent_finished(end):
            self._poke(turn)

    def answer_confirmed(self, turn: Turn, text: str) -> None:
        """Take the host's authoritative final text of the run (H1); any thread."""
        if turn.confirm(text):
            self._poke(turn)

    def silence(self, turn: Turn) -> bool:
        """Silence ``turn``: idempotent, ``False`` when it is over or was not opened here; any thread."""
        silenced = self._rooms.knows(turn) and turn.silence()
        if silenced:
            _log.info("silence chosen turn=%s conversation=%s", turn.id, turn.conversation_id)
            self._poke(turn)
        return silenced

    def lift_silence(self, turn: Turn) -> None:
        """Let ``turn`` speak again because a person joined it; any thread."""
        if turn.lift_silence():
            _log.info("silence lifted turn=%s conversation=%s", turn.id, turn.conversation_id)
            self._poke(turn)

    async def waiting(self, turn: Turn, waiting: bool) -> None:
        """Enter or leave ``waiting_input``; requests nest. A denial is a leave like any other (H7)."""
        turn.wait(waiting)
        self._presence.steer(turn.conversation_id)
        self._publish(turn)

    async def typing(
        self,
        turn: Turn | None,
        conversation_id: str,
        on: bool,
        status: TypingStatus = "thinking",
    ) -> None:
        """Show or hide the typing indicator; waits for nothing. Showing needs a working turn (field fault 21).

        ``turn`` is not looked at: the host's refresh begins before its lifecycle does and may carry the turn before.
        """
        del turn
        if on:
            self._presence.show(conversation_id, status)
        else:
            self._presence.hide(conversation_id)

    def queue_changed(self, turn: Turn) -> None:
        """Publish ``turn`` once more: the number of messages behind it changed; gateway loop. Bursts publish once."""
        room = self._rooms.find(turn.conversation_id)
        if room is not None and turn.id in room.turns and turn.id not in self._recounts:
            self._recounts.add(turn.id)
            self._rooms.spawn(turn.conversation_id, self._recounted(turn, room), f"recount {turn.id}")

    def open_turns(self, conversation_id: str) -> tuple[Turn, ...]:
        """Return the open turns of a conversation, oldest first; any thread."""
        return self._rooms.open_turns(conversation_id)

    async def close(self) -> None:
        """Give background work a few seconds and leave no task behind.

        Open turns stay as they are and may still be completed. What did not settle goes on with the next connection or
        turn, in this process or the next one.
        """
        self._opened.clear()
        await self._settling.rest()
        heart, self._heart = self._heart, None
        if heart is not None:
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)
        if self._endings:
            await asyncio.wait(set(self._endings), timeout=DRAIN)
        for ending in set(self._endings):
            ending.cancel()
        if self._endings:
            await asyncio.wait(set(self._endings), timeout=DRAIN)  # they leave their answers to be settled later
        await self._drain()

    async def _drain(self) -> None:
        """End background work, unless the next connection opens meanwhile: then the work is its work."""
        draining = asyncio.create_task(self._world.tasks.drain(DRAIN), name="drain", context=Context())
        opening = asyncio.create_task(self._opened.wait(), name="await opening", context=Context())
        try:
            await asyncio.wait({draining, opening}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            draining.cancel()
            opening.cancel()
            await asyncio.gather(draining, opening, return_exceptions=True)

    async def _text(self, turn: Turn | None, text: HostText) -> Ack:
        turn = self._own(turn, text.conversation_id) or self._named_by(text)
        owner = turn if turn is not None and self._rooms.knows(turn) and not turn.closed else None
        facts = TextFacts(
            owned=owner is not None,
            confirmed=owner is not None and owner.is_confirmed_answer(text.content),
            late=turn is not None and turn.closed,
            silenced=owner is not None and owner.silenced,
            beside=owner is not None or self._rooms.works_beside(text.conversation_id, turn),
        )
        chosen = route(text, facts)
        if chosen in {Route.DELIVER, Route.ASIDE}:
            answer = text_answer(text, aside=chosen is Route.ASIDE)
            return await self._outside.deliver(text.conversation_id, answer, token=text.bubble)
        if owner is not None and chosen in {Route.STAGE, Route.ANSWER}:
            return self._staged(owner, replace(text, notify=True) if chosen is Route.ANSWER else text)
        return self._acknowledged(chosen, turn, text)

    def _own(self, turn: Turn | None, conversation_id: str) -> Turn | None:
        """Return the caller's turn, unless the call goes to another conversation than the turn belongs to."""
        if turn is None or turn.conversation_id != conversation_id:
            return None
        return turn

    def _named_by(self, text: HostText) -> Turn | None:
        """Return the open turn a call without context names by a bubble; never a guess between several (H39)."""
        return self._rooms.owner_of(text.conversation_id, text.bubble) if text.bubble else None

    def _staged(self, turn: Turn, text: HostText) -> Ack:
        bubble = turn.stage(text)
        if bubble is None:
            return self._acknowledged(Route.CHATTER, turn, text)
        self._poke(turn)
        self._publish(turn)
        facts = {"streaming": True, "turnId": turn.id, "finalPending": text.notify or bool(text.finalize)}
        return Ack(ok=True, message_id=bubble, facts={**facts, "silenced": True} if turn.silenced else facts)

    def _acknowledged(self, chosen: Route, turn: Turn | None, text: HostText) -> Ack:
        """Say yes to a text that goes nowhere; the id is never blank (field fault 1)."""
        prefix = DRAFT if chosen is Route.PREVIEW else NOTE
        facts = dict(_ACKNOWLEDGED[chosen])
        if turn is not None:
            facts["turnId"] = turn.id
        if chosen is Route.SILENCED and turn is not None:
            _log.info("text declined: silent turn=%s conversation=%s", turn.id, turn.conversation_id)
        return Ack(ok=True, message_id=text.bubble or f"{prefix}{self._world.ids.hex(16)}", facts=facts)

    async def _media(self, turn: Turn | None, media: HostMedia) -> Ack:
        turn = self._own(turn, media.conversation_id)
        if turn is None or turn.closed or not self._rooms.knows(turn):
            return await self._media_now(media)
        if turn.silenced:
            _log.info("file declined: silent turn=%s conversation=%s", turn.id, turn.conversation_id)
            return Ack(ok=True, message_id=f"{NOTE}{self._world.ids.hex(16)}", facts=_ACKNOWLEDGED[Route.SILENCED])
        media_id = f"{turn.id}.media-{len(turn.media) + 1}"
        turn.media.append(self._uploads.begin(media_id, media))
        if media.reply_to:
            turn.reply_to(media.reply_to)
        return Ack(ok=True, message_id=media_id, facts={"turnId": turn.id, "finalPending": True})

    async def _media_now(self, media: HostMedia) -> Ack:
        try:
            item = await self._uploads.upload(media)
        except CanonError as error:
            return Ack(ok=False, error=f"the file was not uploaded: {error}", retryable=error.retryable)
        return await self._outside.deliver(media.conversation_id, Answer("", media=(item,), reply_to=media.reply_to))

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
        """Publish the turn's state in its place, unless that was requested already."""
        room = self._rooms.find(turn.conversation_id)
        state = room.publisher.news(turn) if room is not None and turn.id in room.turns else None
        if room is not None and state is not None:
            self._rooms.spawn(turn.conversation_id, room.publisher.publish(turn, state), f"publish {turn.id}")

    async def _recounted(self, turn: Turn, room: Room) -> None:
        self._recounts.discard(turn.id)
        await room.publisher.repeat(turn)

    async def _announce(self, turn: Turn, room: Room) -> None:
        await room.publisher.publish(turn, INITIAL_STATE, opening=True)
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
