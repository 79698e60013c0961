"""Reaching a person outside the conversation: one verb call and the meaning of its result (interactions §5.5, §11).

Canon owns admission, conversation, contact request and the parked opener. This module composes none of those; it checks
that the result is one it knows and fails closed otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from canon_hermes_plugin.ports.errors import MalformedResponseError

VERB: Final = "send_to"
NOTE_LIMIT: Final = 500
DENIED_NOTE: Final = (
    "Only this person's owner decides who reaches them, and the answer is final: do not retry and do not ask for a "
    "contact request."
)


@dataclass(frozen=True, slots=True)
class ReachOut:
    """A wish to reach ``target_user_id`` with an opener, or only to open the conversation."""

    target_user_id: str
    text: str | None
    note: str | None

    def envelope(self) -> dict[str, Any]:
        """Return the verb's routing part."""
        return {"targetUserId": self.target_user_id}

    def value(self) -> dict[str, Any]:
        """Return the verb's content."""
        parts = {"text": self.text, "requestMessage": self.note}
        return {name: value for name, value in parts.items() if value is not None}


def build_reach_out(*, target_user_id: object, text: object, request_message: object) -> ReachOut:
    """Return the wish.

    Raises:
        ValueError: nobody is named.
    """
    target = "" if target_user_id is None else str(target_user_id).strip()
    if not target:
        raise ValueError("reach_out needs targetUserId")
    opener = _text(text)
    note = _text(request_message) or opener
    if note is not None and len(note) > NOTE_LIMIT:
        note = note[: NOTE_LIMIT - 3] + "..."
    return ReachOut(target, opener, note)


def read_result(wish: ReachOut, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the model is told.

    Raises:
        MalformedResponseError: the result is none of the known ones; it counts as nothing done.
    """
    status = result.get("status")
    check = _SHAPES.get(status) if isinstance(status, str) else None
    if check is None or not check(result):
        raise MalformedResponseError(
            "Canon answered reach_out with a result of unknown form; nothing is known to be sent"
        )
    if status == "messaged" and wish.text is None:
        return {**result, "status": "opened"}
    if status in {"blocked", "unavailable"} and result.get("reason") == "owner-only":
        return {"status": "denied", "reason": "owner-only", "note": DENIED_NOTE}
    return result


def _text(value: object) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def _is_messaged(result: Mapping[str, Any]) -> bool:
    texts = ("messageId", "selfContextId", "sessionSelection")
    return (
        isinstance(result.get("conversationId"), str)
        and all(isinstance(result[name], str) for name in texts if name in result)
        and all(isinstance(result[name], bool) for name in ("created", "reused") if name in result)
    )


def _is_requested(result: Mapping[str, Any]) -> bool:
    return (
        "requestId" in result
        and isinstance(result["requestId"], str | None)
        and isinstance(result.get("deferredIntentId"), str | None)
    )


def _is_refused(result: Mapping[str, Any]) -> bool:
    return isinstance(result.get("reason"), str)


_SHAPES: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "messaged": _is_messaged,
    "requested": _is_requested,
    "pending": _is_requested,
    "setup_required": _is_refused,
    "no_session": _is_refused,
    "blocked": _is_refused,
    "unavailable": _is_refused,
}
