"""A scripted stand-in for Hermes: starts a turn for each message, plays a script in it, and completes it.

It decides what the gateway decides: one lifecycle per message, first in, first out in each session. It knows neither
models nor tools; scripts say what they would have done.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, final

from canon_hermes_plugin.domain.session_key import host_session_key
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.coordinator import TurnCoordinator
from canon_hermes_plugin.domain.turns.model import HostText, Outcome, ToolEnd, ToolStart, TurnStart, Verbosity
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.ports.host import ConversationKind, InboundMessage, SessionSnapshot
from canon_hermes_plugin.testing.script import Script, Scripts, Step, ToolError

_CURSOR = " ▉"


class ThreadWatch(Protocol):
    """Told about worker threads, so that made-up time does not pass them by. Called on the loop."""

    def thread_begins(self, context: contextvars.Context) -> Any:  # noqa: ANN401 - whatever names the thread to it
        """A thread starts to work in ``context``; returns what :meth:`thread_ends` is told."""
        ...

    def thread_ends(self, worker: Any) -> None:  # noqa: ANN401 - see above
        """It has ended."""
        ...


class MessageShelf(Protocol):
    """Told what became of a message."""

    def started(self, message: InboundMessage) -> None:
        """Its turn runs."""
        ...

    def dropped(self, message: InboundMessage) -> None:
        """It will never run."""
        ...


class Signaller(Protocol):
    """Binds the host's provenance of a turn to the calling context (hermes-host: session context)."""

    def __call__(self, session: SessionSnapshot) -> object:
        """Bind ``session``."""
        ...


@dataclass(frozen=True, slots=True)
class HostLinks:
    """What a host works with once the plugin is composed."""

    turns: TurnCoordinator
    shelf: MessageShelf
    verbosity: Callable[[ConversationKind], Verbosity]
    background: Callable[[str], str | None]
    bind: Signaller


