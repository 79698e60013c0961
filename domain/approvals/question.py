"""What a detached approval shows a person: cuts, rows and identity of the request (interactions §5.3, §9.3).

Pure. Cuts count code points. The model's words are data: lone surrogates are replaced, nothing is interpreted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

TOOL_NAME_LIMIT: Final = 128
WIRE_SUMMARY_LIMIT: Final = 1_000
LEDGER_SUMMARY_LIMIT: Final = 500
CONTEXT_ROWS: Final = 6
LABEL_LIMIT: Final = 80
VALUE_LIMIT: Final = 500
OPTION_COUNT: Final = 8


@dataclass(frozen=True, slots=True)
class Question:
    """A detached approval as it will be asked.

    Attributes:
        tool_name: heading, at most 128 code points.
        summary: the question, at most 1,000 code points.
        details: rows of label and value.
    """

    tool_name: str
    summary: str
    details: tuple[Mapping[str, Any], ...]

    @property
    def ledger_summary(self) -> str:
        """The summary as the ledger keeps it, at most 500 code points."""
        return self.summary[:LEDGER_SUMMARY_LIMIT]


def clean(value: object) -> str:
    """Return ``value`` as stripped text that UTF-8 can carry; ``None`` gives an empty string."""
    if value is None:
        return ""
    return str(value).encode("utf-8", "replace").decode("utf-8").strip()


def build_question(*, title: object, question: object, options: object, context: object) -> Question:
    """Return the question.

    Raises:
        ValueError: neither title nor question has text.
    """
    heading, asked = clean(title), clean(question)
    if not heading and not asked:
        raise ValueError("request_approval needs a title or a question with text")
    rows = (*_context_rows(context), *_option_row(options))
    return Question(heading[:TOOL_NAME_LIMIT] or "Approval", (asked or heading)[:WIRE_SUMMARY_LIMIT], rows)


def creation_body(
    question: Question, *, conversation_id: str, approval_id: str, expires_at: int, responder: str | None
) -> dict[str, Any]:
    """Return the create body (canon-wire §9.1). A session rule is never offered (I37)."""
    body: dict[str, Any] = {
        "interactionKind": "approval",
        "conversationId": conversation_id,
        "approvalId": approval_id,
        "toolName": question.tool_name,
        "toolSummary": question.summary,
        "expiresAt": expires_at,
        "category": "command",
        "risk": "high",
        "riskLevel": "destructive",
        "allowSessionRule": False,
        "native": {"runtime": "hermes", "method": "detached_approval", "requestId": approval_id},
    }
    if responder:
        body["responseUserId"] = responder
    if question.details:
        body["details"] = list(question.details)
    return body


def _context_rows(context: object) -> list[Mapping[str, Any]]:
    if isinstance(context, str):
        text = clean(context)[:VALUE_LIMIT]
        return [{"label": "Context", "value": text}] if text else []
    if not isinstance(context, Mapping):
        return []
    pairs = list(cast("Mapping[object, object]", context).items())[:CONTEXT_ROWS]
    rows = [{"label": clean(key)[:LABEL_LIMIT], "value": clean(value)[:VALUE_LIMIT]} for key, value in pairs]
    return [row for row in rows if row["label"] and row["value"]]


def _option_row(options: object) -> list[Mapping[str, Any]]:
    if not isinstance(options, list | tuple):
        return []
    shown = [clean(option) for option in list(cast("Sequence[object]", options))[:OPTION_COUNT]]
    text = ", ".join(option for option in shown if option)[:VALUE_LIMIT]
    return [{"label": "Options", "value": text}] if text else []
