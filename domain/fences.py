"""Finds fenced code blocks in UTF-8 text, so that a cut can respect them.

Works on bytes and byte offsets, in one pass: every line is looked at once at most. It refuses to know budgets and
where to cut.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_TICKS: Final = b"```"
_TILDES: Final = b"~~~"


@dataclass(frozen=True, slots=True)
class FencedBlock:
    """One fenced block; all positions are byte offsets.

    Attributes:
        start: start of the opening line.
        body: first byte after the opening line.
        close: start of the closing line, or the end of the text when the block is never closed.
        end: end of the closing line, without its line break.
        opener: the opening line, without trailing white space.
        closer: the shortest line that closes the block.
    """

    start: int
    body: int
    close: int
    end: int
    opener: bytes
    closer: bytes


class FencedBlocks:
    """The fenced blocks of one text, in order."""

    __slots__ = ("_data", "_spans", "_starts")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._spans = list(_spans(data))
        self._starts = [span[0] for span in self._spans]

    def cut_by(self, offset: int) -> FencedBlock | None:
        """Return the block that a cut at ``offset`` would take apart, or ``None``."""
        index = bisect_left(self._starts, offset) - 1
        if index < 0 or offset >= self._spans[index][2]:
            return None
        start, close, end = self._spans[index]
        body = self._data.find(b"\n", start, close) + 1 or close
        opener = self._data[start:body].rstrip()
        indent = opener[: len(opener) - len(opener.lstrip())]
        return FencedBlock(start, body, close, end, opener, indent + _marker(opener.lstrip()))


def _spans(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield start, start of the closing line, and end of every block."""
    find = data.find
    ticks, tildes = find(_TICKS), find(_TILDES)
    position = 0
    while ticks >= 0 or tildes >= 0:
        hit = ticks if tildes < 0 or 0 <= ticks < tildes else tildes
        start = data.rfind(b"\n", position, hit) + 1 or position
        end = find(b"\n", hit)
        end = len(data) if end < 0 else end
        marker = _marker(data[hit:end])
        opens = (start == hit or data[start:hit].isspace()) and not (
            hit == ticks and find(b"`", hit + len(marker), end) >= 0
        )
        position = end
        if opens:
            close, position = _closing(data, marker, end)
            yield start, close, position
        if 0 <= ticks < position:
            ticks = find(_TICKS, position)
        if 0 <= tildes < position:
            tildes = find(_TILDES, position)


def _closing(data: bytes, marker: bytes, position: int) -> tuple[int, int]:
    """Return start and end of the line that closes a fence opened with ``marker``; both are the text's end if none."""
    hit = data.find(marker, position)
    while hit >= 0:
        start = data.rfind(b"\n", position, hit) + 1
        end = data.find(b"\n", hit)
        end = len(data) if end < 0 else end
        line = data[start:end].strip()
        if line == marker or line == marker[:1] * len(line):
            return start, end
        position = end
        hit = data.find(marker, end)
    return len(data), len(data)


def _marker(text: bytes) -> bytes:
    """Return the run of one character that ``text`` begins with."""
    return text[: len(text) - len(text.lstrip(text[:1]))]
