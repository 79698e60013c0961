"""The fake Canon: what people do, in a small vocabulary, and what they saw.

Everything here may be called from any thread, with or without an event loop, and returns once the plugin has nothing
left to do before time passes. It decides nothing about messages; the plugin under test does.
"""

from __future__ import annotations

import itertools
import mimetypes
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypedDict, Unpack, cast, final, get_args

from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.canon_stream import MemoryCanonStream
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaFetcher
from canon_hermes_plugin.infrastructure.memory.virtual_loop import LoopThread
from canon_hermes_plugin.ports.canon import AgentIdentity, OutboundMessage, RuntimeSignal, SignalKind
from canon_hermes_plugin.ports.canon_stream import StreamEvent
from canon_hermes_plugin.ports.media import FetchedMedia
from canon_hermes_plugin.testing.decisions import Card, Decisions, Plan, Request, Settled
from canon_hermes_plugin.testing.rooms import NEWCOMER, Rooms

AGENT: Final = AgentIdentity("agent_hermes", "owner", "Hermes")
"""Who the plugin is here; ``owner`` is the person who owns it."""

Attachment = tuple[str, bytes]
"""A file name and its bytes; the name's suffix says the MIME type."""


class MessageFields(TypedDict, total=False):
    """What a message may have besides text and attachments, in Canon's own words (canon-wire §6.2)."""

    id: str
    senderId: str
    senderName: str
    senderType: str
    contentType: str
    contactCard: Mapping[str, Any]
    createdAt: object
    mentions: Sequence[str]
    metadata: Mapping[str, Any]
    provenance: Mapping[str, Any]
    replyTo: str


@dataclass(frozen=True, slots=True)
class Parts:
    """The twins the fake Canon is made of."""

    machine: LoopThread
    canon: MemoryCanon
    stream: MemoryCanonStream
    files: MemoryMediaFetcher


@dataclass(slots=True)
class _Memory:
    missed: list[StreamEvent] = field(default_factory=list[StreamEvent])
    down: bool = False


