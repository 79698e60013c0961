"""Text in the columns of a terminal: how wide it is, where it wraps, how a table lines up. Knows nothing of cards."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def width_of(text: str) -> int:
    """Return the terminal columns a text takes: wide characters two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most ``width`` columns, keeping its own line breaks; long words are cut."""
    lines: list[str] = []
    for paragraph in text.splitlines():
        line = ""
        for word in paragraph.split():
            for piece in _pieces(word, width):
                joined = f"{line} {piece}" if line else piece
                if width_of(joined) <= width:
                    line = joined
                else:
                    lines.append(line)
                    line = piece
        lines.append(line)
    return lines or [""]


def _pieces(word: str, width: int) -> list[str]:
    pieces: list[str] = []
    piece, used = "", 0
    for char in word:
        columns = _columns(char)
        if piece and used + columns > width:
            pieces.append(piece)
            piece, used = "", 0
        piece += char
        used += columns
    return [*pieces, piece]


def one_line(text: str) -> str:
    """Return the text with every run of white space as one blank."""
    return " ".join(text.split())


def padded(text: str, width: int) -> str:
    """Return the text filled up with blanks to ``width`` columns."""
    return text + " " * (width - width_of(text))


def table(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Return rows as lines with aligned columns; rows may differ in length."""
    widths: list[int] = []
    for row in rows:
        for index, cell in enumerate(row):
            if index == len(widths):
                widths.append(0)
            widths[index] = max(widths[index], width_of(cell))
    return [gap.join(padded(cell, widths[index]) for index, cell in enumerate(row)).rstrip() for row in rows]
