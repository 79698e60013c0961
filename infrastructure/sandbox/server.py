"""``LoopbackCanon``: the stand-in as one object that a test or the ``sandbox`` command holds.

It serves both of Canon's bases on one loopback port, from a thread with its own event loop, so it can be used from
synchronous and asynchronous code alike::

    with LoopbackCanon() as canon:
        canon.say("conv_direct", "user_dana", "hello")
        canon.fault("send", kind="drop", after=True)          # the next send is stored, its answer is lost
        canon.wait_for(lambda c: c.finals("conv_direct"), timeout=30)

Every blocking ``wait_for`` has the twin ``until`` for coroutines. Decides nothing about the wire.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

import uvicorn
from canon_hermes_plugin.infrastructure.sandbox.events import Framing, frame
from canon_hermes_plugin.infrastructure.sandbox.faults import Fault
from canon_hermes_plugin.infrastructure.sandbox.interactions import InteractionDesk
from canon_hermes_plugin.infrastructure.sandbox.media import MediaShelf, attachment
from canon_hermes_plugin.infrastructure.sandbox.records import (
    DurableMessage,
    Json,
    Logs,
    Person,
    RequestRecord,
    SandboxIdentity,
)
from canon_hermes_plugin.infrastructure.sandbox.registration import RegistrationDesk
from canon_hermes_plugin.infrastructure.sandbox.routes import Desks, build_app
from canon_hermes_plugin.infrastructure.sandbox.state import SIGNALS, CanonState, Policy
from canon_hermes_plugin.infrastructure.sandbox.verbs import VerbDesk
from canon_hermes_plugin.infrastructure.sandbox.wire import AbortableProtocol, Wire

_MIME = re.compile(r"[\w.+-]+/[\w.+-]+( *;.*)?", re.ASCII)
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
DIRECT = "conv_direct"
GROUP = "conv_group"

Result = TypeVar("Result")


class LoopbackServer:
    """Runs an ASGI application on a loopback port from a daemon thread. Refuses every other address."""

    def __init__(self, app: Any, *, host: str = "127.0.0.1", port: int = 0) -> None:  # noqa: ANN401 - any ASGI app
        if host not in LOOPBACK_HOSTS:
            raise ValueError(f"only loopback addresses are served ({', '.join(LOOPBACK_HOSTS)}), not {host!r}")
        self._app, self._host, self._port, self._started = app, host, port, False
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def base_url(self) -> str:
        """The address it serves.

        Raises:
            RuntimeError: it was never started.
        """
        if not self._started:
            raise RuntimeError("it does not serve yet: enter it first, as in `with LoopbackCanon() as canon:`")
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    def start(self) -> None:
        """Bind and serve; returns when connections are accepted.

        Raises:
            OSError: the port is taken.
        """
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listener = socket.create_server((self._host, self._port), family=family)
        # Accepted connections inherit it; asyncio sets it only where the protocol is named. Without it each answer's
        # body waits for the acknowledgement of its head, 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._port, self._started = listener.getsockname()[1], True
        config = uvicorn.Config(
            self._app, http=AbortableProtocol, loop="asyncio", lifespan="off", log_config=None, access_log=False
        )
        config.timeout_graceful_shutdown = 1
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close every connection and wait for the thread; idempotent."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(10)
        self._server = self._thread = None


class Served:
    """Something that serves while it is entered. ``_server`` is its server."""

    _server: LoopbackServer

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start serving."""
        self._server.start()

    def stop(self) -> None:
        """Stop serving."""
        self._server.stop()


