"""Writing to a terminal that may be none: remote text escaped, colours only where wanted, ASCII where needed."""

from __future__ import annotations

import sys
import unicodedata
from typing import TextIO

import click

_KEPT = frozenset("\n\t")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")
"""Emoji and several scripts need the zero-width joiners, and they move nothing."""


def printable(text: str) -> str:
    """Return remote text with every control, direction or invisible character shown as an escape."""
    return "".join(char if _harmless(char) else _escape(char) for char in text)


def _harmless(char: str) -> bool:
    return char in _KEPT or char in _JOINERS or unicodedata.category(char) not in _INVISIBLE


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


class Screen:
    """Prints lines of already harmless text to one stream.

    Rich is used only when the stream is a terminal; it honours ``NO_COLOR``. Elsewhere lines are plain and never
    wrapped. A character the stream cannot encode is written as an escape instead of ending the program.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self.unicode = _encodes(self._stream, "\u00b7\u2026")
        self.terminal = self._stream.isatty()

    def encodes(self, sample: str) -> bool:
        """Tell whether the stream can show these characters as they are."""
        return _encodes(self._stream, sample)

    def line(self, text: str, style: str = "") -> None:
        """Print ``text`` and a line end, in a rich ``style`` where there are styles."""
        if self.terminal:
            from rich.console import Console
            from rich.text import Text

            console = Console(file=self._stream, highlight=False, soft_wrap=True)
            console.print(Text(self._encodable(text), style=style))
        else:
            click.echo(self._encodable(text), file=self._stream)
        self._stream.flush()

    def temporary(self, text: str) -> None:
        """Write ``text`` without a line end; :meth:`erase` takes it away again. For terminals."""
        self._stream.write(self._encodable(text))
        self._stream.flush()

    def erase(self, columns: int) -> None:
        """Blank the beginning of the present line and go back there. No terminal is too old for it."""
        self._stream.write("\r" + " " * columns + "\r")
        self._stream.flush()

    def _encodable(self, text: str) -> str:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        return text.encode(encoding, "backslashreplace").decode(encoding)


def _encodes(stream: TextIO, sample: str) -> bool:
    try:
        sample.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
