"""Twins of the host's open questions and of the turn in which one is put (ports/interactions, interactions §7).

A test holds commands back and puts questions as the host would; what the plugin answers can be read here.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import final

from canon_hermes_plugin.ports.interactions import ExecChoice, HostWait


@final
@dataclass(slots=True, eq=False)
class HeldCommand:
    """A dangerous command that the host holds back.

    Attributes:
        session_key: the session that wants to run it.
        command: what it says.
        choice: what the host was told, ``None`` while nothing was.
        open: whether the host still waits.
    """

    session_key: str
    command: str
    choice: ExecChoice | None = None
    open: bool = True


@final
class MemoryQuestions:
    """The host's queues of commands and questions.

    Args:
        exact: whether the host lets one command be told from another. Without, the session's oldest one is answered,
            and nobody can see what still waits.

    Attributes:
        held: every command ever held back, in order.
        seconds: how long the host waits for a decision; ``None`` when it does not say.
        clarified: the answers the host took, as pairs of question and words.
    """

    def __init__(self, *, exact: bool = True) -> None:
        self.exact = exact
        self.held: list[HeldCommand] = []
        self.seconds: float | None = None
        self.clarified: list[tuple[str, str]] = []
        self._open: dict[str, str] = {}
        self._lock = threading.Lock()

    def hold(self, session_key: str, command: str) -> HeldCommand:
        """Let the host hold a command back."""
        held = HeldCommand(session_key, command)
        self.held.append(held)
        return held

    def give_up(self, held: HeldCommand) -> None:
        """Let the host stop waiting for a decision: its own time ran out."""
        held.open = False

    def put(self, session_key: str, clarify_id: str) -> None:
        """Let the host put a question."""
        self._open[clarify_id] = session_key

    def withdraw(self, clarify_id: str) -> None:
        """Let the host stop waiting for an answer: it got one in another way, or its time ran out."""
        self._open.pop(clarify_id, None)

    def exec_wait(self, session_key: str, command: str, taken: Collection[HostWait]) -> HostWait:
        if not self.exact:
            return HeldWait(self, session_key, None)
        theirs = {id(wait.held) for wait in taken if isinstance(wait, HeldWait)}
        waiting = (held for held in self.held if held.open and held.session_key == session_key)
        named = (held for held in waiting if held.command == command and id(held) not in theirs)
        return HeldWait(self, session_key, next(named, None))

    def exec_seconds(self) -> float | None:
        return self.seconds if self.seconds is not None and self.seconds > 0 else None

    def clarify_waiting(self, session_key: str) -> bool:
        return not self.exact or session_key in self._open.values()

    def settle_clarify(self, clarify_id: str, text: str) -> bool:
        with self._lock:
            if self._open.pop(clarify_id, None) is None:
                return False
            self.clarified.append((clarify_id, text))
            return True

    def settle_exec(self, session_key: str, held: HeldCommand | None, choice: ExecChoice) -> bool:
        """Answer ``held``, or on a host that knows no better the session's oldest command."""
        with self._lock:
            if not self.exact:
                held = next((item for item in self.held if item.open and item.session_key == session_key), None)
            if held is None or not held.open:
                return False
            held.open, held.choice = False, choice
            return True


@final
@dataclass(frozen=True, slots=True, eq=False)
class HeldWait:
    """One wait; ``held`` is ``None`` when the host does not tell which, or holds no such command back any more."""

    host: MemoryQuestions
    session_key: str
    held: HeldCommand | None

    @property
    def exact(self) -> bool:
        return self.host.exact

    def waiting(self) -> bool:
        return not self.exact or (self.held is not None and self.held.open)

    def settle(self, choice: ExecChoice) -> bool:
        return self.host.settle_exec(self.session_key, self.held, choice)


@final
class MemoryAskingTurn:
    """A turn that puts questions.

    Attributes:
        shown: what viewers were told: ``True`` that it waits for a person, ``False`` that it goes on.
        over: whether the turn has ended.
    """

    def __init__(self, responder: str | None = None) -> None:
        self.shown: list[bool] = []
        self.over = False
        self._responder = responder

    @property
    def responder(self) -> str | None:
        return self._responder

    async def asked(self) -> None:
        self._show(waiting=True)

    async def answered(self) -> None:
        self._show(waiting=False)

    def _show(self, *, waiting: bool) -> None:
        if not self.over:
            self.shown.append(waiting)
