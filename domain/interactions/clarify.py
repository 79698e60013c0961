"""The host's questions with choices: what is shown and what the answer says (interactions §7.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

CHOICE_COUNT: Final = 12
LABEL_LIMIT: Final = 160
VALUE_LIMIT: Final = 400
TITLE: Final = "Question"
CANCELLED_TEXT: Final = "[The user cancelled this question without answering.]"


def unanswered_text(seconds: float) -> str:
    """Return the line the model reads when nobody answered."""
    return f"[Nobody answered within {max(1, round(seconds / 60))} minutes.]"


def normalise_choices(choices: object) -> list[dict[str, str]]:
    """Return label and value of the first twelve entries; those without a label vanish but use up their place."""
    if not isinstance(choices, list | tuple):
        return []
    pairs = [_pair(item) for item in list(cast("Iterable[object]", choices))[:CHOICE_COUNT]]
    return [{"label": label[:LABEL_LIMIT], "value": value[:VALUE_LIMIT]} for label, value in pairs if label]


def answer_text(answer: Mapping[str, Any]) -> str:
    """Return the person's words; the first rule that matches wins."""
    value = answer.get("value")
    answers = answer.get("answers")
    if isinstance(value, str) and (value.strip() or not isinstance(answers, Mapping)):
        return value
    if isinstance(answers, Mapping) and (text := _answers_text(cast("Mapping[object, Any]", answers))):
        return text
    if isinstance(value, str):
        return value
    choice = answer.get("choice")
    if not isinstance(choice, Mapping):
        return ""
    picked = cast("Mapping[str, Any]", choice)
    return _text(picked.get("value")) or _text(picked.get("label"))


def _pair(item: object) -> tuple[str, str]:
    if isinstance(item, Mapping):
        entry = cast("Mapping[str, Any]", item)
        label = next((entry[name] for name in ("label", "text", "value") if entry.get(name)), "")
        return _text(label), _text(entry.get("value") or label)
    return _text(item), _text(item)


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _answers_text(answers: Mapping[object, Any]) -> str:
    lines = {str(key): text for key, value in answers.items() if (text := _joined(value))}
    if len(answers) == 1:
        return next(iter(lines.values()), "")
    return "\n".join(f"{key}: {text}" for key, text in lines.items())


def _joined(value: object) -> str:
    inner: object = cast("Mapping[str, Any]", value).get("answers") if isinstance(value, Mapping) else value
    if isinstance(inner, str):
        return inner.strip()
    if not isinstance(inner, list | tuple):
        return ""
    return ", ".join(
        text for item in cast("Iterable[object]", inner) if isinstance(item, str) and (text := item.strip())
    )