@final
class FakeCanon:
    """Canon as a test drives it. ``twin`` is the in-memory Canon itself, for everything not in the vocabulary."""

    def __init__(self, parts: Parts) -> None:
        self.twin = parts.canon
        self._parts = parts
        self._memory = _Memory()
        self._numbers = itertools.count(1)
        self._rooms = Rooms(str(AGENT.agent_id), self._written_to)
        self._decisions = Decisions(parts.canon.interactions, self._later, self._tell)

    # --- what people do ---------------------------------------------------------------------------------------------

    def group(self, name: str, *people: str) -> str:
        """Open a group conversation of ``people`` and the agent; returns its id, which is its name.

        Raises:
            TypeError: a name is no text.
            ValueError: the name is blank, taken or that of a direct conversation; nobody or somebody twice is in it.
        """
        return self._rooms.group(name, people)

    def says(
        self,
        text: str,
        *,
        by: str = NEWCOMER,
        conversation: str | None = None,
        attachments: Sequence[Attachment] = (),
        **fields: Unpack[MessageFields],
    ) -> str:
        """Let a person write a message and the agent work on it as far as it gets without time passing.

        Args:
            text: what is written.
            by: the person; user id and display name follow from it.
            conversation: where; the direct conversation with the person by default.
            attachments: names and bytes.
            fields: further message fields in their wire names, ``metadata`` for example.

        Returns:
            The id of the message.

        Raises:
            TypeError: an attachment is no pair of a name and bytes, text or person are no text, or a message has no
                such field.
            ValueError: there is no such conversation, or the person is not in it; the text names what there is.
        """
        check_attachments(attachments)
        _check_fields(text, fields)
        where = self._rooms.enter(conversation, by)
        message: dict[str, Any] = {
            "id": f"msg-{next(self._numbers)}",
            "senderId": by,
            "senderName": by.capitalize(),
            "senderType": "human",
            "text": text,
            "attachments": [self._hosted(*item) for item in attachments],
            **fields,
        }
        self._emit(where, message, dispatch=True)
        return str(message["id"])

    def stops(self, *, by: str = NEWCOMER, conversation: str | None = None, signal: SignalKind = "interrupt") -> None:
        """Let a person press stop: their running turn ends without its words (turns §2.6).

        Args:
            by: the person.
            conversation: where; the direct conversation with the person by default.
            signal: ``interrupt``; ``stop_and_drop`` drops what waits as well; ``new_session`` begins the host's
                session anew.

        Raises:
            TypeError: a name is no text.
            ValueError: there is no such signal or conversation, or the person is not in it.
        """
        if signal not in get_args(SignalKind):
            raise ValueError(f"there is no signal {signal!r}; there are: {', '.join(get_args(SignalKind))}")
        name = str(self._rooms.enter(conversation, by)["id"])
        self.twin.put_signal(name, RuntimeSignal(signal, by))
        self._send(self._event("runtime.control", {"conversationId": name, "kind": "signal"}))

    def answers(
        self,
        card: Card = None,
        action: str = "",
        values: Mapping[str, Any] | None = None,
        *,
        by: str | None = None,
        after: float = 0.0,
    ) -> None:
        """Let the person a card asks (or ``by``) choose ``action``: on the open card, else on the next one.

        A card without actions is only shown: it waits for nobody and is never the one that is meant. An answer that
        no card ever takes fails the test when the plugin closes; see :meth:`forgets`.

        Args:
            card: which card.
            action: the id of the action; the card's first by default.
            values: what was filled in, by the ids of the action's fields.
            by: who answers; anybody but the person asked is somebody the plugin must not believe.
            after: seconds the person takes; the card may be over by then.

        Raises:
            TypeError: the values are no mapping, the seconds no number, or the person no text.
            ValueError: the card has no action, not this one, or not these fields; the seconds are not 0 or more.
                Where the card is only named, whoever shows it gets this error.
        """
        if not isinstance(cast("object", values), Mapping | None):
            raise TypeError(f'values are a mapping such as {{"note": "today"}}, not {values!r:.80}')
        answer = {"status": "submitted", "actionId": action, "values": dict(values or {})}
        self._follow(self._decisions.about_card(Plan("card", answer, by, card, after)))

    def approves(self, request: Request = None, *, by: str | None = None) -> None:
        """Let the person asked (or ``by``) allow an approval: ``request`` or its id; the open or next one if none.

        A decision that no approval ever takes fails the test when the plugin closes; see :meth:`forgets`.

        Raises:
            TypeError: the person is no text.
            ValueError: nobody was ever asked for this approval, or it is decided or over.
        """
        self._decide("allow", request, by)

    def denies(self, request: Request = None, *, by: str | None = None) -> None:
        """Let the person asked (or ``by``) deny an approval; see :meth:`approves`."""
        self._decide("deny", request, by)

    def forgets(self) -> None:
        """Withdraw the answers and decisions that nothing took: what was prepared may rightly stay unused."""
        self._decisions.forget()

    def unused(self) -> list[str]:
        """Say which prepared answers and decisions nothing took, one line each."""
        return self._decisions.unused()

    # --- what goes wrong --------------------------------------------------------------------------------------------

    def goes_down(self, *, halfway: bool = False) -> None:
        """Let every call fail from now on; events are kept for later.

        Args:
            halfway: requests may have arrived, only their answers are lost; else no connection opens at all. The
                plugin gives a message up in the latter case and keeps it open in the former.
        """
        self._memory.down = True
        self.twin.faults.outage = Fault.ambiguous(None) if halfway else Fault.unreachable()

    def comes_back(self) -> None:
        """Answer again and deliver the events that were kept."""
        self._memory.down = False
        self.twin.faults.outage = None
        missed, self._memory.missed = self._memory.missed, []
        for event in missed:
            self._send(event)

    @property
    def is_down(self) -> bool:
        """Whether :meth:`goes_down` was called and :meth:`comes_back` was not."""
        return self._memory.down

    # --- what people saw --------------------------------------------------------------------------------------------

    def messages(self, conversation: str | None = None) -> list[OutboundMessage]:
        """Return the agent's durable messages in order, of one conversation or all.

        Raises:
            ValueError: there is no such conversation; the text names those there are.
        """
        self._parts.machine.advance()
        if conversation is not None:
            self._rooms.check(conversation)
        return [item for item in self.twin.messages if conversation in {None, item.conversation_id}]

    def texts(self, conversation: str | None = None) -> list[str]:
        """Return the texts of :meth:`messages`."""
        return [message.text for message in self.messages(conversation)]

    def cards(self, *, open_only: bool = False) -> list[Mapping[str, Any]]:
        """Return the cards that were shown, in order; ``open_only`` leaves those that still wait for an answer."""
        return self._decisions.cards(open_only=open_only)

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run ``work`` on the plugin's loop, and what follows from it."""
        self._parts.machine.run(work)
        self._parts.machine.advance()

    def call(self, work: Callable[[], object]) -> None:
        """Call ``work`` on the plugin's loop, and let follow what does."""
        self._parts.machine.loop.call_soon_threadsafe(work)
        self._parts.machine.advance()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _hosted(self, file_name: str, data: bytes) -> Mapping[str, Any]:
        mime_type = mimetypes.guess_type(file_name)[0] or "application/octet-stream"
        url = f"https://media.example/{next(self._numbers)}/{file_name}"
        self._parts.files.files[url] = FetchedMedia(data, mime_type)
        family = mime_type.partition("/")[0]
        kind = family if family in {"image", "audio", "video"} else "file"
        return {"kind": kind, "url": url, "mimeType": mime_type, "fileName": file_name, "sizeBytes": len(data)}

    def _emit(self, where: Mapping[str, Any], message: Mapping[str, Any], *, dispatch: bool) -> None:
        payload: dict[str, Any] = {
            "conversationId": where["id"],
            "conversation": where,
            "provenance": {"conversation": {"id": where["id"], "type": where["type"]}},
            "message": message,
        }
        if dispatch:
            payload["turnDispatch"] = {"kind": "run_turn"}
        self._send(self._event("message.created", payload))

    def _event(self, kind: str, payload: Mapping[str, Any]) -> StreamEvent:
        return StreamEvent(kind, payload, f"evt_{next(self._numbers):08d}")

    def _send(self, event: StreamEvent) -> None:
        if self._memory.down:
            self._memory.missed.append(event)
            return
        self._parts.machine.loop.call_soon_threadsafe(self._parts.stream.emit, event)
        self._parts.machine.advance()

    def _written_to(self) -> list[str]:
        known = (str(item.get("id")) for item in self.twin.conversations)
        return [*known, *(message.conversation_id for message in self.twin.messages)]

    def _decide(self, decision: str, request: Request, by: str | None) -> None:
        self._follow(self._decisions.about_approval(Plan("approval", {"status": decision}, by), request))

    def _follow(self, decided: bool) -> None:
        """Let happen what follows from a decision about something open."""
        if decided:
            self._parts.machine.advance()

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        loop = self._parts.machine.loop
        # Nobody answers before whoever asked has done all that it does until it waits.
        loop.call_soon_threadsafe(loop.when_at_rest, work, seconds)

    def _tell(self, settled: Settled) -> None:
        """Put the receipt of a decision on the stream; on the plugin's loop."""
        if settled.kind != "approval":
            return
        name = str(settled.made.body["conversationId"])
        metadata = {"type": "approval_reply", "approvalId": settled.identifier, "decision": settled.status}
        message = {
            "id": f"receipt-{settled.identifier}",
            "senderId": settled.by,
            "senderType": "human",
            "text": settled.status,
            "metadata": metadata,
        }
        payload = {"conversationId": name, "conversation": self._rooms.wire(name, settled.by), "message": message}
        event = self._event("message.created", payload)
        if self._memory.down:
            self._memory.missed.append(event)
        else:
            self._parts.stream.emit(event)


def _check_fields(text: object, fields: Mapping[str, object]) -> None:
    if not isinstance(text, str):
        raise TypeError(f"what is said is a text, not {text!r:.80}")
    known = MessageFields.__annotations__
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise TypeError(
            f"nothing is called {', '.join(unknown)} here; there are by, conversation, attachments, and of a message "
            f"{', '.join(known)}"
        )


def check_attachments(attachments: object) -> None:
    """Raise TypeError unless these are attachments, saying what one is."""
    items = cast("Sequence[object]", attachments) if isinstance(attachments, list | tuple) else [attachments]
    for item in items:
        match item:
            case (str(), bytes()):
                pass
            case _:
                raise TypeError(
                    f'an attachment is a file name and its bytes, such as ("a.pdf", b"%PDF-1.7"), not {item!r:.80}; '
                    "attachments is a list of them"
                )
