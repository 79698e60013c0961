"""The one splitter: cuts a text into parts that Canon accepts (turns §5, §14 H13, H14, H32).

It decides where to cut and what the parts read like. It refuses to know what a part becomes: ids, metadata and order of
sending belong to the delivery plan. Text is encoded once and cut on bytes, so the cost is a small multiple of one
UTF-8 encoding, whatever the size.
"""

from __future__ import annotations

import re
from typing import Final

from canon_hermes_plugin.domain.fences import FencedBlock, FencedBlocks
from canon_hermes_plugin.domain.graphemes import boundary_at_or_before, is_boundary, needs_context

SERVER_TEXT_BYTES: Final = 4096
"""Canon refuses a message text with more UTF-8 bytes than this."""

PART_BYTES: Final = 3800
"""UTF-8 bytes of one part of an answer."""

_SMALLEST_BUDGET: Final = 4
"""One code point needs up to four bytes."""

_WINDOW_CHARS: Final = 400
_WINDOW_BYTES: Final = _WINDOW_CHARS * 4
_SPACES_TRIED: Final = 16
"""Spaces that marks are attached to are no separators; so many of them in a row, and the cut is hard."""

_CLUSTER_BYTES: Final = 128
"""Nearly every cluster is shorter; a longer one costs a look at the whole part."""

_ASCII_END: Final = 0x80
_FENCE_SHARE: Final = 4
"""Closing and reopening a fence may cost at most this fraction of a part."""

_INVISIBLE: Final = "".join(c for c in map(chr, range(0x3001)) if c.isspace()) + "\u200b\u2060\ufeff"
_SURROGATES: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")


def utf8_len(text: str) -> int:
    """Return the number of UTF-8 bytes of ``text``; a lone surrogate counts as three. Never raises (turns §5.1)."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return len(text.encode("utf-8", "surrogatepass"))


def replace_lone_surrogates(text: str) -> str:
    """Return ``text`` as encodable Unicode: split pairs are joined, what stays unpaired becomes U+FFFD (H13)."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub(_repair, text)
    return text


def split(text: str, max_bytes: int = PART_BYTES) -> list[str]:
    """Split ``text`` into parts of at most ``min(max_bytes, 4096)`` UTF-8 bytes (turns §5.2).

    A cut prefers a paragraph break, then a line break, then a space within the last 400 characters, and consumes that
    one separator; without one it is hard, between grapheme clusters where possible. A cut inside a fenced code block
    closes the fence and opens it again in the next part, or moves before a block that fits the next part whole.

    Args:
        text: any string. White space at its end is dropped and lone surrogates become U+FFFD.
        max_bytes: the budget of one part, at least 4.

    Returns:
        The parts in order, each with something visible in it; none for a blank text.

    Raises:
        ValueError: ``max_bytes`` is below 4.
    """
    if max_bytes < _SMALLEST_BUDGET:
        msg = f"max_bytes must be at least {_SMALLEST_BUDGET}, not {max_bytes}"
        raise ValueError(msg)
    budget = min(max_bytes, SERVER_TEXT_BYTES)
    if len(text) <= budget:
        text = replace_lone_surrogates(text.rstrip())
        if utf8_len(text) <= budget:
            return [text] if _visible(text) else []
    try:
        data = text.encode()
    except UnicodeEncodeError:
        text = _SURROGATES.sub(_repair, text)
        data = text.encode()
    blank = len(_trailing_space(text).encode())
    return _Cutter(data, len(data) - blank, budget).parts()


def _repair(match: re.Match[str]) -> str:
    found = match.group()
    return found.encode("utf-16", "surrogatepass").decode("utf-16") if len(found) > 1 else "\ufffd"


def _trailing_space(text: str) -> str:
    """Return the white space at the end of ``text``, without copying all of it."""
    size = 64
    while True:
        tail = text[-size:]
        kept = tail.rstrip()
        if kept or size >= len(text):
            return tail[len(kept) :]
        size *= 8


def _visible(text: str) -> bool:
    return bool(text.strip(_INVISIBLE))


