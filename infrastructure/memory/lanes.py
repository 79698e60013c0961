"""The twin of the host's sessions: one lifecycle per message, first in, first out in each session (hermes-host §3.7).

Decides what happens to a message that meets a busy session and what a control signal reaches, as the plugin's queue
does on the real host. Refuses to know what a turn does: whoever runs the lifecycles says that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, final

from canon_hermes_plugin.domain.inbound.intents import MAX_WAITING, reached
from canon_hermes_plugin.domain.session_key import host_session_key
from canon_hermes_plugin.ports.canon import SignalKind
from canon_hermes_plugin.ports.errors import CanonError
from canon_hermes_plugin.ports.host import InboundMessage

_NEW_SESSION = ("/new", "/reset")
_ENDING = ("/stop", *_NEW_SESSION)
"""Commands that end a session's run."""


class InterruptedRunError(RuntimeError):
    """Somebody interrupted the run: what it had to say must not be published."""


@final
class Run:
    """One lifecycle on its way through a session.

    Attributes:
        session_key: the session's routing key.
        message: what the turn is about.
        interrupted: somebody ended it.
        begun: the agent's part began.
        joined: further messages it took in.
    """

    def __init__(self, session_key: str, message: InboundMessage) -> None:
        self.session_key = session_key
        self.message = message
        self.interrupted = False
        self.begun = False
        self.joined: list[InboundMessage] = []
        self._playing: asyncio.Task[Any] | None = None

    @property
    def live(self) -> bool:
        """Whether the agent is at work, so that it could take in a further message."""
        return self._playing is not None and not self.interrupted

    async def play(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the agent's part of the lifecycle: the only part that an interrupt ends.

        Raises:
            InterruptedRunError: it was ended, perhaps before it began.
        """
        task = self._playing = asyncio.current_task()
        self.begun = True
        try:
            await (_broken_off(work) if self.interrupted else work)
        except asyncio.CancelledError:
            if not self.interrupted or task is None:
                raise
            task.uncancel()
            raise InterruptedRunError from None
        finally:
            self._playing = None
            self.joined.clear()

    def interrupt(self) -> None:
        """End the agent's part, now or as soon as it begins."""
        if self._playing is not None and not self.interrupted:
            self._playing.cancel()
        self.interrupted = True


class Lifecycles(Protocol):
    """Whoever runs the turns."""

    async def run(self, run: Run) -> None:
        """Run one lifecycle from start to completion, the agent's part of it in :meth:`Run.play`."""
        ...

    def queue_changed(self, run: Run) -> None:
        """The number of messages waiting behind ``run`` changed."""
        ...

    def took_in(self, run: Run, message: InboundMessage) -> None:
        """``message`` was put into the running ``run``."""
        ...

    def dropped(self, message: InboundMessage, *, refused: bool) -> None:
        """``message`` will never run: somebody dropped the queue, or it was full and the message is ``refused``."""
        ...


class EndlessLifecycles:
    """Turns that do nothing and never end by themselves."""

    async def run(self, run: Run) -> None:
        await run.play(_forever())

    def queue_changed(self, run: Run) -> None:
        return

    def took_in(self, run: Run, message: InboundMessage) -> None:
        return

    def dropped(self, message: InboundMessage, *, refused: bool) -> None:
        return


@dataclass(slots=True)
class _Session:
    """One session: what runs in it and what waits."""

    key: str
    waiting: deque[InboundMessage] = field(default_factory=deque[InboundMessage])
    run: Run | None = None
    task: asyncio.Task[None] | None = None

    @property
    def newest(self) -> InboundMessage:
        """The message it works on, or else the next one."""
        return self.run.message if self.run is not None else self.waiting[0]


@final
class MemoryLanes:
    """Implements ``HostInbox`` and ``HostLanes`` of :mod:`canon_hermes_plugin.ports.host` on the running event loop.

    Attributes:
        interleave: whether a running turn takes in a message that is meant for it.
        per_user: whether each user of a group has a session of their own.
        owner_id: returns the agent's owner once known.
        paused: conversations whose typing refresh is paused.
        renewed: keys of the sessions that were begun anew, in order.
        failures: what lifecycles raised.
    """

    def __init__(self, lifecycles: Lifecycles | None = None, *, interleave: bool = True, per_user: bool = True) -> None:
        self.interleave = interleave
        self.per_user = per_user
        self.owner_id: Callable[[], str | None] = lambda: None
        self.paused: set[str] = set()
        self.renewed: list[str] = []
        self.failures: list[BaseException] = []
        self._lifecycles: Lifecycles = lifecycles or EndlessLifecycles()
        self._sessions: dict[str, _Session] = {}
        self._groups: set[str] = set()
        self._connected = True

    def connect(self) -> None:
        """The host listens again: what waited for it starts."""
        self._connected = True
        for session in list(self._sessions.values()):
            self._advance(session)

    def disconnect(self) -> None:
        """The host is between two connections: what runs goes on, nothing starts."""
        self._connected = False

    async def stop(self) -> None:
        """End every running turn as cancelled and start nothing any more, as a stopping gateway does."""
        self.disconnect()
        tasks = [session.task for session in self._sessions.values() if session.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- what the composition asks of the host's queue --------------------------------------------------------------

    def serve(self, turns: object) -> None:
        """Take note of the turns the queue steers: whoever runs the lifecycles knows them."""

    def run_recorded(self, key: str) -> None:
        """A run of the session asks its model; here it began long before."""

    def run_finished(self, key: str, host_session: str | None) -> bool:
        """A run of the session ended; it left nothing unread, and no other agent runs inside it."""
        return True

    def busy_conversations(self) -> set[str]:
        """Return the conversations in which something runs or waits."""
        return {session.newest.conversation_id for session in self._sessions.values()}

    # --- ports.host.HostInbox ---------------------------------------------------------------------------------------

    async def hand_over(self, message: InboundMessage) -> None:
        key = host_session_key(message.conversation_id, message.chat_kind, message.user_id, per_user=self.per_user)
        if not self._connected:
            raise CanonError("the host is not connected", retryable=True)
        if message.chat_kind == "group":
            self._groups.add(message.conversation_id)
        session = self._sessions.get(key)
        if message.kind == "command":
            self._command(key, message.text)
        elif session is None:
            session = self._sessions[key] = _Session(key, deque([message]))
            self._advance(session)
        else:
            self._meet(session, message)

    async def apply_signal(
        self, conversation_id: str, signal: SignalKind, user_id: str | None, spare: Collection[str] = frozenset()
    ) -> None:
        here = [item for item in self._sessions.values() if item.newest.conversation_id == conversation_id]
        sessions = reached(here, lambda session: session.newest.user_id, sender=user_id, owner=self.owner_id())
        for session in sessions:
            if signal == "stop_and_drop":
                self._drop(session, spare)
            if session.run is None or session.run.message.message_id not in spare:
                self._command(session.key, "/new" if signal == "new_session" else "/stop")
            self._advance(session)
        if signal == "new_session" and not sessions and user_id is not None:
            kind: Literal["group", "direct"] = "group" if conversation_id in self._groups else "direct"
            self.renewed.append(host_session_key(conversation_id, kind, user_id, per_user=self.per_user))

    def waiting(self) -> frozenset[str]:
        waiting = (message for session in self._sessions.values() for message in session.waiting)
        runs = [session.run for session in self._sessions.values() if session.run is not None]
        unbegun = (run.message for run in runs if not run.begun)
        joined = (message for run in runs for message in run.joined)
        return frozenset(message.message_id for message in (*waiting, *unbegun, *joined) if message.message_id)

    # --- ports.host.HostLanes ---------------------------------------------------------------------------------------

    def pause_typing(self, conversation_id: str) -> None:
        self.paused.add(conversation_id)

    def resume_typing(self, conversation_id: str) -> None:
        self.paused.discard(conversation_id)

    def queue_depth(self, session_key: str) -> int:
        session = self._sessions.get(session_key)
        return len(session.waiting) if session is not None else 0

    def supports_interleave(self) -> bool:
        return self.interleave

    # --- inside -----------------------------------------------------------------------------------------------------

    def _command(self, key: str, text: str) -> None:
        """Carry out a command of the host: at once, and never as a turn."""
        name, session = text.split(maxsplit=1)[0].lower(), self._sessions.get(key)
        if name in _NEW_SESSION:
            self.renewed.append(key)
        if name in _ENDING and session is not None and session.run is not None:
            session.run.interrupt()

    def _meet(self, session: _Session, message: InboundMessage) -> None:
        """Decide about a message for a busy session (turns §1.9)."""
        run = session.run
        joins = message.intent == "interleave" and self.interleave and bool(message.text.strip())
        if joins and run is not None and run.live:
            run.joined.append(message)
            self._lifecycles.took_in(run, message)
            return
        if message.intent == "stop":
            self._drop(session)
        if len(session.waiting) >= MAX_WAITING and message.synthetic:
            raise CanonError("the session's queue is full", retryable=True)
        if len(session.waiting) >= MAX_WAITING:
            self._lifecycles.dropped(message, refused=True)
            return
        session.waiting.append(message)
        self._recount(session)
        if run is not None and message.intent in {"stop", "interrupt"}:
            run.interrupt()
        self._advance(session)

    def _drop(self, session: _Session, spare: Collection[str] = frozenset()) -> None:
        """Drop what people wrote; what the plugin made, such as an approval's decision, is told all the same."""
        waiting = list(session.waiting)
        session.waiting = deque(message for message in waiting if message.synthetic or message.message_id in spare)
        for message in waiting:
            if message not in session.waiting:
                self._lifecycles.dropped(message, refused=False)
        self._recount(session)

    def _recount(self, session: _Session) -> None:
        if session.run is not None:
            self._lifecycles.queue_changed(session.run)

    def _advance(self, session: _Session) -> None:
        """Start the next message unless one runs; forget the session when nothing is left in it."""
        if session.run is not None:
            return
        if not session.waiting:
            self._sessions.pop(session.key, None)
        elif self._connected:
            run = session.run = Run(session.key, session.waiting.popleft())
            task = session.task = asyncio.get_running_loop().create_task(
                self._lifecycles.run(run), name=f"lifecycle {run.message.message_id}"
            )
            task.add_done_callback(lambda ended: self._ended(session, ended))

    def _ended(self, session: _Session, task: asyncio.Task[None]) -> None:
        session.run = session.task = None
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, InterruptedRunError):
            self.failures.append(error)
        self._advance(session)


async def _forever() -> None:
    await asyncio.Event().wait()


async def _broken_off(work: Coroutine[Any, Any, None]) -> None:
    work.close()
    raise InterruptedRunError
