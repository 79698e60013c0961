"""Runtime interactions of the loopback Canon: inputs, cards and approvals (canon-wire §9, §11.1 rows 13 to 17).

Decides: ids are unique for ever, who may answer, what a consume returns and how often, expiry and the tombstones of
approvals. Every public method may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from canon_hermes_plugin.infrastructure.sandbox.records import Json, RefusedError, as_list, as_object
from canon_hermes_plugin.infrastructure.sandbox.state import CanonState, compact, new_token

InteractionKind = Literal["input", "card", "approval"]
ID_FIELDS: dict[str, InteractionKind] = {"inputId": "input", "cardId": "card", "approvalId": "approval"}
MAX_CARD_BYTES = 32_768
SHORT_CAP_MS = 30 * 60_000
TOMBSTONE_MS = 72 * 3_600_000
_LIMITS = {"toolName": 128, "toolSummary": 1000}


@dataclass(slots=True)
class Interaction:
    """One request to a person.

    Attributes:
        kind: ``input``, ``card`` or ``approval``.
        id: its ``inputId``, ``cardId`` or ``approvalId``.
        responder: the only person who may answer.
        expires_at: the effective expiry, milliseconds since the epoch.
        body: the create request.
        status: ``open``, ``answered``, ``cancelled`` or ``expired``.
        result: what a consume returns once there is an answer.
        taken_at: when the answer was consumed first.
    """

    kind: InteractionKind
    id: str
    conversation_id: str
    responder: str
    expires_at: int
    body: Json
    message_id: str
    status: Literal["open", "answered", "cancelled", "expired"] = "open"
    result: Json = field(default_factory=dict[str, Any])
    taken_at: int | None = None


@dataclass(slots=True)
class InteractionPolicy:
    """Switches.

    Attributes:
        short_cap: refuse an expiry more than 30 minutes ahead with 400, naming ``expiresAt`` (row 15).
        clamp_ms: shorten every expiry to this many milliseconds ahead.
        echo_responder: whether the create answer names the responder.
        echo_expiry: whether the create answer carries ``expiresAt``.
        on_create: called inside the create call, before its answer leaves: answering there makes the reply overtake the
            answer (row 16).
    """

    short_cap: bool = False
    clamp_ms: int | None = None
    echo_responder: bool = True
    echo_expiry: bool = True
    on_create: Callable[[Interaction], None] | None = None


class InteractionDesk:
    """Keeps every interaction ever created."""

    def __init__(self, state: CanonState) -> None:
        self._state = state
        self._all: dict[tuple[str, str], Interaction] = {}
        self.policy = InteractionPolicy()

    # What the agent asks ---------------------------------------------------------------------------------------------

    def create(self, body: Json) -> Json:
        """R15. Refuses malformed bodies with 400 and an id that was ever used with 409."""
        state = self._state
        with state.lock:
            conversation_id = state.conversation(body)
            kind, interaction_id = self._address(body)
            if kind == "card" and not interaction_id:
                interaction_id = new_token("card")
            if not interaction_id:
                raise RefusedError(400, f"{kind}Id is required")
            if (kind, interaction_id) in self._all:
                raise RefusedError(409, f"{kind} id was used before", "ID_CONFLICT")
            _check_content(kind, body)
            expires_at = self._expiry(kind, body)
            responder = self._responder(body)
            message_id = f"msg_{kind}_{len(self._all) + 1}"
            made = Interaction(kind, interaction_id, conversation_id, responder, expires_at, dict(body), message_id)
            self._all[kind, interaction_id] = made
            if self.policy.on_create is not None:
                self.policy.on_create(made)
            state.lock.notify_all()
            return self._created(made)

    def consume(self, body: Json) -> Json:
        """R16: poll, take the answer, or cancel."""
        state = self._state
        with state.lock:
            state.conversation(body)
            found = self._all.get(self._address(body))
            if found is None or found.conversation_id != body.get("conversationId"):
                raise RefusedError(404, "interaction not found")
            self._expire_if_due(found)
            if found.status == "open":
                if body.get("cancel") is not True:
                    return {"status": "pending", "expiresAt": found.expires_at}
                self._close(found, "cancelled", {"status": "cancelled"})
            return self._take(found)

    # What people do --------------------------------------------------------------------------------------------------

    def find(self, interaction_id: str | None = None) -> Interaction:
        """Return the interaction with that id, or the newest one; LookupError when there is none."""
        with self._state.lock:
            for made in reversed(self._all.values()):
                if interaction_id in {None, made.id}:
                    return made
        raise LookupError(f"no interaction {interaction_id or ''}")

    def all(self, *kinds: str) -> list[Interaction]:
        """Return the interactions in order of creation, all or those of some kinds."""
        with self._state.lock:
            return [made for made in self._all.values() if not kinds or made.kind in kinds]

    def waiting(self, conversation_id: str | None = None) -> list[Interaction]:
        """Return those that still wait for an answer."""
        with self._state.lock:
            here = [made for made in self._all.values() if conversation_id in {None, made.conversation_id}]
            for made in here:
                self._expire_if_due(made)
            return [made for made in here if made.status == "open" and _interactive(made)]

    def answer(self, interaction_id: str | None = None, *, user_id: str | None = None, **result: Any) -> Interaction:  # noqa: ANN401 - wire fields
        """Answer as ``user_id`` (the responder by default) and announce it on the stream.

        ``result`` are the wire fields of the consume answer: ``decision="allow"`` (or ``"deny"``) with an optional
        ``sessionRule`` for an approval; ``value``, ``answers`` or ``choice`` for an input; ``actionId`` and
        ``values`` for a card.

        Raises:
            LookupError: no such interaction.
            PermissionError: somebody other than the responder.
            ValueError: it no longer waits.
        """
        with self._state.lock:
            found = self.find(interaction_id)
            user = user_id or found.responder
            self._expire_if_due(found)
            if user != found.responder:
                raise PermissionError(f"only {found.responder} may answer")
            if found.status != "open":
                raise ValueError(f"it is {found.status}")
            status = result.pop("decision", None) or "submitted"
            answered = {"status": status, "respondedBy": user, "responseUserId": found.responder, **result}
            self._settle(found, "answered", {**answered, _id_field(found.kind): found.id})
            self._announce(found, "reply", user, {"decision": status} if found.kind == "approval" else {})
            return found

    def expire(self, interaction_id: str | None = None) -> None:
        """Let the time of a waiting interaction run out now."""
        with self._state.lock:
            found = self.find(interaction_id)
            found.expires_at = min(found.expires_at, self._state.now())
            self._expire_if_due(found)

    # Rules -----------------------------------------------------------------------------------------------------------

    def _address(self, body: Json) -> tuple[InteractionKind, str]:
        kind = body.get("interactionKind")
        for id_field, known in ID_FIELDS.items():
            if known == kind:
                value = body.get(id_field)
                return known, value if isinstance(value, str) else ""
        raise RefusedError(400, "unknown interactionKind")

    def _expiry(self, kind: InteractionKind, body: Json) -> int:
        now, wanted = self._state.now(), body.get("expiresAt")
        if wanted is None and kind == "card":
            wanted = now + SHORT_CAP_MS
        if not isinstance(wanted, int) or isinstance(wanted, bool):
            raise RefusedError(400, "expiresAt must be milliseconds since the epoch")
        if self.policy.short_cap and wanted > now + SHORT_CAP_MS:
            raise RefusedError(400, "expiresAt must be at most 30 minutes ahead")
        return wanted if self.policy.clamp_ms is None else min(wanted, now + self.policy.clamp_ms)

    def _responder(self, body: Json) -> str:
        named = body.get("responseUserId")
        if named is None:
            return self._state.identity.owner.id
        person = self._state.people.get(str(named))
        if person is None or person.kind != "human":
            raise RefusedError(400, "responseUserId must be a person of this conversation")
        return person.id

    def _created(self, made: Interaction) -> Json:
        answer: Json = {"success": True, "messageId": made.message_id, _id_field(made.kind): made.id}
        if self.policy.echo_expiry:
            answer["expiresAt"] = made.expires_at
        if self.policy.echo_responder:
            answer["responseUserId"] = made.responder
        if made.kind == "card":
            answer["interactive"] = _interactive(made)
        if made.kind == "approval":
            owner = made.responder == self._state.identity.owner.id
            answer["allowSessionRule"] = made.body.get("allowSessionRule") is True and owner
        return answer

    def _take(self, found: Interaction) -> Json:
        now = self._state.now()
        if found.taken_at is None:
            found.taken_at = now
            return dict(found.result)
        decided = found.kind == "approval" and found.status == "answered"
        if decided and now - found.taken_at <= TOMBSTONE_MS:
            return dict(found.result)
        raise RefusedError(404, "interaction not found")

    def _expire_if_due(self, found: Interaction) -> None:
        if found.status == "open" and self._state.now() >= found.expires_at:
            self._close(found, "expired", {"status": "timeout"})

    def _close(self, found: Interaction, status: Literal["cancelled", "expired"], result: Json) -> None:
        self._settle(found, status, result)
        self._announce(found, "outcome", self._state.identity.owner.id, {"outcome": result["status"]})

    def _settle(self, found: Interaction, status: Literal["answered", "cancelled", "expired"], result: Json) -> None:
        found.status, found.result = status, result
        self._state.lock.notify_all()

    def _announce(self, found: Interaction, what: str, user_id: str, extra: Json) -> None:
        if found.kind == "card":
            return
        family = "approval" if found.kind == "approval" else "runtime_input"
        metadata = {"type": f"{family}_{what}", _id_field(found.kind): found.id, **extra}
        person = self._state.people[user_id]
        fields = {"text": _spoken(found.result), "metadata": metadata}
        self._state.store_inbound(found.conversation_id, person, fields, {})


def _spoken(result: Json) -> str:
    """Return the words an answer or outcome is announced with."""
    choice = as_object(result.get("choice"))
    return str(result.get("value") or choice.get("label") or result["status"])


def _id_field(kind: InteractionKind) -> str:
    return f"{kind}Id"


def _interactive(made: Interaction) -> bool:
    if made.kind != "card":
        return True
    blocks = map(as_object, as_list(as_object(made.body.get("card")).get("blocks")))
    return any(as_list(block.get("actions")) for block in blocks if block.get("kind") == "actions")


def _check_content(kind: InteractionKind, body: Json) -> None:
    if kind == "card":
        card = as_object(body.get("card"))
        if card.get("schema") != "canon.card.v1":
            raise RefusedError(400, "card must be a canon.card.v1 document")
        if len(compact(card).encode("utf-8", "surrogatepass")) > MAX_CARD_BYTES:
            raise RefusedError(400, f"card exceeds {MAX_CARD_BYTES} bytes")
    if kind == "approval":
        for name, limit in _LIMITS.items():
            value = body.get(name)
            if not isinstance(value, str) or not value or len(value) > limit:
                raise RefusedError(400, f"{name} must be a text of at most {limit} characters")
    if kind == "input" and not isinstance(body.get("kind"), str):
        raise RefusedError(400, "kind is required")