class _Cutter:
    """One pass over ``data[:end]``. Offsets are byte offsets; a *cut* is (end of the part, start of the rest)."""

    def __init__(self, data: bytes, end: int, budget: int) -> None:
        self._data = data
        self._end = end
        self._budget = budget
        self._fences = FencedBlocks(data)
        self._carriage = b"\r" in data

    def parts(self) -> list[str]:
        parts: list[str] = []
        data, start, opener = self._data, 0, b""
        while self._end - start > self._budget - len(opener):
            end, rest, block = self._cut(start, self._budget - len(opener))
            body = data[start:end].decode()
            if block is None:
                part, opener = opener.decode() + body, b""
            else:
                part = f"{opener.decode()}{body}\n{block.closer.decode()}"
                rest, opener = self._after(rest, block)
            if _visible(body):
                parts.append(part)
            start = rest
        body = data[start : self._end].decode()
        if _visible(body):
            parts.append(opener.decode() + body)
        return parts

    def _after(self, rest: int, block: FencedBlock) -> tuple[int, bytes]:
        """Return where the next part starts and the line it opens with, after a part that had to close ``block``."""
        if rest < block.close or block.close == len(self._data):
            return rest, block.opener + b"\n"
        following = block.end  # the part's own closing line stands for the block's
        for separator in (b"\r\n\r\n", b"\n\n", b"\r\n", b"\n"):
            if self._data.startswith(separator, following):
                return following + len(separator), b""
        return following, b""

    def _cut(self, start: int, room: int) -> tuple[int, int, FencedBlock | None]:
        """Return the cut of the part that starts at ``start``, and the block that must be closed there."""
        end, rest = self._free_cut(start, room, start)
        block = self._fences.cut_by(rest)
        if block is None or not self._affordable(block):
            return end, rest, None
        if block.start > start and (block.end - block.start <= self._budget or end <= block.body):
            return self._without_separator(start, block.start), block.start, None
        room -= len(block.closer) + 1
        floor = max(start, block.body)
        if start + room <= floor:
            return end, rest, None
        end, rest = self._free_cut(start, room, floor)
        if rest >= block.close:
            end = min(end, self._without_separator(start, block.close))
        return end, rest, block

    def _affordable(self, block: FencedBlock) -> bool:
        return len(block.opener) + len(block.closer) + 2 <= self._budget // _FENCE_SHARE

    def _without_separator(self, start: int, end: int) -> int:
        """Return ``end`` moved before the one line or paragraph break that stands right before it."""
        for separator in (b"\r\n\r\n", b"\n\n", b"\r\n", b"\n"):
            if self._data.endswith(separator, start, end):
                return end - len(separator)
        return end

    def _free_cut(self, start: int, room: int, floor: int) -> tuple[int, int]:
        """Return the best cut of at most ``room`` bytes after ``floor``, blind to fences."""
        data = self._data
        limit = _char_start(data, start + room)
        left = max(floor + 1, limit - _WINDOW_BYTES)
        line = data.rfind(b"\n", left, limit)
        if line >= 0:
            found = self._paragraph(left, line + 1, limit) or self._line(left, line, limit)
            if found is not None:
                return found
        at = limit
        for _ in range(_SPACES_TRIED):
            at = data.rfind(b" ", left, at)
            if at < 0 or not self._is_near(at, limit):
                break
            if self._is_free_standing(at):
                return at, at + 1
        return self._hard_cut(start, limit, floor)

    def _paragraph(self, left: int, end: int, limit: int) -> tuple[int, int] | None:
        """Return the cut around the last paragraph break in ``data[left:end]``."""
        at, size = self._data.rfind(b"\n\n", left, end), 2
        if self._carriage:
            wide = self._data.rfind(b"\r\n\r\n", left, end)
            if wide >= 0 and wide + 2 >= at:
                at, size = wide, 4
            elif at > left and self._data[at - 1 : at] == b"\r":
                at, size = at - 1, 3
            elif at >= 0 and self._data[at - 1 : at] == b"\r":
                return None
        return (at, at + size) if at >= 0 and self._is_near(at, limit) else None

    def _line(self, left: int, line: int, limit: int) -> tuple[int, int] | None:
        """Return the cut around the line break that ends at ``line``."""
        at = line - 1 if self._carriage and self._data[line - 1 : line] == b"\r" else line
        return (at, line + 1) if at >= left and self._is_near(at, limit) else None

    def _is_near(self, at: int, limit: int) -> bool:
        """Tell whether at most 400 characters lie between ``at`` and ``limit``."""
        return limit - at <= _WINDOW_CHARS or len(self._data[at:limit].decode()) <= _WINDOW_CHARS

    def _is_free_standing(self, at: int) -> bool:
        """Tell whether the space at ``at`` is a cluster of its own."""
        data = self._data
        if data[at - 1] < _ASCII_END and data[at + 1] < _ASCII_END:
            return True
        around = data[_char_start(data, at - 1) : _char_end(data, at + 1)].decode()
        return is_boundary(around, 1) and is_boundary(around, 2)

    def _hard_cut(self, start: int, limit: int, floor: int) -> tuple[int, int]:
        """Return the last cut between two clusters, or at ``limit`` when one cluster fills the part."""
        data = self._data
        following = _char_end(data, limit)
        left = _char_start(data, max(start, limit - _CLUSTER_BYTES))
        near = data[left:following].decode()
        at = boundary_at_or_before(near, len(near) - 1)
        if left > start and (at == 0 or needs_context(near[at - 1])):
            left = start
            near = data[start:following].decode()
            at = boundary_at_or_before(near, len(near) - 1)
        cut = left + len(near[:at].encode())
        cut = limit if cut <= floor else cut
        return cut, cut


def _char_start(data: bytes, offset: int) -> int:
    """Return the start of the code point that ``offset`` lies in."""
    while data[offset] & 0xC0 == 0x80:  # noqa: PLR2004 - UTF-8 continuation bytes are 10xxxxxx
        offset -= 1
    return offset


def _char_end(data: bytes, offset: int) -> int:
    """Return the end of the code point that starts at ``offset``."""
    lead = data[offset]
    return offset + (1 if lead < _ASCII_END else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4)  # noqa: PLR2004
