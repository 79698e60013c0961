"""Which parts of a tool call may be shown to viewers (turns §14 H15).

Decides on keys and values that look like secrets. Refuses to know who looks on; it errs on the side of hiding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

HIDDEN = "[hidden]"

JSON_HEAD = 4_000
"""How much of a decoded text is looked at."""

_MAX_DEPTH = 6
_T = TypeVar("_T")
_SECRET_KEY = re.compile(
    r"(?i)(?:^|[^a-z])(?:api_?-?key|apikey|access_?-?key|private_?-?key|secret\w*|token|passw(?:or)?d|passphrase|pwd|"
    r"auth(?:orization)?|bearer|cookie|credentials?|session_?-?id|client_?-?secret|otp|pin)(?:$|[^a-z])"
)
_SECRET_VALUE = re.compile(
    r"(?i)"
    r"\b(?:sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[abposr]|agk(?:_live|_test)?|hf|AKIA|ASIA|AIza|ya29)[-_.A-Za-z0-9]{6,}"
    r"|\beyJ[\w-]{8,}(?:\.[\w-]+)*"
    r"|\b(?:bearer|basic)\s+[\w.~+/=:-]{6,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)",
    re.DOTALL,
)
_ASSIGNMENT = re.compile(
    r"(?i)((?:api_?-?key|secret|token|passw(?:or)?d|passphrase|authorization|cookie|credential)[\w-]{0,80}"
    r"[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&\"'}\]]+)"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def is_secret_key(name: str) -> bool:
    """Return whether a key called ``name`` probably holds a secret."""
    return _SECRET_KEY.search(_CAMEL.sub("_", name)) is not None


def redact_text(text: str) -> str:
    """Return ``text`` with everything that looks like a secret replaced; no pattern looks at a character often."""
    return _ASSIGNMENT.sub(rf"\g<1>{HIDDEN}", _SECRET_VALUE.sub(HIDDEN, text))


def redact(value: object, depth: int = 0) -> object:
    """Return a copy of a JSON-like ``value`` without secrets; whatever lies deeper than six levels is cut off."""
    if isinstance(value, str):
        return redact_text(_redact_json(value) if depth == 0 else value)
    if depth >= _MAX_DEPTH:
        return "..."
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, object]", value)
        return {str(k): HIDDEN if is_secret_key(str(k)) else redact(v, depth + 1) for k, v in items.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        members = cast("Sequence[object]", value)
        return [redact(member, depth + 1) for member in members]
    return value


def head(value: object, chars: int) -> object:
    """Return the beginning of a JSON-like ``value``: about ``chars`` characters of keys and texts, in order.

    Redacting and rendering megabytes for a preview of one line would hold up whoever waits for the turn.
    """
    return _Head(chars).of(value, 0)


class _Head:
    """What is left of a budget while a value is walked through."""

    def __init__(self, chars: int) -> None:
        self._left = chars

    def of(self, value: object, depth: int) -> object:
        if isinstance(value, str | bytes | bytearray):
            kept = value[: max(0, self._left)]
            self._left -= len(kept)
            return kept
        self._left -= 1
        if depth >= _MAX_DEPTH:
            return value
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, object]", value).items()
            return {self._key(key): self.of(item, depth + 1) for key, item in self._while_any_left(items)}
        if isinstance(value, Sequence):
            members = cast("Sequence[object]", value)
            return [self.of(member, depth + 1) for member in self._while_any_left(members)]
        return value

    def _key(self, key: object) -> str:
        name = str(key)
        self._left -= len(name)
        return name

    def _while_any_left(self, items: Iterable[_T]) -> Iterator[_T]:
        for item in items:
            if self._left <= 0:
                return
            yield item


def _redact_json(text: str) -> str:
    """Look inside a text that is itself JSON, as tool results usually are."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(redact(head(decoded, JSON_HEAD), 1), ensure_ascii=False, separators=(",", ":"), default=str)
