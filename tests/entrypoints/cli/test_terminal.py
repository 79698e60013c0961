"""Remote text cannot steer a terminal, and output survives terminals that know little."""

import io

import pytest
from canon_hermes_plugin.cli.terminal import Screen, printable


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def screen_of(encoding, *, newline="\n"):
    raw = io.BytesIO()
    return Screen(io.TextIOWrapper(raw, encoding=encoding, newline=newline)), raw


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("a\rb\x08\x9bc\x7f", "a\\rb\\x08\\x9bc\\x7f"),
        ("\u202egnp.exe\u2066", "\\u202egnp.exe\\u2066"),
        ("\u200b\ufeff\u2028", "\\u200b\\ufeff\\u2028"),
        ("\ud83c", "\\ud83c"),
        ("\u05e9\u05dc\u05d5\u05dd \U0001f469\u200d\U0001f680", "\u05e9\u05dc\u05d5\u05dd \U0001f469\u200d\U0001f680"),
    ],
)
def test_control_direction_and_invisible_characters_are_shown_as_escapes(text, shown):
    assert printable(text) == shown


def test_a_stream_that_knows_only_ascii_gets_escapes_and_never_an_error():
    screen, raw = screen_of("ascii")
    assert not screen.unicode
    screen.line("\u05e9 ok", "bold")
    assert raw.getvalue() == b"\\u05e9 ok\n"


def test_no_terminal_means_no_colours_and_no_wrapping():
    screen, raw = screen_of("utf-8")
    screen.line("word " * 100, "bold red")
    assert raw.getvalue().decode() == "word " * 100 + "\n"


def test_a_terminal_gets_colours_unless_no_color_is_set(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured, plain = Terminal(), Terminal()
    Screen(coloured).line("hi [bold]there", "red")
    monkeypatch.setenv("NO_COLOR", "1")
    Screen(plain).line("hi [bold]there", "red")
    assert "\x1b[31m" in coloured.getvalue()
    assert plain.getvalue() == "hi [bold]there\n"
