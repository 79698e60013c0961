"""The model-facing tool as the host shows it: name, words, parameters (interactions §3)."""

from __future__ import annotations

from typing import Any, Final

TOOL_NAME: Final = "canon_runtime_control"
TOOLSET: Final = "canon"
TOOLSET_ALIAS: Final = "canon_runtime"
EMOJI: Final = "C"
ACTIONS: Final = (
    "request_card",
    "send_card",
    "request_input",
    "request_approval",
    "check_approval",
    "reach_out",
    "no_reply",
)

DESCRIPTION: Final = (
    "Canon's card and input plumbing, for things ordinary text cannot do. "
    "request_card shows a card and waits for the answer; send_card only shows it; request_input asks for typed input. "
    "request_approval asks a person for a decision that may take hours: it is detached, returns status pending at once "
    "and must not be waited for; the decision arrives later as a message in the conversation, or ask check_approval "
    "with the approvalId. The status unknown is not a denial. "
    "reach_out messages a person outside this conversation (targetUserId, text), opens a conversation, or leaves a "
    "contact request carrying requestMessage; attachments and hidden session set-up cannot be parked with it; "
    "setup_required comes without a contact request; denied with reason owner-only is final. "
    "no_reply ends this turn in silence: nothing is posted, later text is dropped, target is ignored, and reason stays "
    "private."
)


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["action"],
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do."},
        "target": _text("canon:<conversation id>; default: the active Canon conversation."),
        "targetUserId": _text("reach_out: the Canon user to reach."),
        "text": _text("reach_out: the opening message, at most 4 KiB UTF-8; leave out to only open a conversation."),
        "requestMessage": _text("reach_out: words for a contact request, at most 500 characters; default: text."),
        "question": _text("request_approval: what is to be decided."),
        "options": {
            "type": "array",
            "items": {"type": "string"},
            "description": "request_approval: options to show, at most 8. The answer is allow or deny all the same.",
        },
        "context": {"description": "request_approval: a string, or an object of up to 6 label -> value rows."},
        "approvalId": _text("check_approval: the id request_approval returned."),
        "reason": _text("no_reply: a private reason; it is not shown to anybody."),
        "card": {"type": "object", "description": "request_card, send_card: a canon.card.v1 card."},
        "cardId": _text("request_card, send_card: a stable id for the card."),
        "inputId": _text("request_input: a unique id for this question."),
        "kind": _text("request_input: clarify (default), secret or sudo; the last two go to the owner only."),
        "title": _text("Heading of an input or approval."),
        "prompt": _text("request_input: the question."),
        "choices": {
            "type": "array",
            "items": {"type": "object"},
            "description": "request_input: label and value each.",
        },
        "questions": {
            "type": "array",
            "items": {"type": "object"},
            "description": "request_input: objects with id, question and optionally isSecret.",
        },
        "responseUserId": _text("Ignored: Canon decides who may answer."),
        "runtimeId": _text("request_card, send_card: runtime id to attach."),
        "turnId": _text("Turn id to attach."),
        "timeoutSeconds": {
            "type": "integer",
            "description": "How long to wait, at least 5: 300 by default, at most 1800; request_approval 259200 both.",
        },
        "sensitive": {"type": "boolean", "description": "request_input: the answer is confidential; owner only."},
    },
}

SCHEMA: Final[dict[str, Any]] = {"name": TOOL_NAME, "description": DESCRIPTION, "parameters": PARAMETERS}