@final
class ScriptedHost:
    """Implements the host's ports; write scripts before the message arrives that they answer.

    Attributes:
        received: every message that became a turn, in order.
        backgrounds: what each of these turns was told about the conversation's other messages.
        opened: the turn of each of these messages.
        sessions: what tools of each of these turns are told about it.
        failures: what scripts raised other than by ``fails()``.
        script_for: chooses the script of a message; the next one waiting by default.
        paused: conversations whose typing refresh is paused.
    """

    def __init__(self, threads: ThreadWatch | None = None) -> None:
        self.received: list[InboundMessage] = []
        self.backgrounds: list[str | None] = []
        self.opened: list[Turn] = []
        self.sessions: list[SessionSnapshot] = []
        self.paused: set[str] = set()
        self.failures: list[BaseException] = []
        self.script_for: Callable[[InboundMessage], Script] = lambda _: self._scripts.next()
        self._threads = threads
        self._scripts = Scripts()
        self._waiting: defaultdict[str, deque[InboundMessage]] = defaultdict(deque)
        self._running: dict[str, tuple[asyncio.Task[None], InboundMessage]] = {}
        self._playing: set[str] = set()
        self._interrupted: set[str] = set()
        self._links: HostLinks | None = None

    # --- scripts ----------------------------------------------------------------------------------------------------

    def says(self, text: str) -> Script:
        """Let the next turn answer ``text``; returns its script for more steps."""
        return self._scripts.new().says(text)

    def streams(self, *frames: str) -> Script:
        """Let the next turn stream its answer; the last frame is the whole text."""
        return self._scripts.new().streams(*frames)

    def calls_tool(self, tool: Callable[..., Any], /, *arguments: object, **options: object) -> Script:
        """Let the next turn call ``tool`` first."""
        return self._scripts.new().calls_tool(tool, *arguments, **options)

    def is_silent(self) -> Script:
        """Let the next turn choose silence."""
        return self._scripts.new().is_silent()

    def waits(self, seconds: float) -> Script:
        """Let the next turn work for some time first."""
        return self._scripts.new().waits(seconds)

    def fails(self) -> Script:
        """Let the next turn break off."""
        return self._scripts.new().fails()

    def runs(self, step: Step) -> Script:
        """Let the next turn do anything; see :meth:`Script.runs`."""
        return self._scripts.new().runs(step)

    def plays_first(self, step: Step) -> Callable[[], None]:
        """Let the very next turn do ``step`` alone, whatever else is scripted; returns what withdraws it."""
        script = Script().runs(step)
        self._scripts.first(script)
        return lambda: self._scripts.withdraw(script)

    # --- ports.host -------------------------------------------------------------------------------------------------

    def serve(self, turns: TurnCoordinator) -> None:
        """Take note of the turns, as the composition tells the host's queue; :meth:`work_with` says the rest."""

    def run_finished(self, key: str, host_session: str | None) -> bool:
        """A run of the session ended; nothing was steered into it, and no other agent runs inside it."""
        return True

    def work_with(self, links: HostLinks) -> None:
        """Say what turns run on."""
        self._links = links

    async def hand_over(self, message: InboundMessage) -> None:
        key = host_session_key(message.conversation_id, message.chat_kind, message.user_id)
        if message.kind == "command":
            return
        if message.intent == "stop":
            self._drop(key)
        self._waiting[key].append(message)
        if message.intent in {"stop", "interrupt"}:
            self._interrupt(key)
        self._advance(key)

    async def apply_signal(
        self, conversation_id: str, signal: Literal["interrupt", "stop_and_drop", "new_session"], user_id: str | None
    ) -> None:
        del user_id
        for key, (_, message) in list(self._running.items()):
            if message.conversation_id == conversation_id:
                if signal == "stop_and_drop":
                    self._drop(key)
                self._interrupt(key)

    def pause_typing(self, conversation_id: str) -> None:
        self.paused.add(conversation_id)

    def resume_typing(self, conversation_id: str) -> None:
        self.paused.discard(conversation_id)

    def queue_depth(self, session_key: str) -> int:
        return len(self._waiting[session_key])

    def supports_interleave(self) -> bool:
        return False

    def busy_conversations(self) -> set[str]:
        """Return the conversations in which something runs or waits."""
        running = (message for _, message in self._running.values())
        waiting = (message for lane in self._waiting.values() for message in lane)
        return {message.conversation_id for message in (*running, *waiting)}

    async def stop(self) -> None:
        """End every running turn as cancelled and forget what waits, as a stopping gateway does."""
        self._waiting.clear()
        tasks = [task for task, _ in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- lifecycles -------------------------------------------------------------------------------------------------

    def _drop(self, key: str) -> None:
        while self._waiting[key]:
            self._the_links().shelf.dropped(self._waiting[key].popleft())

    def _interrupt(self, key: str) -> None:
        if key not in self._running:
            return
        self._interrupted.add(key)
        if key in self._playing:  # a lifecycle that is only about to begin looks for itself
            self._running[key][0].cancel()

    def _advance(self, key: str) -> None:
        if key in self._running or not self._waiting[key]:
            return
        message = self._waiting[key].popleft()
        task = asyncio.get_running_loop().create_task(self._run(key, message), name=f"lifecycle {message.message_id}")
        self._running[key] = (task, message)
        task.add_done_callback(lambda ended: self._ended(key, ended))

    def _ended(self, key: str, task: asyncio.Task[None]) -> None:
        self._running.pop(key, None)
        self._playing.discard(key)
        self._interrupted.discard(key)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)
        self._advance(key)

    async def _run(self, key: str, message: InboundMessage) -> None:
        links = self._the_links()
        session = session_of(key, message)
        links.bind(session)
        self.sessions.append(session)
        self.backgrounds.append(links.background(message.conversation_id))
        self.received.append(message)
        turn = await links.turns.open(start_of(key, message, links.verbosity))
        current_turn.set(turn)
        self.opened.append(turn)
        links.shelf.started(message)
        outcome: Outcome = "success"
        self._playing.add(key)
        try:
            await self._play(key, turn, self.script_for(message))
        except asyncio.CancelledError:
            outcome = "cancelled"
            if key not in self._interrupted:
                raise
        except Exception as error:  # noqa: BLE001 - whatever a script raises, the lifecycle completes
            outcome = "failure"
            if not isinstance(error, ToolError):
                self.failures.append(error)
        finally:
            self._playing.discard(key)
            await links.turns.complete(turn, outcome)

    async def _play(self, key: str, turn: Turn, script: Script) -> None:
        if key in self._interrupted:
            raise asyncio.CancelledError
        stage = ScriptedTurn(self._the_links().turns, turn, self._threads)
        for step in script.steps:
            await step(stage)

    def _the_links(self) -> HostLinks:
        if self._links is None:
            raise RuntimeError("the plugin was not composed yet")
        return self._links


