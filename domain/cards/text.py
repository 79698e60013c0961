"""Judges the text of a card file: reads the JSON and says on which line each error sits.

Decides how far a document is read and which line a path belongs to. Knows neither files nor how a verdict is printed.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from canon_hermes_plugin.domain.cards.limits import MAX_INTEGER_DIGITS
from canon_hermes_plugin.domain.cards.validate import UNKNOWN_KEY, quotable, validate_card

_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_OPENING: Final = frozenset("{[")
_CLOSING: Final = frozenset("}]")
_NAME: Final = re.compile(r"[A-Za-z]+")
_QUOTED: Final = re.compile(rf'{UNKNOWN_KEY} "(.*)": ')


@dataclass(frozen=True, slots=True)
class Finding:
    """One error of a card file: the path of the node, its line counted from 1, and what is wrong."""

    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A card file after reading: its value (None when there is none) and what is wrong with it."""

    value: object
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not self.findings


def read_card(data: bytes) -> Reading:
    """Read and judge the bytes of a card file. Never raises; a file that is no JSON has one finding."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Reading(None, (Finding("card", line, "must be UTF-8 text"),))
    try:
        value = json.loads(text, parse_int=_integer)
    except json.JSONDecodeError as error:
        return Reading(None, (Finding("card", error.lineno, f"must be JSON: {error.msg}, column {error.colno}"),))
    except RecursionError:
        return Reading(None, (Finding("card", 1, "cannot be read: it nests too deeply"),))
    errors = [error.partition(" ") for error in validate_card(value)["errors"]]
    lines = _Lines(text, {path for path, _, _ in errors})
    found = (Finding(path, lines.of(path, message), message) for path, _, message in errors)
    return Reading(value, tuple(found))


def _integer(digits: str) -> int | float:
    """Keep integers Python refuses to read: as infinities they fail at their own path."""
    return int(digits) if len(digits) <= MAX_INTEGER_DIGITS else float(digits)


@dataclass(slots=True)
class _Frame:
    """One container the scan is inside of; ``path`` is empty where no wanted path leads through."""

    path: str
    array: bool
    index: int = 0
    key: str = ""
    value_next: bool = False


class _Lines:
    """The lines of the wanted paths, found by one scan over the tokens of a document known to be JSON."""

    def __init__(self, text: str, wanted: Iterable[str]) -> None:
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._through = {part for path in wanted for part in _prefixes(path)}
        self._lines: dict[str, int] = {}
        self._keys: dict[tuple[str, str], int] = {}
        self._scan(text)

    def of(self, path: str, message: str) -> int:
        """Return the line of an unknown key, of the node itself, or of the nearest node around a missing one."""
        quoted = _QUOTED.match(message)
        if quoted and (path, quoted[1]) in self._keys:
            return self._keys[path, quoted[1]]
        return next((self._lines[part] for part in _prefixes(path) if part in self._lines), 1)

    def _scan(self, text: str) -> None:
        stack: list[_Frame] = []
        for match in _TOKEN.finditer(text):
            sign = match[0]
            frame = stack[-1] if stack else None
            if sign in _CLOSING:
                stack.pop()
            elif frame is not None and sign == ",":
                frame.index += 1
                frame.value_next = False
            elif frame is not None and sign == ":":
                frame.value_next = True
            elif frame is not None and not frame.array and not frame.value_next:
                self._key(frame, sign, match.start())
            else:
                here = self._place(frame, match.start())
                if sign in _OPENING:
                    stack.append(_Frame(here, sign == "["))

    def _key(self, frame: _Frame, token: str, start: int) -> None:
        frame.key = ""
        if frame.path:
            name: str = json.loads(token, strict=False)
            self._keys[frame.path, quotable(name)] = self._line(start)
            if _NAME.fullmatch(name):
                frame.key = f"{frame.path}.{name}"
                self._note(frame.key, start)

    def _place(self, frame: _Frame | None, start: int) -> str:
        """Return the path of the value that starts here, empty when nobody asks for anything in it."""
        if frame is None:
            path = "card"
        elif frame.array:
            path = f"{frame.path}[{frame.index}]" if frame.path else ""
        else:
            path = frame.key
        if path not in self._through:
            return ""
        if frame is None or frame.array:
            self._note(path, start)
        return path

    def _note(self, path: str, start: int) -> None:
        if path in self._through:
            self._lines[path] = self._line(start)

    def _line(self, start: int) -> int:
        return bisect_left(self._breaks, start) + 1


def _prefixes(path: str) -> Iterable[str]:
    """Yield a path and everything around it, innermost first."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
