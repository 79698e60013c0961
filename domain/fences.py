"""Finds fenced code blocks in UTF-8 text, so that a cut can respect them.

Works on bytes and byte offsets, in one pass. It refuses to know budgets and
where to cut.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_FENCE: Final = rb"[ \t]*(?:```|~~~)"
_FENCE_SIZE: Final = 3
_MAX_OPENER: Final = 1024
_FIRST_LINE: Final = re.compile(_FENCE)
_LATER_LINE: Final = re.compile(rb"\n" + _FENCE)  # a literal start lets the search jump from line to line


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
        """Return the block that a cut at ``offset`` would take apart; ``None`` when none, or without any content."""
        index = bisect_left(self._starts, offset) - 1
        if index < 0 or offset >= self._spans[index][2]:
            return None
        start, close, end = self._spans[index]
        body = self._data.find(b"\n", start, min(close, start + _MAX_OPENER)) + 1
        if not body:  # a line of this length is no fence anybody would repeat
            return None
        opener = self._data[start:body].rstrip()
        fence = opener.lstrip(b" \t")
        marker = fence[: len(fence) - len(fence.lstrip(fence[:1]))]
        return FencedBlock(start, body, close, end, opener, opener[: len(opener) - len(fence)] + marker)


def _spans(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield start, start of the closing line, and end of every block."""
    opened, marker, size = -1, b"", len(data)
    for start, fence in _fence_lines(data):
        end = data.find(b"\n", fence)
        end = size if end < 0 else end
        line = data[fence:end].rstrip()
        if opened < 0:
            info = line.lstrip(line[:1])
            if b"`" not in info or line[:1] == b"~":  # else it is inline code
                opened, marker = start, line[: len(line) - len(info)]
        elif line == marker or (line.startswith(marker) and not line.strip(marker[:1])):
            yield opened, start, end
            opened = -1
    if opened >= 0:
        yield opened, size, size


def _fence_lines(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start of every line that begins with a fence, and the start of the fence."""
    first = _FIRST_LINE.match(data)
    if first is not None:
        yield 0, first.end() - _FENCE_SIZE
    if b"`" in data or b"~" in data:
        for match in _LATER_LINE.finditer(data):
            yield match.start() + 1, match.end() - _FENCE_SIZE
