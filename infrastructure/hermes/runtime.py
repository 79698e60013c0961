"""What runs while the platform is connected: proof of the environment, identity, the stream, status and signals.

Decides when the connection counts as up and when it is given up for good. A Canon that cannot be reached is this
module's to wait for, not the host's (field row 100); a refused key is told to the host. Knows nothing of messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, final

from canon_hermes_plugin.domain.reconnect import Backoff, ConnectionEnd
from canon_hermes_plugin.infrastructure.hermes.descriptor import RUNTIME_DESCRIPTOR
from canon_hermes_plugin.ports.canon import AgentIdentity, CanonApi
from canon_hermes_plugin.ports.canon_stream import CanonStream, EventHandler
from canon_hermes_plugin.ports.errors import AuthenticationError, CanonError, CanonPluginError
from canon_hermes_plugin.ports.time import Clock, IdSource

_LOG = logging.getLogger(__name__)

STATUS_EVERY = 30.0
"""Seconds between two status publications (turns §2.5)."""
SIGNALS_EVERY = 15.0
"""Seconds between two signal polls; the stream's push is the usual way (turns §2.6)."""
SIGNALS_AT_ONCE = 4
"""Conversations polled side by side."""
PLACE_EVERY = 30.0
"""Seconds between two saves of the place on the stream besides those that messages cause."""
FIRST_PLACE_EVERY = 1.0
"""Seconds between two looks for the place while none is known."""
CONNECT_PATIENCE = 8.0
"""Seconds the host's ``connect`` waits for Canon before the work goes on in the background; the host waits 30."""

GaveUp = Callable[[CanonError], None]


class Listener(EventHandler, Protocol):
    """Takes the stream's events over and knows who we are and where."""

    def adopt_identity(self, identity: AgentIdentity) -> None:
        """Remember who the key belongs to."""
        ...

    async def refresh_conversations(self) -> None:
        """Read the conversation list."""
        ...

    async def consume_signal(self, conversation_id: str) -> None:
        """Take the conversation's pending runtime signal, if there is one, and apply it."""
        ...

    def preparing(self) -> Iterable[str]:
        """Return the conversations in which a message is on its way to the host, or an announced signal to us."""
        ...


class Places(Protocol):
    """Keeps the place on the stream for the next process. Neither method raises."""

    async def restore(self) -> None:
        """Read on where the last process left off; only the first call does anything."""
        ...

    async def save(self) -> None:
        """Save the present place."""
        ...


@dataclass(frozen=True, slots=True)
class Links:
    """Canon's two sides and what listens to them.

    Attributes:
        api: the request side.
        stream: the event side.
        listener: takes events over.
        busy_conversations: returns the conversations with open turns or waiting messages: only those are polled (H36),
            and those the listener prepares a message of.
        on_status: runs before each status publication, for example the scan of approval receipts.
        on_stop: runs when the connection ends; idempotent.
        on_open: runs whenever Canon has accepted the key, before anything is heard; returns at once.
        places: keeps the place on the stream.
    """

    api: CanonApi
    stream: CanonStream
    listener: Listener
    busy_conversations: Callable[[], Iterable[str]]
    on_status: Callable[[], Awaitable[None]]
    on_stop: Callable[[], Awaitable[None]]
    on_open: Callable[[], None]
    places: Places


@dataclass(slots=True)
class OwnIdentity:
    """Who the key belongs to, as far as Canon told."""

    known: AgentIdentity = field(default_factory=lambda: AgentIdentity(None))

    def owner_id(self) -> str | None:
        """Return the agent's owner."""
        return self.known.owner_id

    def agent_id(self) -> str | None:
        """Return the agent's own id."""
        return self.known.agent_id


