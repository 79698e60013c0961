"""Takes every stream event over: messages become work or background, control becomes signals (turns §1.1, §1.2).

It orders what the pure parts decide: screen, claim, learn, decide, fetch, hand over, commit. A message id is marked as
seen only after its hand-over, and a failed hand-over gives it back (rule 6). It refuses to know hosts and transports.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from canon_hermes_plugin.domain.chunker import replace_lone_surrogates
from canon_hermes_plugin.domain.inbound import text as composition
from canon_hermes_plugin.domain.inbound.admission import Admit, Drop, Receipt, Screened, Suppress, decide, screen
from canon_hermes_plugin.domain.inbound.background import BackgroundBuffer
from canon_hermes_plugin.domain.inbound.claims import Claims
from canon_hermes_plugin.domain.inbound.conversations import ConversationFacts, conversation_id_of
from canon_hermes_plugin.domain.inbound.intents import admitted_intent, delivery_intent
from canon_hermes_plugin.domain.inbound.preparing import Preparation, Preparations
from canon_hermes_plugin.domain.inbound.prompt import PromptFacts, agent_turn_limit, group_prompt, is_mentioned
from canon_hermes_plugin.domain.inbound.signals import SIGNAL_WAIT, SignalDesk
from canon_hermes_plugin.domain.inbound.turn_gate import HUMAN
from canon_hermes_plugin.domain.media.intake import IntakeResult, MediaIntake
from canon_hermes_plugin.domain.reading import identifier, inert, mapping, sequence
from canon_hermes_plugin.ports.approvals import ApprovalReceipts
from canon_hermes_plugin.ports.canon import AgentIdentity, DirectoryPort, SignalPort
from canon_hermes_plugin.ports.canon_stream import StreamEvent
from canon_hermes_plugin.ports.errors import CanonError
from canon_hermes_plugin.ports.host import ConversationKind, HostInbox, InboundMessage

_log = logging.getLogger(__name__)

_NAME_CHARS: Final = 200
_CONTROL_LANE: Final = "\x00control"
_STOP_LANE: Final = "\x00stop"
_NO_MEDIA: Final = IntakeResult()


class CursorPort(Protocol):
    """The one thing admission may tell the stream."""

    def set_cursor(self, cursor: str | None) -> None:
        """Adopt a cursor Canon dictates."""
        ...


class MessageShelf(Protocol):
    """Where a message that will never run is taken off its sender's queued shelf (H28)."""

    def dropped(self, message: InboundMessage) -> None:
        """The message will never be worked on. Never waits."""
        ...


class Notes(Protocol):
    """Told what becomes of messages, for the next process to know."""

    def taking(self, message_id: str) -> None:
        """A message is about to be handed over."""
        ...

    def changed(self) -> None:
        """It was, or it is known that it never will be."""
        ...


class _NoNotes:
    """Nobody wants to know."""

    def taking(self, message_id: str) -> None:
        return

    def changed(self) -> None:
        return


@dataclass(frozen=True, slots=True)
class InboundPorts:
    """What the service speaks to.

    Attributes:
        inbox: where admitted messages and signals go.
        signals: consumes runtime signals.
        directory: lists conversations.
        cursor: the stream's cursor.
        receipts: looks at approval receipts.
        media: takes attachments in.
        shelf: told about messages that were stopped before they started.
        notes: told what becomes of messages.
    """

    inbox: HostInbox
    signals: SignalPort
    directory: DirectoryPort
    cursor: CursorPort
    receipts: ApprovalReceipts
    media: MediaIntake
    shelf: MessageShelf
    notes: Notes = field(default_factory=_NoNotes)


@dataclass(slots=True)
class InboundState:
    """What outlives a connection: seen messages, conversations, background. Owned by one event loop.

    Messages that woke nobody have a window of their own (``overheard``): a busy room must not push those that did out
    of theirs (``claims``), which the next process relies on.
    """

    claims: Claims = field(default_factory=Claims)
    overheard: Claims = field(default_factory=Claims)
    conversations: ConversationFacts = field(default_factory=ConversationFacts)
    background: BackgroundBuffer = field(default_factory=BackgroundBuffer)


