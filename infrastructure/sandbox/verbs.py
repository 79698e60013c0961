"""The verb wire of the loopback Canon: ``send_to`` with its admission, ``no_reply`` (canon-wire §8, §11.1 row 19)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from canon_hermes_plugin.infrastructure.sandbox.records import Json, RefusedError, as_object
from canon_hermes_plugin.infrastructure.sandbox.state import MAX_TEXT_BYTES, CanonState

WIRE = "canon.verb-wire.v1"
MAX_PENDING_CONTACTS = 10
MAX_REASON = 500

Admission = Literal["open", "approval-required", "owner-only", "setup-required", "unavailable", "no-session"]
_REFUSALS: dict[str, Json] = {
    "owner-only": {"status": "blocked", "reason": "owner-only"},
    "setup-required": {"status": "setup_required", "reason": "setup-required"},
    "unavailable": {"status": "unavailable", "reason": "unavailable"},
    "no-session": {"status": "no_session", "reason": "no-session"},
}


@dataclass(slots=True)
class ContactRequest:
    """A pending request to talk to somebody, with the opener that waits for it."""

    id: str
    target: str
    text: str | None
    note: str | None
    status: Literal["pending", "approved", "rejected"] = "pending"
    conversation_id: str | None = None


class VerbDesk:
    """Whom the agent may reach, and what it reported. Public methods may be called from any thread."""

    def __init__(self, state: CanonState) -> None:
        self._state = state
        self._admission: dict[str, Admission] = {}
        self.contacts: list[ContactRequest] = []

    def admit(self, user_id: str, admission: Admission) -> None:
        """Choose how ``send_to`` reaches a person; everybody known is ``open`` by default."""
        with self._state.lock:
            self._admission[user_id] = admission

    def approve(self, request_id: str) -> ContactRequest:
        """Approve a contact request: the opener is delivered once, as the first message of a new conversation."""
        with self._state.lock:
            request = self._pending(request_id)
            request.status = "approved"
            request.conversation_id = f"conv_dm_{request.target}"
            self._admission[request.target] = "open"
            self._state.add_conversation(request.conversation_id, request.target)
            if request.text is not None:
                self._state.store_outbound({"conversationId": request.conversation_id, "text": request.text})
            self._state.events.append("contact.approved", {"requestId": request.id, "targetId": request.target})
            self._state.lock.notify_all()
            return request

    def reject(self, request_id: str) -> ContactRequest:
        """Reject a contact request; the opener is dropped."""
        with self._state.lock:
            request = self._pending(request_id)
            request.status = "rejected"
            return request

    def call(self, verb: str, body: Json) -> Json:
        """R17: check the envelope, run the verb, wrap its value."""
        with self._state.lock:
            envelope, value = _unwrapped(verb, body)
            result = {"send_to": self._send_to, "no_reply": self._no_reply}.get(verb)
            if result is None:
                raise RefusedError(404, "unknown verb")
            return {"wire": WIRE, "verb": verb, "result": {"encoding": "json", "value": result(envelope, value)}}

    def _send_to(self, envelope: Json, value: Json) -> Json:
        target, text = envelope.get("targetUserId"), value.get("text")
        if not isinstance(target, str) or not target:
            raise RefusedError(400, "targetUserId is required")
        if target not in self._state.people:
            raise RefusedError(404, "user not found")
        if text is not None and (not isinstance(text, str) or len(text.encode("utf-8")) > MAX_TEXT_BYTES):
            raise RefusedError(400, f"text exceeds {MAX_TEXT_BYTES} UTF-8 bytes")
        self._state.logs.verbs.append({"verb": "send_to", "envelope": envelope, "value": value})
        admission = self._admission.get(target, "open")
        if admission == "approval-required":
            return self._request(target, text, value.get("requestMessage"))
        return _REFUSALS.get(admission) or self._messaged(target, text)

    def _messaged(self, target: str, text: str | None) -> Json:
        conversation_id = f"conv_dm_{target}"
        created = conversation_id not in self._state.conversations
        if created:
            self._state.add_conversation(conversation_id, target)
        answer: Json = {"status": "messaged", "conversationId": conversation_id, "created": created}
        answer["reused"] = not created
        if text is not None:
            answer["messageId"] = self._state.store_outbound({"conversationId": conversation_id, "text": text})[0].id
        return answer

    def _request(self, target: str, text: str | None, note: str | None) -> Json:
        pending = [request for request in self.contacts if request.status == "pending"]
        for request in pending:
            if request.target == target:
                return {"status": "pending", "requestId": request.id, "deferredIntentId": f"intent_{request.id}"}
        if len(pending) >= MAX_PENDING_CONTACTS:
            raise RefusedError(400, f"at most {MAX_PENDING_CONTACTS} contact requests may be pending")
        request = ContactRequest(f"contact_{len(self.contacts) + 1}", target, text, note)
        self.contacts.append(request)
        self._state.events.append("contact.requested", {"requestId": request.id, "targetId": target})
        intent = None if text is None else f"intent_{request.id}"
        return {"status": "requested", "requestId": request.id, "deferredIntentId": intent}

    def _no_reply(self, envelope: Json, value: Json) -> Json:
        conversation_id = self._state.conversation(envelope)
        reason = value.get("reason")
        if reason is not None and (not isinstance(reason, str) or len(reason) > MAX_REASON):
            raise RefusedError(400, f"reason must be a text of at most {MAX_REASON} characters")
        entry: Json = {"verb": "no_reply", "conversationId": conversation_id}
        entry |= {"messageId": envelope.get("messageId"), "reasonGiven": bool(reason)}
        self._state.logs.verbs.append(entry)
        note = "This turn ends without a message."
        return {"status": "acknowledged", "conversationId": conversation_id, "note": note}

    def _pending(self, request_id: str) -> ContactRequest:
        for request in self.contacts:
            if request.id == request_id and request.status == "pending":
                return request
        raise LookupError(f"no pending contact request {request_id}")


def _unwrapped(verb: str, body: Json) -> tuple[Json, Json]:
    payload = as_object(body.get("body"))
    if body.get("wire") != WIRE or body.get("verb") != verb or payload.get("encoding") != "json":
        raise RefusedError(400, "malformed verb envelope")
    return as_object(body.get("envelope")), as_object(payload.get("value"))
