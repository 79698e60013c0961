"""The platform adapter: translates the host's calls into turns and the turns' answers into the host's results.

Decides nothing about messages or turns. It translates, keeps every failure away from the host (hermes-host §0 rule 1)
and brings calls of foreign event loops to the loop that owns the connection (turns §14 H25). What must survive a
reconnect lives outside, in the services it is given: the host builds a new instance for every attempt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from canon_hermes_plugin.domain import chunker
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.model import Ack, HostText, TurnStart
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.hermes import compat, host
from canon_hermes_plugin.infrastructure.hermes.compat import HostObject
from canon_hermes_plugin.infrastructure.hermes.config import Settings
from canon_hermes_plugin.infrastructure.hermes.media_surface import MediaSurface
from canon_hermes_plugin.infrastructure.hermes.prompts import Prompts, PromptSurface
from canon_hermes_plugin.ports.canon import TypingStatus
from canon_hermes_plugin.ports.errors import CanonError, CanonPluginError, ConfigurationError
from canon_hermes_plugin.ports.host import ConversationKind

if TYPE_CHECKING:
    from canon_hermes_plugin.infrastructure.hermes.services import Services

_LOG = logging.getLogger(__name__)

MAX_MESSAGE_LENGTH = 3900
"""Bytes the host believes one message holds."""
OVERFLOW_LIMIT = 1 << 40
"""Bytes after which the host would seal a streamed bubble: out of reach, the chunker does all splitting (H30)."""

_T = TypeVar("_T")


class CanonSurface(PromptSurface, MediaSurface):
    """What the host calls. Mixed into the host's base class by :func:`adapter_class`."""

    MAX_MESSAGE_LENGTH = MAX_MESSAGE_LENGTH
    REQUIRES_EDIT_FINALIZE = True
    SUPPORTS_MESSAGE_EDITING = True
    splits_long_messages = True
    supports_code_blocks = True
    gateway_runner: HostObject = None
    """Declared, so that both host lines inject their gateway object (hermes-host §2.3)."""

    config: HostObject
    settings: Settings
    open_services: Callable[[], Services]
    _opened: Services | None = None
    _owner: asyncio.AbstractEventLoop | None = None
    _kept_busy_handler: HostObject = None

    # --- facts the host reads ---------------------------------------------------------------------------------------

    @property
    def message_len_fn(self) -> Callable[[str], int]:
        """Length in UTF-8 bytes, the unit of Canon's limit."""
        return chunker.utf8_len

    @property
    def authorization_is_upstream(self) -> bool:
        """The intake decides who may wake the agent: agents have no user id and the host would refuse them."""
        return self.settings.access.decided_here

    def streaming_overflow_limit(self) -> int:
        """Return how much text the host may put into one streamed bubble."""
        return OVERFLOW_LIMIT

    # --- lifecycle --------------------------------------------------------------------------------------------------

    async def connect(self, *, is_reconnect: bool = False, **_: object) -> bool:
        """Prove the environment and the key, then listen (hermes-host §3.2)."""
        self._owner = asyncio.get_running_loop()
        try:
            # Reading the profile file and building a TLS context take their time: not on the loop.
            self._opened = await asyncio.to_thread(self.open_services)
            if not await asyncio.to_thread(compat.claim, self, self.services.claim):
                return False
            self.services.lanes.bind(self, self._kept_busy_handler)
            await self.services.runtime.start(self, self._gave_up, is_reconnect=is_reconnect)
            await self._keep_host_from_resuming()
        except (CanonError, ConfigurationError) as error:
            _LOG.error("Canon is not connected: %s", error)
            permanent = isinstance(error, ConfigurationError) or not error.retryable
            compat.set_fatal(self, error.code, str(error), retryable=not permanent)
            await self.disconnect()
            await asyncio.to_thread(compat.release_claim, self)
            return False
        compat.mark_connected(self)
        return True

    async def _keep_host_from_resuming(self) -> None:
        """Take back the host's mark on sessions whose last turn was over, but for an answer that is being said now.

        After a crash the host resumes every session of the last minutes with a turn of its own (hermes-host §4.7).
        """
        for key, kept_at in (await self.services.turns.left_unsaid()).items():
            if await asyncio.to_thread(compat.drop_resume, self.gateway_runner, key, kept_at):
                _LOG.info("session %s is not resumed: its answer is being delivered", key)

    async def disconnect(self) -> None:
        """Stop listening; idempotent. Open turns can still be finished on the kept connection."""
        if self._opened is not None:
            self._opened.lanes.unbind(self)
            if self._opened.runtime.serves(self):
                await self._opened.runtime.stop()
                await asyncio.to_thread(compat.release_claim, self)
            if compat.is_draining(self.gateway_runner):
                # The process ends: what is being settled in the background gets its last seconds.
                await self._opened.turns.close()
        compat.mark_disconnected(self)

    @property
    def services(self) -> Services:
        """What outlives this instance; there once ``connect`` was called.

        Raises:
            CanonError: before that.
        """
        if self._opened is None:
            raise CanonError("Canon is not connected yet", retryable=True)
        return self._opened

    @property
    def prompts(self) -> Prompts | None:
        return None if self._opened is None else self._opened.decisions.prompts

    def _gave_up(self, error: CanonError) -> None:
        """Canon refuses the key for good: tell the host from a task that :meth:`disconnect` does not cancel."""
        compat.set_fatal(self, error.code, str(error), retryable=error.retryable)
        self._fatal_task = asyncio.get_running_loop().create_task(compat.notify_fatal(self))

    def set_busy_session_handler(self, handler: HostObject) -> None:
        """Keep the host's handler and put the plugin's queue in its place (hermes-host §3.7)."""
        self._kept_busy_handler = handler
        base = cast("Any", super())
        base.set_busy_session_handler(None if handler is None else self._on_busy)

    async def _on_busy(self, event: HostObject, session_key: str) -> bool:
        return await self.services.lanes.on_busy(event, session_key)

    def get_pending_message(self, session_key: str) -> None:
        """Give the host nothing to run inside the present lifecycle: what it queued becomes a turn of its own."""
        self.services.lanes.take_over(self, session_key)

    async def on_processing_start(self, event: HostObject) -> None:
        """Open the turn and make it findable from the lifecycle's own context (H39)."""
        key = self.services.lanes.started(event)
        if not host.is_command(event):
            event.channel_context = self.services.background(str(event.source.chat_id)) or event.channel_context
        turn = await self.services.turns.open(self._start_of(event, key))
        current_turn.set(turn)
        self.services.lanes.accepted(event, turn)

    async def on_processing_complete(self, event: HostObject, outcome: HostObject) -> None:
        """Publish what the turn has to say and let the next message start."""
        lanes, turn = self.services.lanes, current_turn.get()
        key = lanes.key_of(event)
        ended = lanes.outcome(key, outcome.value)
        try:
            if turn is not None:
                await self.services.turns.complete(turn, ended)
        finally:
            for message in lanes.completed(key, event):
                if message.message_id is not None:
                    self.services.forget_media(message.conversation_id, message.message_id)

    def _start_of(self, event: HostObject, key: str) -> TurnStart:
        message = host.inbound_of(event)
        source = event.source
        kind: ConversationKind = "group" if source.chat_type == "group" else "direct"
        return TurnStart(
            conversation_id=str(source.chat_id),
            session_key=key,
            kind=kind,
            message_id=host.canon_message_id(event),
            responder=message.user_id if message is not None else (source.user_id or None),
            verbosity=self.services.verbosity(kind),
        )

    # --- text -------------------------------------------------------------------------------------------------------

    async def send(
        self,
        chat_id: str,
        content: str,
        reply_to: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **_: object,
    ) -> HostObject:
        """Take one text of the host; never raises (hermes-host §0 rule 1)."""
        plain = HostText(str(chat_id), content, reply_to=reply_to, foreign_loop=self._is_foreign())
        text = _with_marks(plain, metadata or {})
        return await self._answer(lambda turn: self.services.turns.text(turn, text))

    async def edit_message(
        self,
        chat_id: str,
        message_id: str,
        content: str,
        *,
        finalize: bool = False,
        metadata: Mapping[str, Any] | None = None,
        **_: object,
    ) -> HostObject:
        """Take the next state of a bubble."""
        plain = HostText(str(chat_id), content, bubble=message_id, finalize=finalize)
        text = _with_marks(plain, metadata or {})
        return await self._answer(lambda turn: self.services.turns.text(turn, text))

    async def _answer(self, offer: Callable[[Turn | None], Coroutine[Any, Any, Ack]]) -> HostObject:
        turn = current_turn.get()
        try:
            if not self.services.runtime.proven:
                # The address was not proven yet: neither key nor text may go there.
                raise CanonError("Canon is not reachable yet", retryable=True)  # noqa: TRY301 - one place for failures
            return _result(await self._on_owner(lambda: offer(turn)))
        except CanonPluginError as error:
            _LOG.warning("a message was not delivered: %s", error)
            retryable = isinstance(error, CanonError) and error.retryable
            return _result(Ack(ok=False, error=error.code, retryable=retryable))
        except Exception:  # noqa: BLE001 - the host would post the exception's text into the chat (hermes-host §17.4)
            _LOG.exception("a message was not delivered")
            return _result(Ack(ok=False, error="canon_internal"))

    # --- typing and facts about chats -------------------------------------------------------------------------------

    async def send_typing(self, chat_id: str, metadata: Mapping[str, Any] | None = None, **_: object) -> None:
        """Show the typing indicator."""
        turn = current_turn.get()
        status: TypingStatus = "typing" if (metadata or {}).get("status") == "typing" else "thinking"
        await self._quietly(lambda: self.services.turns.typing(turn, chat_id, True, status))

    async def stop_typing(self, chat_id: str, metadata: Mapping[str, Any] | None = None, **_: object) -> None:
        """Hide the typing indicator."""
        turn = current_turn.get()
        await self._quietly(lambda: self.services.turns.typing(turn, chat_id, False))

    async def get_chat_info(self, chat_id: str) -> dict[str, Any]:
        """Return the conversation's display name and type."""
        return dict(self.services.chat_info(chat_id))

    async def _quietly(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await self._on_owner(work)
        except CanonError as error:
            _LOG.debug("typing indicator not updated: %s", error)

    # --- event loops ------------------------------------------------------------------------------------------------

    def _is_foreign(self) -> bool:
        return self._owner is not None and asyncio.get_running_loop() is not self._owner

    async def _on_owner(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Run ``work`` on the loop that owns the connection, whatever loop this is (H25)."""
        owner = self._owner
        if owner is None or not self._is_foreign():
            return await work()
        if owner.is_closed():
            raise CanonError("the gateway's event loop is closed", retryable=False)
        waiting: Awaitable[_T] = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), owner))
        return await waiting


def _with_marks(text: HostText, metadata: Mapping[str, Any]) -> HostText:
    """Return ``text`` with what the host's metadata says about it; everything else in there stays behind (H34)."""
    job = metadata.get("job_id")
    return replace(
        text,
        expect_edits=bool(metadata.get("expect_edits")),
        notify=bool(metadata.get("notify")),
        job_id=str(job) if job else None,
        metadata=_bag(metadata.get("canon_metadata")),
        options=_bag(metadata.get("canon_options")),
    )


def _bag(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _result(ack: Ack) -> HostObject:
    return compat.module("gateway.platforms.base").SendResult(
        success=ack.ok,
        message_id=ack.message_id or None,
        error=ack.error,
        retryable=ack.retryable,
        raw_response=dict(ack.facts),
    )


@lru_cache(maxsize=1)
def adapter_class() -> type[Any]:
    """Return the adapter's class over the installed host's base class."""
    base = compat.module("gateway.platforms.base").BasePlatformAdapter
    return type("CanonAdapter", (CanonSurface, base), {"__doc__": CanonSurface.__doc__})


def build_adapter(config: HostObject, settings: Settings, open_services: Callable[[], Services]) -> HostObject:
    """Return an adapter for the host's platform section.

    ``open_services`` is called in a thread by each ``connect`` and returns what outlives the adapter; it may raise
    ConfigurationError.
    """
    adapter = adapter_class()(config, host.platform())
    adapter.settings = settings
    adapter.open_services = open_services
    return adapter