class LoopbackCanon(Served):
    """The stand-in for Canon. Every method may be called from any thread.

    ``interactions`` (inputs, cards, approvals), ``verbs`` (admission, contact requests), ``registrations`` and
    ``media`` are its desks: what people do there, and their switches.
    """

    def __init__(
        self,
        *,
        identity: SandboxIdentity | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        heartbeat: float = 15.0,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self.state = CanonState(identity or SandboxIdentity())
        if clock is not None:
            self.state.clock = clock
        self.media = MediaShelf()
        self.interactions = InteractionDesk(self.state)
        self.verbs = VerbDesk(self.state)
        self.registrations = RegistrationDesk(self.state)
        self.wire = Wire(self.state, heartbeat=heartbeat)
        desks = Desks(self.media, self.interactions, self.verbs, self.registrations)
        self._server = LoopbackServer(build_app(self.wire, desks), host=host, port=port)
        owner, dana = self.identity.owner.id, "user_dana"
        self.state.add_conversation(DIRECT, dana, name="Dana")
        self.state.add_conversation(GROUP, owner, dana, kind="group", name="Ops")

    def stop(self) -> None:
        """Stop serving; the store can still be read."""
        with self.state.lock:
            self.state.events.end(clean=True)
        self._server.stop()

    # What it is ------------------------------------------------------------------------------------------------------

    @property
    def base_url(self) -> str:
        """The address of both bases."""
        return self._server.base_url

    @property
    def identity(self) -> SandboxIdentity:
        """Environment, key, agent and owner."""
        return self.state.identity

    @property
    def policy(self) -> Policy:
        """The behaviour switches."""
        return self.state.policy

    @property
    def logs(self) -> Logs:
        """The logs that are kept apart; read them after a ``wait_for``."""
        return self.state.logs

    def environment(self) -> dict[str, str]:
        """Return the environment variables that point the plugin here in direct-key mode (canon-wire §11.2)."""
        return {
            "CANON_API_KEY": self.identity.api_key,
            "CANON_ENVIRONMENT_ID": self.identity.environment_id,
            "CANON_BASE_URL": self.base_url,
            "CANON_STREAM_URL": self.base_url,
            "CANON_RTDB_URL": "http://localhost:9",
            "CANON_FIREBASE_API_KEY": "loopback-web-key",
        }

    # What people do --------------------------------------------------------------------------------------------------

    def add_conversation(self, conversation_id: str, *members: str, kind: str = "direct", name: str = "") -> None:
        """Create or replace a conversation of ``kind`` ``direct`` or ``group``."""
        with self.state.lock:
            self.state.add_conversation(conversation_id, *members, kind=kind, name=name)

    def add_person(self, person: Person) -> None:
        """Make somebody known, so that :meth:`say` can name them by id alone."""
        with self.state.lock:
            self.state.people[person.id] = person

    def say(self, conversation_id: str, user_id: str, text: str, *, payload: Json | None = None, **fields: Any) -> str:  # noqa: ANN401 - any message field
        """Send a message as a person and return its id.

        ``fields`` are message fields in their wire names (``metadata``, ``attachments``, ``mentions``, ``replyTo``,
        ``id`` …); ``payload`` overrides keys of the event around the message (``turnDispatch``, ``provenance``,
        ``behavior`` …; ``None`` removes a key).

        Raises:
            ValueError: an unknown conversation, or somebody who is neither a member of it nor known.
        """
        with self.state.lock:
            person = self.state.sender(conversation_id, user_id)
            message = self.state.store_inbound(conversation_id, person, {"text": text, **fields}, payload or {})
            self.state.lock.notify_all()
            return message.id

    def signal(self, conversation_id: str, signal: str, user_id: str | None = None) -> None:
        """Leave a runtime signal: ``interrupt``, ``stop_and_drop`` or ``new_session``."""
        if signal not in SIGNALS:
            raise ValueError(f"unknown signal {signal!r}")
        with self.state.lock:
            self.state.set_signal(conversation_id, signal, user_id)
            self.state.lock.notify_all()

    def host_file(self, data: bytes, mime_type: str, file_name: str = "") -> Json:
        """Host a file and return the attachment object for :meth:`say`.

        Raises:
            TypeError: ``data`` is not bytes.
            ValueError: ``mime_type`` is no type and subtype, such as ``application/pdf``.
        """
        if not isinstance(cast("object", data), bytes | bytearray | memoryview):
            raise TypeError(f"a file's data is bytes, not {type(data).__name__}")
        if not _MIME.fullmatch(mime_type):
            raise ValueError(f"{mime_type!r} is no MIME type; one looks like application/pdf")
        with self.state.lock:
            return attachment(self.media.put(bytes(data), mime_type, file_name), self.base_url)

    def advance(self, seconds: float) -> None:
        """Move the server's clock forward (expiries, tombstones)."""
        with self.state.lock:
            self.state.clock_offset_ms += round(seconds * 1000)
            self.state.lock.notify_all()

    # What goes wrong -------------------------------------------------------------------------------------------------

    def fault(self, route: str, **how: Any) -> None:  # noqa: ANN401 - the fields of Fault
        """Queue a fault for a route; ``how`` are the fields of :class:`.faults.Fault`.

        Raises:
            ValueError: no such route, or no such ``kind`` of fault; the text names the known ones.
            TypeError: no such field.
        """
        with self.state.lock:
            self.wire.faults.add(route, Fault(**how))

    def clear_faults(self, route: str | None = None) -> None:
        """Forget the queued faults of one route, or of all."""
        with self.state.lock:
            self.wire.faults.clear(route)

    def emit(self, name: str, data: Json | str) -> str:
        """Put any event on the stream and return its id. A string payload is sent as it is."""
        with self.state.lock:
            event = self.state.events.append(name, data)
            self.state.lock.notify_all()
            return event.id

    def emit_raw(self, data: bytes) -> None:
        """Write bytes to the open streams, outside the log."""
        with self.state.lock:
            self.state.events.raw(data)

    def emit_nameless(self, data: Json, frame_id: str | None = None) -> None:
        """Write a frame without ``event``, outside the log."""
        self.emit_raw(frame(None, data, frame_id))

    def repeat_events(self, count: int = 1) -> None:
        """Send the newest events once more, ids included."""
        with self.state.lock:
            self.state.events.repeat(count)

    def cut_stream(self, *, clean: bool = False) -> int:
        """End the open streams, cleanly or by a reset; return how many there were."""
        with self.state.lock:
            return self.state.events.end(clean=clean)

    def expire_replay(self) -> None:
        """Forget the replay window: an older cursor now gets ``replay.expired``."""
        with self.state.lock:
            self.state.events.forget()

    def set_silent(self, silent: bool) -> None:
        """Stop (or resume) writing anything to open streams, heartbeats included. Events are still logged."""
        with self.state.lock:
            self.state.events.silent = silent

    def set_framing(self, framing: Framing) -> None:
        """Choose line ends and how frames are cut into writes."""
        with self.state.lock:
            self.state.events.framing = framing

    # What happened ---------------------------------------------------------------------------------------------------

    def messages(self, conversation_id: str | None = None, *, own: bool | None = True) -> list[DurableMessage]:
        """Return durable messages: the agent's (``own=True``), people's (``False``) or all (``None``)."""
        with self.state.lock:
            return [
                message
                for message in self.state.messages
                if conversation_id in {None, message.conversation_id}
                and own in {None, message.sender_id == self.identity.agent_id}
            ]

    def finals(self, conversation_id: str | None = None) -> list[DurableMessage]:
        """Return the agent's messages that ended a turn."""
        return [message for message in self.messages(conversation_id) if message.final]

    def requests(self, *routes: str) -> list[RequestRecord]:
        """Return the requests that arrived, all or those of some routes."""
        with self.state.lock:
            return [record for record in self.state.requests if not routes or record.route in routes]

    def node(self, conversation_id: str) -> Json | None:
        """Return the conversation's ephemeral node, or ``None``."""
        with self.state.lock:
            node = self.state.nodes.get(conversation_id)
            return None if node is None else dict(node)

    @property
    def connected(self) -> int:
        """How many stream connections are open."""
        with self.state.lock:
            return len(self.state.events.readers)

    def wait_for(self, predicate: Callable[[LoopbackCanon], Result | None], timeout: float = 30.0) -> Result:
        """Block until ``predicate(self)`` is truthy and return its value. Looks again after every change.

        Raises:
            TimeoutError: not within ``timeout`` seconds; the text tells what the server saw.
        """
        with self.state.lock:
            result = self.state.lock.wait_for(lambda: predicate(self), timeout)
            if not result:
                raise TimeoutError(f"not within {timeout:g} s; {self.summary()}")
            return result

    async def until(self, predicate: Callable[[LoopbackCanon], Result | None], timeout: float = 30.0) -> Result:  # noqa: ASYNC109
        """:meth:`wait_for` for coroutines: the event loop goes on meanwhile."""
        return await asyncio.to_thread(self.wait_for, predicate, timeout)

    def wait_connected(self, timeout: float = 60.0) -> None:
        """Block until a stream is open."""
        self.wait_for(lambda canon: canon.connected, timeout)

    def wake(self) -> None:
        """Make every waiting :meth:`wait_for` look again."""
        with self.state.lock:
            self.state.lock.notify_all()

    def summary(self) -> str:
        """Return one line about the newest requests, for error messages."""
        newest = [f"{record.route}={record.status}" for record in self.requests()[-12:]]
        return f"{self.connected} stream(s) open, {len(self.messages())} answers, last requests: {' '.join(newest)}"
