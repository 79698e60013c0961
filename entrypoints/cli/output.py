"""How the command line speaks: marks and colours on a capable terminal, plain ASCII everywhere else (field fault 50).

It decides nothing about what is said. Text that came from a server is shown without its control characters.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, Any, Literal

import click

Mark = Literal["ok", "warning", "fault", "unknown", "note"]

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""

_GLYPHS: dict[Mark, str] = {"ok": "✓", "warning": "!", "fault": "✗", "unknown": "?", "note": "·"}
_ASCII: dict[Mark, str] = {"ok": "ok", "warning": "!!", "fault": "XX", "unknown": "??", "note": "--"}
_COLOURS: dict[Mark, str] = {"ok": "green", "warning": "yellow", "fault": "red", "unknown": "magenta", "note": "cyan"}


_encodings: dict[int, str] = {}


def replace_missing_streams() -> None:
    """Put an empty stream in the place of each standard one the caller closed: Python leaves ``None`` there."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - lives as long as we


def drop_output() -> None:
    """Put an empty stream in the place of a standard output that cannot be written: ending would try it again."""
    sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - lives as long as we


def remember_encodings() -> None:
    """Note what the streams can show, before the host is imported: it switches them to UTF-8 whatever they lead to."""
    _encodings.clear()
    _encodings.update({id(stream): stream.encoding or "ascii" for stream in (sys.stdout, sys.stderr)})


def say(text: str, *, mark: Mark | None = None, error: bool = False) -> None:
    """Print one line, with a coloured mark where the stream can show it."""
    stream = sys.stderr if error else sys.stdout
    if mark is not None:
        glyph = glyph_for(mark, stream)
        text = f"{click.style(glyph, fg=_COLOURS[mark]) if colourful(stream) else glyph} {text}"
    click.echo(encodable(text, stream), err=error, color=colourful(stream))


def glyph_for(mark: Mark, stream: IO[Any]) -> str:
    """Return the mark, in ASCII when the stream cannot encode the symbol."""
    return _GLYPHS[mark] if _can_encode(_GLYPHS[mark], stream) else _ASCII[mark]


def colourful(stream: IO[Any]) -> bool:
    """Tell whether to colour: only on a terminal, never with ``NO_COLOR`` set or a dumb terminal."""
    return _is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def interactive() -> bool:
    """Tell whether a person sits at both ends: questions may be asked."""
    return _is_terminal(sys.stdin) and _is_terminal(sys.stdout)


def encodable(text: str, stream: IO[Any]) -> str:
    """Return ``text`` as the stream can print it; what it cannot encode is spelled out."""
    encoding = _encoding(stream)
    try:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return text.encode("ascii", "backslashreplace").decode("ascii")


def _can_encode(text: str, stream: IO[Any]) -> bool:
    try:
        text.encode(_encoding(stream))
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def _encoding(stream: IO[Any]) -> str:
    return _encodings.get(id(stream)) or getattr(stream, "encoding", None) or "ascii"


def _is_terminal(stream: IO[Any]) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False
