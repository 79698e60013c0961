"""The host part of captain-webhook: the built-in webhook adapter, extended so that a conversation keeps one session.

It decides where a delivery's session lives, which delivery an answer belongs to, and in which order the deliveries of
one conversation run. Everything else (signatures, rate limits, idempotency, parsing, delivering) is the built-in's,
inherited and not copied. Contract: captain-webhook §2 to §4, hermes-host §11.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import OrderedDict, deque
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from canon_hermes_plugin.domain.session_key import (
    is_stable_chat_id,
    one_shot_chat_id,
    stable_chat_id,
    webhook_conversation,
)
from canon_hermes_plugin.infrastructure.hermes import compat_webhook as compat

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    class _BuiltIn:
        """The part of the host's adapter this module extends, as the type checkers see it."""

        def __init__(self, config: Any) -> None: ...  # noqa: ANN401
        async def handle_message(self, event: Any) -> None: ...  # noqa: ANN401
        def set_busy_session_handler(self, handler: Callable[[Any, str], Awaitable[bool]] | None) -> None: ...
        async def on_processing_start(self, event: Any) -> None: ...  # noqa: ANN401
        async def on_processing_complete(self, event: Any, outcome: Any) -> None: ...  # noqa: ANN401
        async def send(
            self, chat_id: str, content: str, reply_to: str | None, metadata: dict[str, Any] | None
        ) -> Any: ...  # noqa: ANN401
else:
    _BuiltIn = object

logger = logging.getLogger("canon_hermes_plugin.captain_webhook")

MAX_WAITING = 32
"""Deliveries of one conversation that may wait behind the running one; the host's own bound (hermes-host §4.6)."""

MAX_CONVERSATIONS = 4096
"""Conversations whose newest reply target is remembered; the least recently used is forgotten first."""

_answering: ContextVar[str | None] = ContextVar("captain_webhook_answering", default=None)
"""The host's own chat id of the delivery whose run this context belongs to: where its answer goes."""


@dataclasses.dataclass(slots=True)
class _Conversation:
    """One stable conversation: who waits, and the newest target for answers without a run of their own."""

    newest: str
    session_key: str | None = None
    running: str | None = None
    waiting: deque[Any] = dataclasses.field(default_factory=deque[Any])
    targets: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict[str, dict[str, Any]])
    entry: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)


