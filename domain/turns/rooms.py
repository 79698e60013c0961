"""The conversations with something going on: their open turns, their node, the order of their publications.

Decides how long such a conversation is remembered: while a turn is open or work for it is under way. Refuses to know
what the work is.
"""

from __future__ import annotations

import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

from canon_hermes_plugin.domain.turns.limiter import LiveView
from canon_hermes_plugin.domain.turns.node import ConversationNode
from canon_hermes_plugin.domain.turns.publishing import TurnPublisher
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.domain.turns.world import World

_REMEMBERED = 10_000


class Room:
    """One conversation."""

    def __init__(self, conversation_id: str, world: World, *, stale: bool) -> None:
        self.conversation_id = conversation_id
        self.node = ConversationNode(world.canon, stale=stale)
        self.publisher = TurnPublisher(world)
        self.views: dict[str, LiveView] = {}
        self.turns: dict[str, Turn] = {}
        self.users = 0


class Rooms:
    """Every conversation with an open turn or work under way. Opening and closing happen on the gateway loop."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = threading.Lock()
        self._rooms: dict[str, Room] = {}
        self._emptied: set[str] = set()
        """Forgotten conversations whose node shows nothing: of others, an earlier process may have left words there."""

    def enter(self, turn: Turn) -> Room:
        """Register an open turn and return its conversation."""
        with self._lock:
            room = self._room(turn.conversation_id)
            room.turns[turn.id] = turn
            spawn = partial(self.spawn, turn.conversation_id)
            room.views[turn.id] = LiveView(turn, room.node, self._world.clock, spawn)
            return room

    def leave(self, turn: Turn) -> None:
        """Forget a turn that is over."""
        with self._lock:
            room = self._rooms.get(turn.conversation_id)
            if room is not None:
                room.turns.pop(turn.id, None)
                room.views.pop(turn.id, None)
                self._sweep(room)

    @contextmanager
    def visit(self, conversation_id: str) -> Generator[Room, None, None]:
        """Keep the conversation remembered while work for it is under way."""
        with self._lock:
            room = self._room(conversation_id)
            room.users += 1
        try:
            yield room
        finally:
            self._release(conversation_id)

    def spawn(self, conversation_id: str, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run ``work`` for the conversation in the background, which is remembered until it is done."""
        with self._lock:
            self._room(conversation_id).users += 1

        async def visiting() -> None:
            try:
                await work
            finally:
                self._release(conversation_id)

        self._world.tasks.spawn(visiting(), name=name)

    def find(self, conversation_id: str) -> Room | None:
        """Return the conversation if something is going on in it."""
        with self._lock:
            return self._rooms.get(conversation_id)

    def knows(self, turn: Turn) -> bool:
        """Return whether ``turn`` was opened here and is not forgotten."""
        with self._lock:
            room = self._rooms.get(turn.conversation_id)
            return room is not None and room.turns.get(turn.id) is turn

    def open_turns(self, conversation_id: str) -> tuple[Turn, ...]:
        """Return the open turns of a conversation in order of opening; safe from any thread."""
        with self._lock:
            room = self._rooms.get(conversation_id)
            turns = tuple(room.turns.values()) if room is not None else ()
        return tuple(turn for turn in turns if not turn.closed)

    def works_beside(self, conversation_id: str, turn: Turn | None) -> bool:
        """Return whether a turn other than ``turn`` is open, or still delivers its answer."""
        with self._lock:
            room = self._rooms.get(conversation_id)
            return room is not None and any(other is not turn for other in room.turns.values())

    def all_open(self) -> tuple[Turn, ...]:
        """Return every open turn."""
        with self._lock:
            turns = [turn for room in self._rooms.values() for turn in room.turns.values()]
        return tuple(turn for turn in turns if not turn.closed)

    def owner_of(self, conversation_id: str, bubble: str) -> Turn | None:
        """Return the open turn that a call names by one of its bubbles."""
        return next((turn for turn in self.open_turns(conversation_id) if turn.owns(bubble)), None)

    def __len__(self) -> int:
        with self._lock:
            return len(self._rooms)

    def _room(self, conversation_id: str) -> Room:
        return self._rooms.setdefault(
            conversation_id, Room(conversation_id, self._world, stale=conversation_id not in self._emptied)
        )

    def _release(self, conversation_id: str) -> None:
        with self._lock:
            room = self._rooms[conversation_id]
            room.users -= 1
            self._sweep(room)

    def _sweep(self, room: Room) -> None:
        if not room.turns and not room.users:
            self._rooms.pop(room.conversation_id, None)
            if len(self._emptied) >= _REMEMBERED:
                self._emptied.clear()  # each costs one more empty write
            (self._emptied.add if room.node.empty else self._emptied.discard)(room.conversation_id)