@final
class CanonRuntime:
    """Keeps the agent connected from :meth:`start` to :meth:`stop`.

    Attributes:
        links: Canon and its listeners.
        clock: spends the pauses.
        ids: draws the jitter of the pauses.
        identity: filled in at each connect.
    """

    def __init__(self, links: Links, clock: Clock, ids: IdSource, identity: OwnIdentity) -> None:
        self._links = links
        self._ids = ids
        self._identity = identity
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._proven = False
        self._gave_up: GaveUp | None = None
        self._owner: object = None

    @property
    def proven(self) -> bool:
        """Whether environment and key were proven in this process: before that, nothing may be sent."""
        return self._proven

    def serves(self, owner: object) -> bool:
        """Whether ``owner`` was the last one to start this runtime: an older adapter must not stop a newer one's."""
        return self._owner is owner

    async def start(self, owner: object, gave_up: GaveUp, *, is_reconnect: bool = False) -> None:
        """Connect; returns when Canon accepted the key, or when it could not be reached for a while.

        In the latter case the work goes on in the background until Canon answers.

        Raises:
            CanonError: Canon refuses the key, or another environment answers; permanent.
        """
        await self.stop()
        self._owner = owner
        self._gave_up = gave_up
        _LOG.info("connecting to Canon%s", " again" if is_reconnect else "")
        opening = asyncio.get_running_loop().create_task(self._open(), name="canon connect")
        try:
            done, _ = await asyncio.wait({opening}, timeout=CONNECT_PATIENCE)
        except asyncio.CancelledError:
            opening.cancel()
            raise
        if done:
            opening.result()
            self._listen()
        else:
            _LOG.warning("Canon does not answer yet; still trying in the background")
            self._run(self._listen_after(opening), "canon connect later")

    async def stop(self) -> None:
        """Stop everything; idempotent, also from one of the own tasks."""
        await self._links.stream.stop()
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        if self._proven:
            await self._links.places.save()
        await self._links.on_stop()
        # Last: what ended above may still have spoken. The next start opens a new pool (turns §11.4).
        await self._links.api.close()

    async def _open(self) -> None:
        """Prove environment and key, however long it takes; only permanent refusals end it."""
        backoff = Backoff()
        while True:
            try:
                await self._prove()
            except CanonError as error:
                if not error.retryable:
                    raise
                _LOG.warning("Canon is not reachable: %s", error)
            else:
                return
            backoff, pause = backoff.after(ConnectionEnd("failed"), self._ids.jitter())
            await self._clock.sleep(pause or 0.0)

    async def _prove(self) -> None:
        await self._links.api.verify()
        identity = await self._links.api.identify()
        self._identity.known = identity
        self._links.listener.adopt_identity(identity)
        await self._links.listener.refresh_conversations()
        await self._links.places.restore()
        _LOG.info("connected as agent %s", identity.agent_id)
        self._proven = True

    async def _listen_after(self, opening: asyncio.Task[None]) -> None:
        try:
            await opening
        except CanonError as error:
            self._give_up(error)
        else:
            self._listen()

    def _listen(self) -> None:
        self._links.on_open()
        self._run(self._read_stream(), "canon stream")
        self._run(self._publish_status(), "canon status")
        self._run(self._poll_signals(), "canon signals")
        self._run(self._keep_place(), "canon place")

    async def _read_stream(self) -> None:
        try:
            await self._links.stream.run(self._links.listener)
        except AuthenticationError as error:
            self._give_up(error)

    async def _publish_status(self) -> None:
        while True:
            try:
                # First, so that a failing publication cannot starve it (interactions §9.8).
                await self._links.on_status()
                await self._links.api.publish_status(RUNTIME_DESCRIPTOR)
            except CanonPluginError as error:
                _LOG.debug("runtime status not published: %s", error)
            await self._clock.sleep(STATUS_EVERY)

    async def _poll_signals(self) -> None:
        gate = asyncio.Semaphore(SIGNALS_AT_ONCE)

        async def poll(conversation_id: str) -> None:
            async with gate:
                try:
                    await self._links.listener.consume_signal(conversation_id)
                except CanonError as error:
                    _LOG.debug("signal of %s not consumed: %s", conversation_id, error)

        while True:
            busy = dict.fromkeys((*self._links.busy_conversations(), *self._links.listener.preparing()))
            await asyncio.gather(*(poll(conversation_id) for conversation_id in busy))
            await self._clock.sleep(SIGNALS_EVERY)

    async def _keep_place(self) -> None:
        """Note that Canon was heard of, whether or not anybody writes; a new agent's very first place at once."""
        while True:
            known = self._links.stream.health().cursor is not None
            if known:
                await self._links.places.save()
            await self._clock.sleep(PLACE_EVERY if known else FIRST_PLACE_EVERY)

    def _give_up(self, error: CanonError) -> None:
        _LOG.error("Canon refuses this agent: %s", error)
        if self._gave_up is not None:
            self._gave_up(error)

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("%s ended: %s", task.get_name(), type(error).__name__)
