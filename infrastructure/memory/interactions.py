"""Canon's store of runtime interactions, as a twin: unique ids for ever, single use, expiry (canon-wire §9)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from canon_hermes_plugin.domain.cards.interactive import interactive
from canon_hermes_plugin.ports.canon import JsonObject
from canon_hermes_plugin.ports.errors import CanonApiError
from canon_hermes_plugin.ports.time import Clock

_ID_FIELDS = {"input": "inputId", "card": "cardId", "approval": "approvalId"}
_REPLAY_MS = 72 * 3_600_000


@dataclass(slots=True)
class Interaction:
    """One request, as stored."""

    body: JsonObject
    responder: str
    expires_at: int
    answer: JsonObject | None = None
    taken_at: int | None = None
    cancelled: bool = False
    extras: dict[str, Any] = field(default_factory=dict[str, Any])


@final
class InteractionStore:
    """Create, answer, consume. ``owner_id`` answers what names no responder.

    Attributes:
        requests: every request by kind and id.
        on_created: told about each new request, which may be answered at once.
    """

    def __init__(self, clock: Clock, owner_id: str) -> None:
        self._clock = clock
        self._owner_id = owner_id
        self._ids = itertools.count(1)
        self.requests: dict[tuple[str, str], Interaction] = {}
        self.on_created: Callable[[str, str, Interaction], None] = _ignore

    def create(self, body: JsonObject) -> JsonObject:
        """Store a request; 400 for a malformed one, 409 for an id that was ever used."""
        kind, identifier = self._address(body, mint=True)
        if (kind, identifier) in self.requests:
            raise CanonApiError(409)
        expires_at = body.get("expiresAt")
        if not isinstance(expires_at, int):
            raise CanonApiError(400)
        responder = str(body.get("responseUserId") or self._owner_id)
        self.requests[kind, identifier] = Interaction(dict(body), responder, expires_at)
        answer: dict[str, Any] = {
            "success": True,
            "messageId": f"msg-interaction-{next(self._ids)}",
            _ID_FIELDS[kind]: identifier,
            "expiresAt": expires_at,
            "responseUserId": responder,
        }
        if kind == "approval":
            answer["allowSessionRule"] = body.get("allowSessionRule") is True and responder == self._owner_id
        if kind == "card":
            answer["interactive"] = interactive(body.get("card"))
        self.on_created(kind, identifier, self.requests[kind, identifier])
        return answer

    def answer(self, kind: str, identifier: str, answer: JsonObject, *, by: str | None = None) -> None:
        """Let the responder (or ``by``) answer, for example ``{"status": "submitted", "value": "yes"}``."""
        found = self.requests[kind, identifier]
        found.answer = {"respondedBy": by or found.responder, **answer}

    def consume(self, body: JsonObject) -> JsonObject:
        """Take an answer, or cancel; 404 for an unknown id and for one that was taken."""
        kind, identifier = self._address(body)
        found = self.requests.get((kind, identifier))
        if found is None or found.body.get("conversationId") != body.get("conversationId"):
            raise CanonApiError(404)
        now = self._clock.now_ms()
        if found.taken_at is not None:
            if kind == "approval" and found.answer is not None and now - found.taken_at <= _REPLAY_MS:
                return found.answer
            raise CanonApiError(404)
        if found.answer is not None:
            found.taken_at = now
            return found.answer
        if now > found.expires_at:
            found.taken_at = now
            return {"status": "timeout"}
        if body.get("cancel") is True:
            found.taken_at = now
            found.cancelled = True
            return {"status": "deny" if kind == "approval" else "cancelled"}
        return {"status": "pending", "expiresAt": found.expires_at}

    def _address(self, body: JsonObject, *, mint: bool = False) -> tuple[str, str]:
        kind = str(body.get("interactionKind"))
        if kind not in _ID_FIELDS or not body.get("conversationId"):
            raise CanonApiError(400)
        identifier = body.get(_ID_FIELDS[kind])
        if not identifier and kind == "card" and mint:
            identifier = f"card-{next(self._ids)}"
        if not identifier:
            raise CanonApiError(400)
        return kind, str(identifier)


def _ignore(_kind: str, _identifier: str, _made: Interaction) -> None:
    """Do nothing about a new request."""
