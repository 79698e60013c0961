"""Cards and inputs that code or the model asks for: create, wait, answer (interactions §5.1, §5.2, §10).

Decides what goes on the wire and what comes back. It knows neither the tool's arguments nor how a client is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast, final

from canon_hermes_plugin.domain.cards.interactive import interactive
from canon_hermes_plugin.domain.interactions.polling import OpenRequest, wait_for_answer
from canon_hermes_plugin.domain.interactions.responders import is_stranger
from canon_hermes_plugin.ports.canon import InteractionPort
from canon_hermes_plugin.ports.errors import CanonError
from canon_hermes_plugin.ports.time import Clock


class ResponderMismatchError(RuntimeError):
    """Canon routed the question to, or took the answer from, somebody else than the person asked."""


@dataclass(frozen=True, slots=True)
class CardOrder:
    """A valid card and where it goes.

    Attributes:
        wait: whether to wait for the answer.
        strict: the caller relies on the responder: routing is verified before waiting (D28), and a submitted answer
            must name the responder.
        extras: ``runtimeId``, ``turnId``, ``native`` when given.
    """

    card: Mapping[str, Any]
    conversation_id: str
    seconds: int
    responder: str | None = None
    card_id: str | None = None
    wait: bool = True
    strict: bool = False
    extras: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class InputOrder:
    """A typed question. ``fields`` are the optional wire fields that were given."""

    conversation_id: str
    input_id: str
    kind: str
    seconds: int
    responder: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


@final
class Questions:
    """Puts one question over one client and waits for its answer."""

    def __init__(self, canon: InteractionPort, clock: Clock, abandoned: Callable[[], bool] = lambda: False) -> None:
        self._canon = canon
        self._clock = clock
        self._abandoned = abandoned

    async def ask_card(self, order: CardOrder) -> Mapping[str, Any]:
        """Show a card; return its answer, ``displayed``, or ``timeout``.

        Raises:
            ValueError: an interactive card got no id, so nobody could wait for it.
            ResponderMismatchError: see :attr:`CardOrder.strict`, or a stranger answered (D20).
            CanonError: Canon refused the card, or the wait ended with a final error.
        """
        expires_at = self._clock.now_ms() + order.seconds * 1000
        body = _card_body(order, expires_at)
        created = await self._canon.create_interaction(body)
        card_id = created.get("cardId") or body.get("cardId")
        address = {"interactionKind": "card", "conversationId": order.conversation_id, "cardId": card_id}
        base = {"conversationId": order.conversation_id, "cardId": card_id}
        responder = created.get("responseUserId")
        if order.strict and responder is not None and responder != order.responder:
            await self._withdraw(address)
            raise ResponderMismatchError("Canon routed the card to another person than the one of this turn")
        routed = {"responseUserId": responder} if responder else {}
        told = created.get("interactive")
        waits = order.wait and (told if isinstance(told, bool) else interactive(order.card))
        if not waits:
            return {"status": "displayed", **base, **routed, "request": created}
        if not card_id:
            raise ValueError("Canon returned no card id; the card is shown but its answer cannot be awaited")
        answer = await self._wait(address, _effective(created, expires_at))
        if answer is None:
            return {"status": "timeout", **base, **routed}
        _check_answer(order, answer)
        return {"conversationId": order.conversation_id, **routed, **answer}

    async def ask_input(self, order: InputOrder) -> Mapping[str, Any]:
        """Ask for typed input; return the answer or ``timeout``; raises as :meth:`ask_card`."""
        expires_at = self._clock.now_ms() + order.seconds * 1000
        body: dict[str, Any] = {
            "interactionKind": "input",
            "conversationId": order.conversation_id,
            "inputId": order.input_id,
            "kind": order.kind,
            "expiresAt": expires_at,
            **order.fields,
        }
        if order.responder:
            body["responseUserId"] = order.responder
        created = await self._canon.create_interaction(body)
        address = {
            "interactionKind": "input",
            "conversationId": order.conversation_id,
            "inputId": order.input_id,
        }
        answer = await self._wait(address, _effective(created, expires_at))
        if answer is None:
            return {"status": "timeout", "conversationId": order.conversation_id, "inputId": order.input_id}
        if is_stranger(order.responder, answer):
            raise ResponderMismatchError("Somebody else answered than the person who was asked; the answer is not used")
        return {"conversationId": order.conversation_id, **answer}

    async def _wait(self, address: Mapping[str, Any], expires_at: float) -> Mapping[str, Any] | None:
        return await wait_for_answer(self._canon, OpenRequest(address, expires_at, self._abandoned), self._clock)

    async def _withdraw(self, address: Mapping[str, Any]) -> None:
        if not address.get("cardId"):
            return
        try:
            await self._canon.consume_interaction({**address, "cancel": True})
        except CanonError:
            return  # best effort: the mismatch itself is the error worth telling


def _card_body(order: CardOrder, expires_at: int) -> dict[str, Any]:
    body: dict[str, Any] = {
        "interactionKind": "card",
        "conversationId": order.conversation_id,
        "card": dict(order.card),
        "expiresAt": expires_at,
        **order.extras,
    }
    card_id = order.card_id or order.card.get("cardId")
    optional = {"cardId": card_id, "responseUserId": order.responder}
    return body | {name: value for name, value in optional.items() if value}


def _check_answer(order: CardOrder, answer: Mapping[str, Any]) -> None:
    by = answer.get("respondedBy")
    unnamed = order.strict and answer.get("status") == "submitted" and not by
    routed = answer.get("responseUserId")
    rerouted = order.strict and routed is not None and routed != order.responder
    if unnamed or rerouted or is_stranger(order.responder, answer):
        raise ResponderMismatchError("Somebody else answered than the person who was asked; the answer is not used")


def _effective(created: Mapping[str, Any], expires_at: int) -> float:
    value = created.get("expiresAt")
    return min(cast("float", value), expires_at) if isinstance(value, int | float) else expires_at