class InboundService:
    """The handler of the stream's events; implements ``ports.canon_stream.EventHandler``."""

    def __init__(self, ports: InboundPorts, state: InboundState | None = None) -> None:
        self._ports = ports
        self._state = state or InboundState()
        self._identity = AgentIdentity(None)
        self._preparing = Preparations()
        self._signals = SignalDesk(ports.signals, ports.inbox, self._preparing)
        self._handlers: Mapping[str, Callable[[Mapping[str, Any]], Awaitable[None]]] = {
            "message.created": self._message_created,
            "conversation.updated": self._conversation_updated,
            "agent.context": self._agent_context,
            "runtime.control": self._runtime_control,
            "replay.expired": self._replay_expired,
            "error": self._stream_error,
        }

    @property
    def agent_id(self) -> str | None:
        """The agent's own id, once known."""
        return self._identity.agent_id

    @property
    def conversations(self) -> ConversationFacts:
        """What is known about the conversations."""
        return self._state.conversations

    def preparing(self) -> Iterable[str]:
        """Return the conversations in which a message is on its way to the host, or a signal on its way to us."""
        return (*self._preparing.conversations(), *self._signals.owed())

    def adopt_identity(self, identity: AgentIdentity) -> None:
        """Take in who we are, as Canon told at connect."""
        self._identity = identity
        self._signals.owner_id = identity.owner_id

    def kind(self, conversation_id: str) -> ConversationKind:
        """Return the conversation's kind for verbosity, session key and prompt alike (H19)."""
        return self._state.conversations.kind(conversation_id)

    def context_for(self, conversation_id: str) -> str | None:
        """Take out the background of a conversation. Call it when a run really starts, and only then (H20)."""
        return self._state.background.drain(conversation_id)

    async def refresh_conversations(self) -> None:
        """Read the conversation list again. Raises CanonError when Canon does not answer."""
        self._state.conversations.replace(await self._ports.directory.list_conversations())

    def lane(self, event: StreamEvent) -> str | None:
        """Return the lane of an event: its conversation's, or for control a lane that no download blocks (H21)."""
        conversation_id = _conversation_of(event)
        if conversation_id is None:
            return None
        if event.name == "runtime.control":
            return conversation_id + _CONTROL_LANE
        typed_stop = event.name == "message.created" and _is_typed_stop(event)
        return conversation_id + _STOP_LANE if typed_stop else conversation_id

    def waits(self, event: StreamEvent) -> None:
        """Take note of a message that will wake somebody and waits until an earlier one was handed over.

        And of a signal that waits for an earlier one: it was known from now on.
        """
        if event.name == "runtime.control" and (signalled := _signalled(mapping(event.data))) is not None:
            self._signals.waits(signalled)
        if event.name != "message.created":
            return
        screened = screen(mapping(event.data), self._identity.agent_id)
        if not isinstance(screened, Screened) or screened.message_id is None:
            return
        if self._state.claims.known(screened.message_id) or composition.is_stop(screened.message):
            return
        if isinstance(decide(screened), Admit):
            self._preparing.waits(screened.conversation_id, screened.message_id, _sender(screened))

    async def handle(self, event: StreamEvent) -> None:
        """Take one event over. Raises what the hand-over raises; malformed events are dropped."""
        if not self.handle_now(event):
            await self._handlers[event.name](mapping(event.data))

    def handle_now(self, event: StreamEvent) -> bool:
        """Take an event over without waiting when nothing about it can wait: ignored, dropped or background.

        Most of a busy room comes this way, so it costs no coroutine. ``False`` means that nothing was done.
        """
        if event.name == "message.created":
            return self._pass_by(mapping(event.data))
        return event.name not in self._handlers

    def _pass_by(self, payload: Mapping[str, Any]) -> bool:
        """Take in a message that wakes nobody; ``False`` when it wakes somebody or is a receipt."""
        screened = screen(payload, self._identity.agent_id)
        if not isinstance(screened, Screened):
            return isinstance(screened, Drop)
        state, message_id = self._state, screened.message_id
        if message_id is not None and (state.claims.known(message_id) or state.overheard.known(message_id)):
            return not state.claims.in_work(message_id)
        outcome = decide(screened)
        if isinstance(outcome, Admit):
            return False
        state.conversations.learn(screened.conversation_id, payload)
        if isinstance(outcome, Suppress):
            state.background.record(screened.conversation_id, outcome.overheard)
        if message_id is not None:
            state.overheard.commit(message_id)
        if _log.isEnabledFor(logging.DEBUG):
            reason = outcome.verdict.reason if isinstance(outcome, Suppress) else outcome.reason
            _log.debug("message %s not dispatched: %s", message_id, reason.value)
        return True

    async def _message_created(self, payload: Mapping[str, Any]) -> None:
        """Hand an admitted message over; its id is committed after that, and released when the hand-over fails."""
        screened = screen(payload, self._identity.agent_id)
        if isinstance(screened, Receipt):
            ours = await self._ports.receipts.offer(payload)
            _log.debug("approval receipt %s: %s", screened.approval_id, "ours" if ours else "not ours")
        if not isinstance(screened, Screened):
            return
        claims, message_id = self._state.claims, screened.message_id
        if message_id is not None and not claims.claim(message_id):
            return
        if message_id is not None:
            self._ports.notes.taking(message_id)
        try:
            self._state.conversations.learn(screened.conversation_id, payload)
            outcome = decide(screened)
            if isinstance(outcome, Admit):
                await (self._typed_stop if composition.is_stop(screened.message) else self._prepare)(screened, outcome)
        except BaseException:
            if message_id is not None:
                claims.release(message_id)
            raise
        if message_id is not None:
            claims.commit(message_id)
            self._ports.notes.changed()

    async def _prepare(self, screened: Screened, admitted: Admit) -> None:
        """Hand a message over, unless somebody stops it before it is ready (H29)."""
        conversation_id = screened.conversation_id
        if screened.message_id is not None and not self._preparing.turn_of(conversation_id, screened.message_id):
            self._not_started(screened)
            return
        async with self._preparing.under_way(conversation_id, _sender(screened)) as preparation:
            message = await self._draft(screened, admitted)
            await self._signals.gate.applied(conversation_id, SIGNAL_WAIT)
        if preparation.stopped:
            self._not_started(screened)
        else:
            await self._hand_over(message, preparation)

    async def _hand_over(self, message: InboundMessage, preparation: Preparation) -> None:
        conversation_id = message.conversation_id
        self._signals.handed_over(conversation_id, message.message_id, preparation)
        if message.kind == "command":
            await self._ports.inbox.hand_over(message)
            return
        if message.intent == "interleave" and self._signals.under_way(conversation_id):
            message = replace(message, intent="queue")  # the run it would join may be the one that is stopped
        with self._preparing.handing_over(conversation_id):
            await self._ports.inbox.hand_over(message)

    async def _typed_stop(self, screened: Screened, admitted: Admit) -> None:
        """Stop what is on its way, then let the host stop what runs; what comes later waits for both."""
        conversation_id = screened.conversation_id
        with self._signals.gate.applying(conversation_id):
            self._signals.stop(conversation_id, self._preparing.snapshot(conversation_id), _sender(screened))
            await self._preparing.handed_over(conversation_id, SIGNAL_WAIT)
            await self._ports.inbox.hand_over(await self._draft(screened, admitted))

    def _not_started(self, screened: Screened) -> None:
        conversation_id, message_id = screened.conversation_id, screened.message_id
        if message_id is not None:
            self._ports.media.discard(conversation_id, message_id)
        gone = InboundMessage(conversation_id, "", message_id=message_id, queued=_is_queued(screened))
        self._ports.shelf.dropped(gone)

    async def _draft(self, screened: Screened, admitted: Admit) -> InboundMessage:
        message, conversation_id = screened.message, screened.conversation_id
        attachments = sequence(message.get("attachments"))
        taken = (
            await self._ports.media.take(conversation_id, screened.message_id, attachments)
            if attachments
            else _NO_MEDIA
        )
        human = message.get("senderType") == HUMAN
        words = replace_lone_surrogates(composition.with_markers(message, admitted.text, taken.markers))
        words = words if human else composition.words_of_an_agent(words)
        kind = composition.message_kind(words, taken.kinds)
        return InboundMessage(
            conversation_id=conversation_id,
            text=f"{taken.documents}\n\n{words}" if taken.documents and kind != "command" else words,
            chat_kind=self._state.conversations.chat_kind(conversation_id),
            chat_name=self._state.conversations.name(conversation_id),
            user_id=identifier(message.get("senderId")) if human else None,
            user_name=inert(message.get("senderName"), _NAME_CHARS) or None,
            message_id=screened.message_id,
            reply_to=identifier(message.get("replyTo")),
            kind=kind,
            intent=admitted_intent(delivery_intent(message), media_registered=taken.stranded, hidden=taken.stranded),
            channel_prompt=self._prompt(screened),
            media=taken.media,
            queued=_is_queued(screened),
            raw=screened.payload,
        )

    def _prompt(self, screened: Screened) -> str | None:
        conversations = self._state.conversations
        if conversations.chat_kind(screened.conversation_id) != "group":
            return None
        return group_prompt(
            PromptFacts(
                mentioned=is_mentioned(screened.payload, screened.message, self._identity.agent_id),
                own_name=self._identity.display_name,
                members=conversations.member_count(screened.conversation_id),
                agent_turns=agent_turn_limit(screened.payload),
            )
        )

    async def _conversation_updated(self, payload: Mapping[str, Any]) -> None:
        conversation_id = identifier(payload.get("conversationId")) or identifier(payload.get("id"))
        if conversation_id is not None:
            self._state.conversations.merge(conversation_id, payload.get("changes"))

    async def _agent_context(self, payload: Mapping[str, Any]) -> None:
        found = next((value for key in ("agentId", "id", "userId") if (value := identifier(payload.get(key)))), None)
        if found is not None:
            self._identity = AgentIdentity(found, self._identity.owner_id, self._identity.display_name)

    async def _runtime_control(self, payload: Mapping[str, Any]) -> None:
        """Consume the pending signal. The event's own value is not trusted (canon-wire §5.5)."""
        conversation_id = _signalled(payload)
        if conversation_id is not None:
            await self._signals.announced(conversation_id)

    async def consume_signal(self, conversation_id: str) -> None:
        """Take the conversation's pending runtime signal, if any, and apply it (turns §2.6)."""
        await self._signals.poll(conversation_id)

    async def _replay_expired(self, payload: Mapping[str, Any]) -> None:
        """Adopt Canon's cursor first: a failing refresh must not bring the expired one back."""
        self._ports.cursor.set_cursor(identifier(payload.get("lastAvailableId")))
        _log.warning("replay window expired; messages may have been missed")
        try:
            await self.refresh_conversations()
        except CanonError as error:
            _log.warning("conversation list not refreshed: %s", error.code)

    async def _stream_error(self, payload: Mapping[str, Any]) -> None:
        _log.warning("Canon reported a stream error: %s", inert(payload.get("code"), 60) or "no code")


def _signalled(payload: Mapping[str, Any]) -> str | None:
    """Return the conversation a control event announces a signal for."""
    return identifier(payload.get("conversationId")) if payload.get("kind") == "signal" else None


def _is_queued(screened: Screened) -> bool:
    """Tell whether the message lies on its sender's queued shelf (turns §1.10)."""
    metadata = mapping(screened.message.get("metadata"))
    return screened.message_id is not None and metadata.get("inboundDisposition") == "queued"


def _sender(screened: Screened) -> str | None:
    return identifier(screened.message.get("senderId"))


def _is_typed_stop(event: StreamEvent) -> bool:
    return composition.is_stop(mapping(mapping(event.data).get("message")))


def _conversation_of(event: StreamEvent) -> str | None:
    data = mapping(event.data)
    found = identifier(data.get("conversationId"))
    if found is None and event.name == "conversation.updated":
        return conversation_id_of(data)
    return found
