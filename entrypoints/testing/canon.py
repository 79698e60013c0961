"""The fake Canon: what people do, in a small vocabulary, and what they saw.

Everything here may be called from any thread, with or without an event loop, and returns once the plugin has nothing
left to do before time passes. It decides nothing about messages; the plugin under test does.
"""

from __future__ import annotations

import itertools
import mimetypes
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast, final

from canon_hermes_plugin.domain.cards.interactive import interactive
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.canon_stream import MemoryCanonStream
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.interactions import Interaction
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaFetcher
from canon_hermes_plugin.infrastructure.memory.virtual_loop import LoopThread
from canon_hermes_plugin.ports.canon import AgentIdentity, OutboundMessage
from canon_hermes_plugin.ports.canon_stream import StreamEvent
from canon_hermes_plugin.ports.media import FetchedMedia

AGENT: Final = AgentIdentity("agent_hermes", "owner", "Hermes")
"""Who the plugin is here; ``owner`` is the person who owns it."""

Attachment = tuple[str, bytes]
"""A file name and its bytes; the name's suffix says the MIME type."""

Card = Mapping[str, Any] | str | None
"""Which card is meant: the card itself, its id or title, or ``None`` for any."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The twins the fake Canon is made of."""

    machine: LoopThread
    canon: MemoryCanon
    stream: MemoryCanonStream
    files: MemoryMediaFetcher


@dataclass(frozen=True, slots=True)
class Plan:
    """What somebody will do with the next request that fits."""

    kind: str
    fits: Callable[[Interaction], bool]
    answer: Mapping[str, Any]
    by: str | None
    after: float


@dataclass(slots=True)
class _Memory:
    plans: list[Plan] = field(default_factory=list[Plan])
    missed: list[StreamEvent] = field(default_factory=list[StreamEvent])
    members: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict[str, tuple[str, tuple[str, ...]]])
    down: bool = False