@final
class ScriptedTurn:
    """The running turn as a script sees it; implements :class:`canon_hermes_plugin.testing.script.Stage`."""

    def __init__(self, turns: TurnCoordinator, turn: Turn, threads: ThreadWatch | None) -> None:
        self.turn = turn
        self._turns = turns
        self._threads = threads
        self._calls = 0

    async def says(self, text: str) -> None:
        self._turns.answer_confirmed(self.turn, text)
        await self._turns.text(self.turn, HostText(self.turn.conversation_id, text, notify=True))

    async def streams(self, frames: tuple[str, ...]) -> None:
        chat = self.turn.conversation_id
        first = await self._turns.text(self.turn, HostText(chat, frames[0] + _CURSOR, expect_edits=True))
        for frame in frames[1:]:
            growing = HostText(chat, frame + _CURSOR, finalize=False, bubble=first.message_id)
            await self._turns.text(self.turn, growing)
        self._turns.answer_confirmed(self.turn, frames[-1])
        # The host finalizes twice: from its stream consumer and from its delivery.
        for _ in range(2):
            final_text = HostText(chat, frames[-1], finalize=True, bubble=first.message_id)
            await self._turns.text(self.turn, final_text)

    async def calls_tool(self, name: str, tool: Callable[[], Any]) -> None:
        self._calls += 1
        call_id = f"call-{self._calls}"
        self._turns.tool_started(self.turn, ToolStart(name, call_id))
        status = "error"
        try:
            await self._on_thread(tool)
            status = "ok"
        finally:
            self._turns.tool_finished(self.turn, ToolEnd(name, call_id, status=status))

    async def is_silent(self) -> None:
        self._turns.silence(self.turn)

    async def waits(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _on_thread(self, tool: Callable[[], Any]) -> None:
        context = contextvars.copy_context()
        watch = self._threads
        worker = watch.thread_begins(context) if watch is not None else None
        thread = asyncio.get_running_loop().run_in_executor(None, context.run, tool)

        def ended(thread: asyncio.Future[Any]) -> None:
            if not thread.cancelled():
                thread.exception()  # a run that was interrupted meanwhile does not ask for it
            if watch is not None:
                watch.thread_ends(worker)

        thread.add_done_callback(ended)
        await asyncio.shield(thread)  # an interrupted run leaves its thread at work


def session_of(key: str, message: InboundMessage) -> SessionSnapshot:
    """Return what the host tells tools about the turn of ``message``."""
    return SessionSnapshot(
        platform="canon",
        conversation_id=message.conversation_id,
        user_id=message.user_id,
        user_name=message.user_name,
        session_id=f"session-of-{message.conversation_id}",
        session_key=key,
        message_id=message.message_id,
    )


def start_of(key: str, message: InboundMessage, verbosity: Callable[[ConversationKind], Verbosity]) -> TurnStart:
    """Return what the adapter opens a turn with."""
    return TurnStart(
        conversation_id=message.conversation_id,
        session_key=key,
        kind=message.chat_kind,
        message_id=None if message.synthetic else message.message_id,
        responder=message.user_id,
        verbosity=verbosity(message.chat_kind),
    )