class LastingConversations(_BuiltIn):
    """What is laid over the built-in adapter; :func:`build_captain_webhook_adapter` joins the two."""

    # Declared so that both hosts inject the gateway object (hermes-host §2.3).
    gateway_runner: Any = None

    def __init__(self, config: Any) -> None:  # noqa: ANN401
        super().__init__(config)
        self._conversations: OrderedDict[str, _Conversation] = OrderedDict()

    async def handle_message(self, event: Any) -> None:  # noqa: ANN401
        """Give the delivery the chat id of its conversation, then let the host take it."""
        if compat.origin_of(event) is None and not event.internal:  # else it already has its place
            original = event.source.chat_id
            chat_id = _chat_id_for(event)
            if chat_id != original:
                event.source = dataclasses.replace(event.source, chat_id=chat_id)
                compat.remember_origin(event, original, compat.target_of(self, original))
                compat.copy_target(self, original, chat_id)
                self._note(event)
        conversation = self._conversations.get(event.source.chat_id)
        if conversation is None:
            await super().handle_message(event)
            return
        async with conversation.entry:  # the host may reorder two calls of one session that overlap
            if conversation.waiting:
                self._wait_in_line(conversation, event)
            else:
                await super().handle_message(event)

    def _note(self, event: Any) -> None:  # noqa: ANN401
        """Remember where the delivery's answer goes, and that it is its conversation's newest."""
        chat_id, original = event.source.chat_id, compat.origin_of(event)
        if is_stable_chat_id(chat_id) and original is not None:
            conversation = self._conversation(chat_id, original)
            conversation.newest = original
            conversation.targets[original] = compat.target_in(event)

    def set_busy_session_handler(self, handler: Callable[[Any, str], Awaitable[bool]] | None) -> None:
        """Keep the host's handler and put our queue before it."""
        if handler is None:
            super().set_busy_session_handler(None)
            return

        async def on_busy(event: Any, session_key: str) -> bool:  # noqa: ANN401
            if self._queues(event, session_key):
                return True
            return await handler(event, session_key)

        super().set_busy_session_handler(on_busy)

    def _queues(self, event: Any, session_key: str) -> bool:  # noqa: ANN401
        """Queue a delivery behind the running one, so that each gets a run, an answer and a target of its own."""
        chat_id = event.source.chat_id
        if not is_stable_chat_id(chat_id) or event.internal or event.is_command():
            return False
        conversation = self._conversations.get(chat_id)
        if conversation is None:
            return False
        if compat.merges_into_running_turn(self) or compat.waits_for_a_human(session_key):
            self._redirect_running(conversation, event)
            return False
        conversation.session_key = session_key
        self._wait_in_line(conversation, event)
        if conversation.running is None:  # the run has completed, but the host has not let go of the session yet
            compat.in_background(self, self._start_next(conversation))
        return True

    def _redirect_running(self, conversation: _Conversation, event: Any) -> None:  # noqa: ANN401
        """The host merges this delivery into the running one: that answer serves both, at the newest target."""
        target = conversation.targets.pop(compat.origin_of(event) or "", None)
        if conversation.running is not None and target is not None:
            conversation.targets[conversation.running] = target
            logger.info("a delivery joins the running turn of its conversation; the answer goes to the newest target")

    def _wait_in_line(self, conversation: _Conversation, event: Any) -> None:  # noqa: ANN401
        if len(conversation.waiting) >= MAX_WAITING:
            conversation.targets.pop(compat.origin_of(event) or "", None)
            logger.warning("%d deliveries of one conversation wait already: the newest is dropped", MAX_WAITING)
            return
        conversation.waiting.append(event)

    async def on_processing_start(self, event: Any) -> None:  # noqa: ANN401
        """Bind this run, and every task and thread it starts, to its own delivery."""
        await super().on_processing_start(event)
        origin = compat.origin_of(event)
        _answering.set(origin)
        if origin is not None and is_stable_chat_id(event.source.chat_id):
            conversation = self._conversation(event.source.chat_id, origin)
            conversation.running = origin
            # During its start-up the host completes a delivery without running it, and hands it in again later.
            conversation.targets.setdefault(origin, compat.target_in(event))

    async def on_processing_complete(self, event: Any, outcome: Any) -> None:  # noqa: ANN401
        """Keep a conversation's session open and start its next delivery; end a one-shot as the built-in does."""
        chat_id = event.source.chat_id
        if not is_stable_chat_id(chat_id):
            await super().on_processing_complete(event, outcome)
            return
        conversation = self._conversations.get(chat_id)
        if conversation is None:
            return
        done = compat.origin_of(event)
        if done is not None:
            # The built-in keeps the entry for its own lifetime, so a late notice still finds its way.
            compat.restore_target(self, done, conversation.targets.pop(done, None))
        conversation.running = None
        if conversation.waiting:
            compat.in_background(self, self._start_next(conversation))

    async def _start_next(self, conversation: _Conversation) -> None:
        """Start the next delivery once the host has let go of the session (hermes-host §3.7 B)."""
        await compat.session_is_free(self, conversation.session_key)
        async with conversation.entry:
            while conversation.waiting and compat.is_free(self, conversation.session_key):
                await super().handle_message(conversation.waiting.popleft())

    async def send(
        self, chat_id: str, content: str, reply_to: str | None = None, metadata: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401
        """Deliver to the target of the delivery that is being answered."""
        return await super().send(self._target(chat_id), content, reply_to, metadata)

    def _target(self, chat_id: str) -> str:
        conversation = self._conversations.get(chat_id)
        if conversation is None:
            return chat_id
        answering = _answering.get()
        original = answering if answering in conversation.targets else conversation.newest
        # A run may outlive the built-in's entry; put it back before it is read.
        compat.restore_target(self, original, conversation.targets.get(original))
        return original

    def _conversation(self, chat_id: str, original: str) -> _Conversation:
        conversation = self._conversations.get(chat_id)
        if conversation is None:
            conversation = self._conversations[chat_id] = _Conversation(newest=original)
        self._conversations.move_to_end(chat_id)
        self._forget_idle()
        return conversation

    def _forget_idle(self) -> None:
        for chat_id in list(self._conversations):
            if len(self._conversations) <= MAX_CONVERSATIONS:
                return
            if not self._conversations[chat_id].targets:
                del self._conversations[chat_id]


def build_captain_webhook_adapter(config: Any) -> Any:  # noqa: ANN401 - host objects
    """Return the adapter for the installed host. Imports the host; call it from the adapter factory only."""
    return type("CaptainWebhookAdapter", (LastingConversations, compat.webhook_adapter_class()), {})(config)


def _chat_id_for(event: Any) -> str:  # noqa: ANN401
    """The chat id the delivery's session lives under; the host's own when nothing is to change."""
    source = event.source
    route = source.user_name
    chat_id: str = source.chat_id
    if not isinstance(route, str) or not chat_id.startswith(f"webhook:{route}:"):
        return chat_id
    delivery_id = chat_id.removeprefix(f"webhook:{route}:")
    found = webhook_conversation(event.raw_message)
    for field, kind in found.ignored:
        logger.debug("payload field %s of type %s cannot name a conversation", field, kind)
    if found.value is not None:
        return stable_chat_id(route, found.value)
    return one_shot_chat_id(chat_id, route, delivery_id)