@final
class FakeCanon:
    """Canon as a test drives it. ``twin`` is the in-memory Canon itself, for everything not in the vocabulary."""

    def __init__(self, parts: Parts) -> None:
        self.twin = parts.canon
        self._parts = parts
        self._memory = _Memory()
        self._numbers = itertools.count(1)
        parts.canon.interactions.on_created = self._created

    # --- what people do ---------------------------------------------------------------------------------------------

    def group(self, name: str, *people: str) -> str:
        """Open a group conversation of ``people`` and the agent; returns its id, which is its name."""
        self._memory.members[name] = ("group", people)
        return name

    def says(
        self,
        text: str,
        *,
        by: str = "dana",
        conversation: str | None = None,
        attachments: Sequence[Attachment] = (),
        **fields: Any,  # noqa: ANN401 - any message field
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
            TypeError: an attachment is no pair of a name and bytes.
        """
        check_attachments(attachments)
        message_id = f"msg-{next(self._numbers)}"
        where = self._conversation(conversation or f"with-{by}", by)
        message = {
            "id": message_id,
            "senderId": by,
            "senderName": by.capitalize(),
            "senderType": "human",
            "text": text,
            "attachments": [self._hosted(*item) for item in attachments],
            **fields,
        }
        self._emit(where, message, dispatch=True)
        return message_id

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

        A card without actions is only shown: it waits for nobody and is never the one that is meant.

        Args:
            card: which card.
            action: the id of the action; the card's first by default.
            values: what was filled in.
            by: who answers; anybody but the person asked is somebody the plugin must not believe.
            after: seconds the person takes.

        Raises:
            ValueError: the open card has no such action, or ``card`` has no action at all.
        """
        if isinstance(card, Mapping) and not interactive(dict(card)):
            raise ValueError("this card has no action, so nobody can answer it; it is only shown")
        answer = {"status": "submitted", "actionId": action, "values": dict(values or {})}
        self._plan(Plan("card", lambda made: _is_card(made, card), answer, by, after))

    def approves(self, request: Mapping[str, Any] | str | None = None, *, by: str | None = None) -> None:
        """Let the person asked (or ``by``) allow an approval: ``request`` or its id; the open or next one if none.

        Raises:
            ValueError: nobody was ever asked for this approval.
        """
        self._decide("allow", request, by)

    def denies(self, request: Mapping[str, Any] | str | None = None, *, by: str | None = None) -> None:
        """Let the person asked (or ``by``) deny an approval; see :meth:`approves`."""
        self._decide("deny", request, by)

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
        """Return the agent's durable messages in order, of one conversation or all."""
        self._parts.machine.advance()
        return [item for item in self.twin.messages if conversation in {None, item.conversation_id}]

    def texts(self, conversation: str | None = None) -> list[str]:
        """Return the texts of :meth:`messages`."""
        return [message.text for message in self.messages(conversation)]

    def cards(self, *, open_only: bool = False) -> list[Mapping[str, Any]]:
        """Return the cards that were shown, in order; ``open_only`` leaves those that still wait for an answer."""
        return [
            made.body["card"]
            for (kind, _), made in self.twin.interactions.requests.items()
            if kind == "card" and (_is_open(kind, made) or not open_only)
        ]

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run ``work`` on the plugin's loop, and what follows from it."""
        self._parts.machine.run(work)
        self._parts.machine.advance()

    def call(self, work: Callable[[], object]) -> None:
        """Call ``work`` on the plugin's loop, and let follow what does."""
        self._parts.machine.loop.call_soon_threadsafe(work)
        self._parts.machine.advance()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _conversation(self, name: str, by: str) -> Mapping[str, Any]:
        kind, people = self._memory.members.setdefault(name, ("direct", (by,)))
        return {"id": name, "type": kind, "name": name, "memberIds": [*people, AGENT.agent_id]}

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
        self._send(StreamEvent("message.created", payload, f"evt_{next(self._numbers):08d}"))

    def _send(self, event: StreamEvent) -> None:
        if self._memory.down:
            self._memory.missed.append(event)
            return
        self._parts.machine.loop.call_soon_threadsafe(self._parts.stream.emit, event)
        self._parts.machine.advance()

    def _decide(self, decision: str, request: Mapping[str, Any] | str | None, by: str | None) -> None:
        wanted = request.get("approvalId") if isinstance(request, Mapping) else request
        asked = [identifier for kind, identifier in self.twin.interactions.requests if kind == "approval"]
        if request is not None and wanted not in asked:
            raise ValueError(f"there is no approval {wanted!r}; asked for: {', '.join(asked) or 'none yet'}")

        def fits(made: Interaction) -> bool:
            return wanted in {None, made.body.get("approvalId")}

        self._plan(Plan("approval", fits, {"status": decision}, by, 0.0))

    def _plan(self, plan: Plan) -> None:
        for (kind, identifier), made in self.twin.interactions.requests.items():
            if kind == plan.kind and _is_open(kind, made) and plan.fits(made):
                self._answer(identifier, made, plan)
                self._parts.machine.advance()
                return
        self._memory.plans.append(plan)

    def _created(self, kind: str, identifier: str, made: Interaction) -> None:
        """Carry out the first plan that fits a new request; on the plugin's loop."""
        if not _is_open(kind, made):
            return
        for plan in self._memory.plans:
            if plan.kind == kind and plan.fits(made):
                self._memory.plans.remove(plan)
                self._check(made, plan)
                self._parts.machine.loop.call_later(plan.after, self._answer, identifier, made, plan)
                return

    @staticmethod
    def _check(made: Interaction, plan: Plan) -> None:
        if plan.kind == "card":
            _action(made, str(plan.answer["actionId"]))

    def _answer(self, identifier: str, made: Interaction, plan: Plan) -> None:
        answer = dict(plan.answer)
        if plan.kind == "card":
            answer["actionId"] = _action(made, str(answer["actionId"]))
        by = plan.by or made.responder
        self.twin.interactions.answer(plan.kind, identifier, answer, by=by)
        if plan.kind == "approval":
            self._parts.machine.loop.call_soon_threadsafe(self._tell, identifier, made, by, str(answer["status"]))

    def _tell(self, identifier: str, made: Interaction, by: str, decision: str) -> None:
        """Put the receipt of a decision on the stream; on the plugin's loop."""
        name = str(made.body["conversationId"])
        metadata = {"type": "approval_reply", "approvalId": identifier, "decision": decision}
        message = {
            "id": f"receipt-{identifier}",
            "senderId": by,
            "senderType": "human",
            "text": decision,
            "metadata": metadata,
        }
        payload = {"conversationId": name, "conversation": self._conversation(name, by), "message": message}
        event = StreamEvent("message.created", payload, f"evt_{next(self._numbers):08d}")
        if self._memory.down:
            self._memory.missed.append(event)
        else:
            self._parts.stream.emit(event)


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


def _is_open(kind: str, made: Interaction) -> bool:
    """Whether somebody can still answer; nobody ever can where there is nothing to choose."""
    if made.answer is not None or made.taken_at is not None:
        return False
    return kind != "card" or interactive(made.body["card"])


def _is_card(made: Interaction, card: Card) -> bool:
    if card is None:
        return True
    shown = made.body["card"]
    return card in {made.body.get("cardId"), shown.get("title")} if isinstance(card, str) else shown == card


def _action(made: Interaction, wanted: str) -> str:
    offered = [
        str(action["id"])
        for block in made.body["card"].get("blocks", ())
        if block.get("kind") == "actions"
        for action in block.get("actions", ())
    ]
    if wanted and wanted not in offered:
        raise ValueError(f"the card offers {', '.join(offered)}, not {wanted}")
    return wanted or offered[0]
