"""A scripted stand-in for Hermes: starts a turn for each message, plays a script in it, and completes it.

It decides what a lifecycle does; which message starts one, and when, decide its lanes. It knows neither models nor
tools; scripts say what they would have done.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, final

from canon_hermes_plugin.domain.inbound.intents import QUEUE_FULL
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.coordinator import TurnCoordinator
from canon_hermes_plugin.domain.turns.model import HostText, Outcome, ToolEnd, ToolStart, TurnStart, Verbosity
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.memory.lanes import InterruptedRunError, MemoryLanes, Run
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

    def changed(self) -> None:
        """What ran with it has ended."""
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
    owner_id: Callable[[], str | None]


@final
class ScriptedHost:
    """Runs the turns of its lanes; write scripts before the message arrives that they answer.

    Attributes:
        lanes: the host's sessions, which implement its ports; they know what runs and what waits.
        received: every message that became a turn, in order.
        backgrounds: what each of these turns was told about the conversation's other messages.
        opened: the turn of each of these messages.
        sessions: what tools of each of these turns are told about it.
        interleaved: every message that was put into a running turn, in order.
        script_for: chooses the script of a message; the next one waiting by default.
    """

    def __init__(self, threads: ThreadWatch | None = None) -> None:
        self.lanes = MemoryLanes(self)
        self.received: list[InboundMessage] = []
        self.backgrounds: list[str | None] = []
        self.opened: list[Turn] = []
        self.sessions: list[SessionSnapshot] = []
        self.interleaved: list[InboundMessage] = []
        self.script_for: Callable[[InboundMessage], Script] = lambda _: self._scripts.next()
        self._threads = threads
        self._scripts = Scripts()
        self._played: list[Script] = []
        self._turns: dict[Run, Turn] = {}
        self._notices: set[asyncio.Task[Any]] = set()
        self._links: HostLinks | None = None

    @property
    def failures(self) -> list[BaseException]:
        """What scripts and their tools raised other than by :meth:`fails`, in order; take out what is meant to be."""
        return self.lanes.failures

    def untold(self) -> list[Exception]:
        """Return the :attr:`failures` that no script told its test by :attr:`Script.results`."""
        told = [script.told for script in self._played]
        return [item for item in self.failures if isinstance(item, Exception) and item not in told]

    def unused(self) -> list[str]:
        """Say which scripts no turn took, one line each."""
        return self._scripts.unused()

    # --- scripts ----------------------------------------------------------------------------------------------------

    def says(self, text: str) -> Script:
        """Let the next turn answer ``text``; returns its script for more steps."""
        return self._scripts.add(Script().says(text))

    def streams(self, *frames: str) -> Script:
        """Let the next turn stream its answer; the last frame is the whole text."""
        return self._scripts.add(Script().streams(*frames))

    def calls_tool(self, tool: Callable[..., Any], /, *arguments: object, **options: object) -> Script:
        """Let the next turn call ``tool`` first."""
        return self._scripts.add(Script().calls_tool(tool, *arguments, **options))

    def is_silent(self) -> Script:
        """Let the next turn choose silence."""
        return self._scripts.add(Script().is_silent())

    def waits(self, seconds: float) -> Script:
        """Let the next turn work for some time first."""
        return self._scripts.add(Script().waits(seconds))

    def fails(self) -> Script:
        """Let the next turn break off."""
        return self._scripts.add(Script().fails())

    def runs(self, step: Step) -> Script:
        """Let the next turn do anything; see :meth:`Script.runs`."""
        return self._scripts.add(Script().runs(step))

    def plays_first(self, step: Step) -> Callable[[], None]:
        """Let the very next turn do ``step`` alone, whatever else is scripted; returns what withdraws it."""
        script = Script().runs(step)
        self._scripts.first(script)
        return lambda: self._scripts.withdraw(script)

    # --- lifecycles -------------------------------------------------------------------------------------------------

    def work_with(self, links: HostLinks) -> None:
        """Say what turns run on."""
        self._links = links
        self.lanes.owner_id = links.owner_id

    async def run(self, run: Run) -> None:
        """Run one lifecycle (see :class:`canon_hermes_plugin.infrastructure.memory.lanes.Lifecycles`)."""
        links, message = self._the_links(), run.message
        session = session_of(run.session_key, message)
        links.bind(session)
        self.sessions.append(session)
        self.backgrounds.append(links.background(message.conversation_id))
        self.received.append(message)
        turn = self._turns[run] = await links.turns.open(start_of(run.session_key, message, links.verbosity))
        current_turn.set(turn)
        self.opened.append(turn)
        links.shelf.started(message)
        outcome: Outcome = "success"
        try:
            await run.play(self._play(turn, self.script_for(message)))
        except (InterruptedRunError, asyncio.CancelledError) as end:
            outcome = "cancelled"
            if isinstance(end, asyncio.CancelledError):
                raise
        except ToolError:
            outcome = "failure"
        except Exception:
            outcome = "failure"
            raise
        finally:
            del self._turns[run]
            links.shelf.changed()
            await links.turns.complete(turn, outcome)

    def queue_changed(self, run: Run) -> None:
        """Let people see at once how many messages wait."""
        if run in self._turns:
            self._the_links().turns.queue_changed(self._turns[run])

    def took_in(self, run: Run, message: InboundMessage) -> None:
        """A further message joins the running turn: it left the shelf, and it deserves an answer (turns §7.4)."""
        links = self._the_links()
        self.interleaved.append(message)
        links.shelf.started(message)
        if message.user_id is not None:
            links.turns.lift_silence(self._turns[run])

    def dropped(self, message: InboundMessage, *, refused: bool) -> None:
        """A message will never run; who sent a refused one is told."""
        links = self._the_links()
        links.shelf.dropped(message)
        if refused:
            notice = HostText(message.conversation_id, QUEUE_FULL, notify=True, reply_to=message.message_id)
            task = asyncio.get_running_loop().create_task(links.turns.text(None, notice), name="refuse a message")
            self._notices.add(task)
            task.add_done_callback(self._notices.discard)

    async def _play(self, turn: Turn, script: Script) -> None:
        self._played.append(script)
        await script.play(ScriptedTurn(self._the_links().turns, turn, self._threads))

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
