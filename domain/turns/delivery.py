"""One durable operation at a time: reserve, settle, replay or release (turns §4.3).

Decides which plan may be sent and what a failure means for it. Refuses to know texts, metadata and how a message
travels: a failure reaches it only as *definitive* or *ambiguous*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from canon_hermes_plugin.domain.turns.plan import operation_id
from canon_hermes_plugin.ports.canon import MessageSink, OutboundMessage, StoredMessage
from canon_hermes_plugin.ports.errors import CanonError, Certainty, DeliveryError


class DeliveryState(Enum):
    """Whether an operation of the scope is unsettled."""

    IDLE = "idle"
    RESERVED = "reserved"


class DeliveryEvent(Enum):
    """What can happen to the operation of a scope."""

    PREPARE_NEW = "prepare, nothing reserved"
    PREPARE_SAME = "prepare the same parts"
    PREPARE_OTHER = "prepare other parts"
    SETTLE = "every part stored"
    RELEASE = "provably nothing stored"
    KEEP = "may be stored"


class Verdict(Enum):
    """What the caller does next."""

    SEND = "send the new plan"
    REPLAY = "send the stored plan"
    REFUSE = "send nothing"
    ADVANCE = "the ordinal advances"
    FREE = "the ordinal is free again"
    HOLD = "the plan stays reserved"


TRANSITIONS: Mapping[tuple[DeliveryState, DeliveryEvent], tuple[DeliveryState, Verdict]] = MappingProxyType(
    {
        (DeliveryState.IDLE, DeliveryEvent.PREPARE_NEW): (DeliveryState.RESERVED, Verdict.SEND),
        (DeliveryState.RESERVED, DeliveryEvent.PREPARE_SAME): (DeliveryState.RESERVED, Verdict.REPLAY),
        (DeliveryState.RESERVED, DeliveryEvent.PREPARE_OTHER): (DeliveryState.RESERVED, Verdict.REFUSE),
        (DeliveryState.RESERVED, DeliveryEvent.SETTLE): (DeliveryState.IDLE, Verdict.ADVANCE),
        (DeliveryState.RESERVED, DeliveryEvent.RELEASE): (DeliveryState.IDLE, Verdict.FREE),
        (DeliveryState.RESERVED, DeliveryEvent.KEEP): (DeliveryState.RESERVED, Verdict.HOLD),
    }
)
"""Every transition that exists; any other pair is a programming error."""


@dataclass(slots=True)
class Operation:
    """A fixed plan and how far it got.

    Attributes:
        messages: what is sent, in order, byte for byte on every replay.
        receipts: Canon's receipts of the messages known to be stored.
        inherited: an earlier process began to send it, with unknown success.
        doubtful: the first message without a receipt may be stored all the same, judged over all attempts ever made.
    """

    messages: tuple[OutboundMessage, ...]
    receipts: list[StoredMessage] = field(default_factory=list[StoredMessage])
    inherited: bool = False
    doubtful: bool = field(init=False)

    def __post_init__(self) -> None:
        self.doubtful = self.inherited

    @property
    def id(self) -> str:
        """The id of its last message, which names the operation."""
        return self.messages[-1].message_id or ""

    @property
    def conversation_id(self) -> str:
        """Where it goes."""
        return self.messages[-1].conversation_id

    @property
    def settled(self) -> bool:
        """Whether every message is known to be stored."""
        return len(self.receipts) == len(self.messages)

    @property
    def unsettled(self) -> OutboundMessage:
        """The first message that is not known to be stored."""
        return self.messages[len(self.receipts)]

    @property
    def texts(self) -> tuple[str, ...]:
        """The parts: two plans with equal parts are the same operation."""
        return tuple(message.text for message in self.messages)


class DeliveryBook:
    """The operations of one scope (a turn), one after another.

    Args:
        conversation_id: where they go.
        scope: the turn id.
    """

    def __init__(self, conversation_id: str, scope: str) -> None:
        self._conversation_id = conversation_id
        self._scope = scope
        self._state = DeliveryState.IDLE
        self._ordinal = 0
        self._operation: Operation | None = None

    @property
    def settled_ordinal(self) -> int:
        """How many operations were confirmed."""
        return self._ordinal

    @property
    def state(self) -> DeliveryState:
        """Whether an operation is unsettled."""
        return self._state

    @property
    def next_id(self) -> str:
        """The id of the next, or of the unsettled, operation."""
        return operation_id(self._conversation_id, self._scope, self._ordinal + 1)

    def prepare(self, operation: Operation) -> tuple[Verdict, Operation]:
        """Reserve ``operation``, or return the stored one to replay; refused when another one is unsettled."""
        held = self._operation
        if held is None:
            self._operation = operation
            return self._apply(DeliveryEvent.PREPARE_NEW), operation
        same = held.texts == operation.texts
        return self._apply(DeliveryEvent.PREPARE_SAME if same else DeliveryEvent.PREPARE_OTHER), held

    def settle(self) -> Verdict:
        """The unsettled operation is stored completely."""
        verdict = self._apply(DeliveryEvent.SETTLE)
        self._ordinal += 1
        self._operation = None
        return verdict

    def fail(self, certainty: Certainty) -> Verdict:
        """The unsettled operation failed; it stays reserved if any of it may be stored."""
        held = self._operation
        if held is not None and certainty == "definitive" and len(held.messages) == 1:
            self._operation = None
            return self._apply(DeliveryEvent.RELEASE)
        return self._apply(DeliveryEvent.KEEP)

    def _apply(self, event: DeliveryEvent) -> Verdict:
        self._state, verdict = TRANSITIONS[self._state, event]
        return verdict


async def transmit(sink: MessageSink, operation: Operation) -> None:
    """Send what of ``operation`` is unsettled, strictly in order, and note every receipt.

    Raises:
        DeliveryError: at the first message that did not settle; nothing after it was sent.
    """
    while not operation.settled:
        # Whoever is cut short here does not know what became of it.
        before, operation.doubtful = operation.doubtful, True
        try:
            receipt = await sink.send(operation.unsettled)
        except DeliveryError as error:
            operation.doubtful = before or error.certainty == "ambiguous"
            raise
        except CanonError as error:
            # A sink that cannot tell what happened leaves the outcome open.
            raise DeliveryError(str(error), certainty="ambiguous", retryable=error.retryable) from error
        operation.receipts.append(receipt)
        operation.doubtful = operation.inherited


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {DeliveryState.IDLE.value}"]
    for (state, event), (after, verdict) in TRANSITIONS.items():
        lines.append(f"    {state.value} --> {after.value}: {event.value} / {verdict.value}")
    return "\n".join(lines)
