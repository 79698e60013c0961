"""The plugin's own queue: every message that waits for a busy session becomes a turn of its own (hermes-host §3.7).

Decides what happens to a message while its session works, in which order waiting ones start, and what a control signal
reaches. The host's own queue stays empty: what it would hold is taken over, so no two messages ever share a lifecycle
(turns §14 H2 to H4). Refuses to know what a turn contains or how it is delivered.

Everything here runs on the gateway loop, except :meth:`HermesLanes.run_finished`, which agent threads call. The object
outlives the adapter instance: a reconnect binds the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import final

from canon_hermes_plugin.domain.inbound.intents import MAX_WAITING, BusyDecision, reached
from canon_hermes_plugin.domain.turns.model import Outcome
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.hermes import compat, host
from canon_hermes_plugin.infrastructure.hermes.busy import BusyHost, decide, interrupt, refuse, steer
from canon_hermes_plugin.infrastructure.hermes.compat import HostObject
from canon_hermes_plugin.infrastructure.hermes.config import Settings
from canon_hermes_plugin.infrastructure.hermes.lane import Lane, TurnControls, busy_in, waiting_in
from canon_hermes_plugin.infrastructure.hermes.shelf import Shelf
from canon_hermes_plugin.ports.canon import SignalKind
from canon_hermes_plugin.ports.errors import CanonError
from canon_hermes_plugin.ports.host import InboundMessage
from canon_hermes_plugin.ports.time import Clock, Tasks

_LOG = logging.getLogger(__name__)


@final
class HermesLanes:
    """Implements ``HostInbox`` and ``HostLanes`` of :mod:`canon_hermes_plugin.ports.host`.

    Attributes:
        settings: decides session keys and access.
        shelf: releases messages as they start, are steered in or are dropped.
        tasks: owns the start of waiting messages.
        clock: spends the pauses.
        owner_id: returns the agent's owner once known.
    """

    def __init__(
        self, settings: Settings, shelf: Shelf, tasks: Tasks, clock: Clock, owner_id: Callable[[], str | None]
    ) -> None:
        self._settings = settings
        self._shelf = shelf
        self._tasks = tasks
        self._clock = clock
        self._owner_id = owner_id
        self._lanes: dict[str, Lane] = {}
        self._adapter: HostObject | None = None
        self._host = BusyHost(trusted=settings.access.decided_here)
        self._turns: TurnControls | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._warned = False

    def serve(self, turns: TurnControls) -> None:
        """Say which turns the queue steers; called once, by the composition: turns and queue know each other."""
        self._turns = turns

    def bind(self, adapter: HostObject, delegate: HostObject | None) -> None:
        """Work through ``adapter`` from now on, and start what waited for a connection."""
        self._adapter = adapter
        self._host.delegate = delegate
        self._host.runner = getattr(adapter, "gateway_runner", None) or compat.runner_of(delegate)
        if not self._warned:
            self._warned = True
            for item in compat.missing(adapter, self._host.runner):
                _LOG.warning("host %s has no %s.%s: %s", compat.host_version(), item.owner, item.name, item.effect)
        for lane in list(self._lanes.values()):
            self._advance(lane)

    def unbind(self, adapter: HostObject) -> None:
        """Forget ``adapter`` unless a newer one took over."""
        if self._adapter is adapter:
            self._adapter = None

    # --- ports.host.HostInbox ---------------------------------------------------------------------------------------

    async def hand_over(self, message: InboundMessage) -> None:
        adapter = self._connected()
        if not self._admits(message):
            _LOG.info("message %s in %s refused: sender not allowed", message.message_id, message.conversation_id)
            return
        event = host.to_event(adapter, message)
        draining = compat.is_draining(self._host.runner)  # what waits now waits for the next process
        if draining and message.synthetic and not host.is_command(event):
            raise CanonError("the gateway is stopping", retryable=True)  # nobody would bring it back
        lane = self._lane(self.key_of(event))
        if host.is_command(event):
            await self._command(lane, event)
        elif self._busy(lane):
            if (message.user_id and compat.clarify_waits(lane.key)) or not await self._route(lane, event):
                await adapter.handle_message(event)
        elif draining:
            self._enqueue(lane, event)
        else:
            await self._start(lane, event)

    async def apply_signal(
        self, conversation_id: str, signal: SignalKind, user_id: str | None, spare: Collection[str] = frozenset()
    ) -> None:
        here = busy_in(self._lanes.values(), conversation_id)
        lanes = reached(here, lambda lane: lane.user_id, sender=user_id, owner=self._owner_id())
        _LOG.info("signal %s in %s reaches %d session(s)", signal, conversation_id, len(lanes))
        command = "/new" if signal == "new_session" else "/stop"
        for lane in lanes:
            run = lane.run  # before its queue is dropped, which may be all there is of it
            if signal == "stop_and_drop":
                self.drop(lane.key, spare)
            if run is not None and host.canon_message_id(run) not in spare:
                await self._command(lane, host.command_event(command, run.source))
            if signal == "stop_and_drop":
                self.drop(lane.key, spare)
        if signal == "new_session" and not lanes and user_id is not None:
            await self._renew(conversation_id, user_id)

    async def _renew(self, conversation_id: str, user_id: str) -> None:
        """Begin a user's session anew in a conversation where nothing runs."""
        chat = await self._connected().get_chat_info(conversation_id)
        command = InboundMessage(conversation_id, "/new", user_id=user_id, kind="command", synthetic=True)
        await self.hand_over(replace(command, chat_kind="group") if chat["type"] == "group" else command)

    def waiting(self) -> frozenset[str]:
        slots = (compat.peek_slot(self._adapter, key) for key in self._lanes) if self._adapter is not None else ()
        messages = map(host.inbound_of, (*waiting_in(list(self._lanes.values())), *slots))
        return frozenset(message.message_id for message in messages if message is not None and message.message_id)

    # --- ports.host.HostLanes ---------------------------------------------------------------------------------------

    def pause_typing(self, conversation_id: str) -> None:
        if self._adapter is not None:
            self._adapter.pause_typing_for_chat(conversation_id)

    def resume_typing(self, conversation_id: str) -> None:
        if self._adapter is not None:
            self._adapter.resume_typing_for_chat(conversation_id)

    def queue_depth(self, session_key: str) -> int:
        lane = self._lanes.get(session_key)
        return len(lane.waiting) if lane is not None else 0

    def supports_interleave(self) -> bool:
        return compat.knows_runs(self._host.runner)

    def busy_conversations(self) -> set[str]:
        """Return the conversations in which something runs or waits."""
        return {name for lane in self._lanes.values() if (name := lane.conversation_id) is not None}

    # --- called by the adapter --------------------------------------------------------------------------------------

    def key_of(self, event: HostObject) -> str:
        """Return the session key of an event, by the host's own derivation."""
        return host.session_key(
            event.source,
            per_user=self._settings.group_sessions_per_user,
            per_thread_user=self._settings.thread_sessions_per_user,
        )

    def started(self, event: HostObject) -> str:
        """The host begins to process ``event``; returns its session key."""
        self._loop = asyncio.get_running_loop()
        lane = self._lane(self.key_of(event))
        if lane.begin(event):
            self._interrupt(lane)
        return lane.key

    def accepted(self, event: HostObject, turn: Turn) -> None:
        """``turn`` was opened for ``event``, whose message leaves the queued shelf (H37)."""
        self._lane(turn.start.session_key).turn = turn
        message = host.inbound_of(event)
        if message is not None:
            self._shelf.started(message)

    def outcome(self, key: str, told: Outcome) -> Outcome:
        """Return how the session's running lifecycle ended, of which the host told ``told``."""
        lane = self._lanes.get(key)
        return told if lane is None else lane.outcome(told, draining=compat.is_draining(self._host.runner))

    def completed(self, key: str, event: HostObject) -> list[InboundMessage]:
        """The host finished a lifecycle; called inside its task, whose end starts the next waiting message.

        Returns the messages that were worked on in it.
        """
        lane = self._lane(key)
        lane.open = max(0, lane.open - 1)
        events = [event, *lane.steered_in()]
        self._shelf.changed()
        task = asyncio.current_task()
        if task is None:
            self._advance(lane)
        else:
            lane.unwinding += 1
            task.add_done_callback(lambda _: self._unwound(lane))
        return [message for message in map(host.inbound_of, events) if message is not None]

    async def on_busy(self, event: HostObject, key: str) -> bool:
        """Decide about an event that meets a running session; ``True`` when nothing is left for the host to do."""
        lane = self._lane(key)
        if event is lane.starting:
            lane.starting = None
            lane.waiting.appendleft(event)
            return True
        if await self._route(lane, event):
            return True
        return bool(self._host.delegate is not None and await self._host.delegate(event, key))

    def take_over(self, adapter: HostObject, key: str) -> None:
        """Move what the host queued for itself into this queue, so that it runs as a turn of its own."""
        slot = compat.take_slot(adapter, key)
        for event in (*(() if slot is None else (slot,)), *compat.take_overflow(self._host.runner, key)):
            self._lane(key).waiting.append(event)

    def run_recorded(self, key: str) -> None:
        """The host asks the model: the message of the session's run is in the host's history now. On agent threads."""
        lane, loop = self._lanes.get(key), self._loop
        if lane is not None and not lane.recorded:
            lane.recorded = True
            if loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._shelf.changed)

    def run_finished(self, key: str, host_session: str | None) -> bool:
        """One agent run of the session ended; called on its thread, before the host looks for leftover steering.

        What was put into the run too late to be read becomes a message of its own again. ``False``, and nothing else,
        for the run of another agent that works inside this one, such as a job run at once.
        """
        lane = self._lanes.get(key)
        agent = compat.live_agent(self._host.runner, key)
        if lane is None or agent is None:
            return True
        if not compat.works_for(agent, host_session):
            return False
        rest, late = lane.unread(lambda: compat.take_leftover_steer(agent))
        if rest and lane.current is not None:
            late.insert(0, host.text_event(rest, lane.current.source))  # the host's own /steer command
        # The loop reads the queue only after this run's lifecycle ended, so a plain append is early enough.
        lane.waiting.extendleft(reversed(late))
        return True

    def drop(self, key: str, spare: Collection[str] = frozenset()) -> int:
        """Drop what waits in the session but for messages whose ids are in ``spare``; returns how many messages.

        An approval's decision on its way to the model stays: it is nobody's waiting message, and it is told once.
        """
        if self._adapter is not None:
            self.take_over(self._adapter, key)
        lane = self._lanes.get(key)
        if lane is None:
            return 0
        dropped = lane.clear(lambda event: host.is_synthetic(event) or host.canon_message_id(event) in spare)
        self._recount(lane)
        for message in map(host.inbound_of, dropped):
            if message is not None:
                self._shelf.dropped(message)
        self._advance(lane)
        return len(dropped)

    async def _route(self, lane: Lane, event: HostObject) -> bool:
        """Carry out what is decided about an event for a busy session; ``False`` leaves it to the host."""
        decision = await decide(self._host, lane, event)
        if decision in {BusyDecision.NOT_HANDLED, BusyDecision.DELEGATE}:
            return False
        if decision is BusyDecision.STEER:
            if self._steer(lane, event):
                return True
            _LOG.warning("session %s: the run takes no text any more, the message waits instead", lane.key)
        if decision is BusyDecision.STOP:
            self.drop(lane.key)
        if self._enqueue(lane, event) and decision in {BusyDecision.STOP, BusyDecision.INTERRUPT}:
            self._interrupt(lane)
        self._advance(lane)
        return True

    def _steer(self, lane: Lane, event: HostObject) -> bool:
        if not steer(self._host, lane, event):
            return False
        message = host.inbound_of(event)
        if message is not None:
            self._shelf.started(message)
        if (message is None or message.user_id is not None) and self._turns is not None and lane.turn is not None:
            self._turns.lift_silence(lane.turn)
        return True

    def _enqueue(self, lane: Lane, event: HostObject) -> bool:
        if len(lane.waiting) < MAX_WAITING:
            lane.waiting.append(event)
            self._recount(lane)
            return True
        message = host.inbound_of(event)
        _LOG.warning("session %s: %d messages wait, one more was refused", lane.key, MAX_WAITING)
        if host.is_synthetic(event):
            raise CanonError("the session's queue is full", retryable=True)  # whoever made it tries again later
        if message is not None:
            self._shelf.dropped(message)
            self._tasks.spawn(refuse(self._turns, message), name=f"refuse {message.message_id}")
        return False

    def _recount(self, lane: Lane) -> None:
        if self._turns is not None and lane.open and lane.turn is not None:
            self._turns.queue_changed(lane.turn)

    def _interrupt(self, lane: Lane) -> None:
        if lane.run is None:
            return
        lane.interrupted = True  # one that is about to start looks for itself
        if lane.open:
            work = interrupt(self._host, lane, lane.current, self._clock)
            self._tasks.spawn(work, name=f"interrupt {lane.key}")

    # --- starting what waits ----------------------------------------------------------------------------------------

    def _unwound(self, lane: Lane) -> None:
        lane.unwinding = max(0, lane.unwinding - 1)
        self._advance(lane)

    def _advance(self, lane: Lane) -> None:
        """Start the next waiting message unless something of the session still runs."""
        adapter, draining = self._adapter, compat.is_draining(self._host.runner)
        if lane.occupied:
            return
        if adapter is not None and compat.session_is_busy(adapter, lane.key):
            # A command (/stop, /new) holds the guard and, when it ends, starts what lies in the host's slot.
            command_holds = lane.waiting and not draining and not compat.owner_is_running(adapter, lane.key)
            if command_holds and compat.fill_slot(adapter, lane.key, lane.waiting[0]):
                lane.waiting.popleft()
            return
        if not lane.waiting:
            if lane.idle:
                self._lanes.pop(lane.key, None)
            return
        if adapter is None or draining:
            return
        lane.starting = lane.waiting.popleft()
        self._tasks.spawn(self._start_next(lane, lane.starting), name=f"start {lane.key}")

    async def _start_next(self, lane: Lane, event: HostObject) -> None:
        try:
            await self._start(lane, event)
        except CanonError:
            lane.waiting.appendleft(event)  # the connection went away meanwhile: the next one starts it

    async def _start(self, lane: Lane, event: HostObject) -> None:
        lane.starting, lane.interrupted = event, False
        try:
            adapter = self._connected()
            await adapter.handle_message(event)
        except BaseException:
            lane.starting = None
            raise
        # A task cancelled before its first step reports neither start nor completion.
        if not compat.on_owner_end(adapter, lane.key, lambda: self._owner_ended(lane, event)):
            lane.starting = None
            self._advance(lane)

    def _owner_ended(self, lane: Lane, event: HostObject) -> None:
        if lane.starting is event:  # somebody stopped it before it began
            lane.starting, message = None, host.inbound_of(event)
            if host.is_synthetic(event):
                lane.waiting.appendleft(event)
            elif message is not None:
                self._shelf.dropped(message)
        self._advance(lane)

    async def _command(self, lane: Lane, event: HostObject) -> None:
        """Give the host a command: it runs at once, whatever the session does, and may have ended the session's run."""
        turn, before = lane.turn, lane.interrupted
        run = compat.live_agent(self._host.runner, lane.key) if host.is_command(event, "stop", "new", "reset") else None
        # Set before the host confirms: nothing the run still says may follow the confirmation (field row 4).
        lane.interrupted = before or (run is not None and lane.open > 0)
        await self._connected().handle_message(event)
        if run is not None and compat.live_agent(self._host.runner, lane.key) is run:
            lane.interrupted = before  # the host refused, or asks back first
        if host.is_command(event, "steer") and turn is not None and self._turns is not None:
            self._turns.lift_silence(turn)
        self._advance(lane)

    def _busy(self, lane: Lane) -> bool:
        if lane.occupied or lane.waiting:
            return True
        return self._adapter is not None and compat.session_is_busy(self._adapter, lane.key)

    def _connected(self) -> HostObject:
        if self._adapter is None:
            raise CanonError("the Hermes adapter is not connected", retryable=True)
        return self._adapter

    def _lane(self, key: str) -> Lane:
        return self._lanes.setdefault(key, Lane(key))

    def _admits(self, message: InboundMessage) -> bool:
        access = self._settings.access
        return message.synthetic or not access.decided_here or access.admits(host.sender_of(message))
