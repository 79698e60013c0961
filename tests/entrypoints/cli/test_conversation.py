"""Lines, the line in progress and the prompt share one terminal; without one, output is lines alone."""

import io
import sys

import pytest
from canon_hermes_plugin.cli import conversation as module
from canon_hermes_plugin.cli.conversation import Printer
from canon_hermes_plugin.cli.terminal import Screen
from canon_hermes_plugin.infrastructure.sandbox.server import DIRECT, LoopbackCanon
from canon_hermes_plugin.infrastructure.sandbox.transcript import Transcript


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


class Stage:
    """A printer that prints when the test says so, on a terminal or a pipe."""

    def __init__(self, stream, *, progress=True):
        self.canon, self.stream = LoopbackCanon(), stream
        transcript = Transcript(self.canon, DIRECT)
        self.printer = Printer(transcript, Screen(stream), hide_person=False, progress=progress)

    def grows(self, size, **block):
        blocks = [{"kind": "tool", **block}] if block else []
        with self.canon.state.lock:
            self.canon.state.write_node({"conversationId": DIRECT, "text": "x" * size, "blocks": blocks})
        self.printer.flush()

    def visible(self):
        """What a person sees: each line as the last write to it left it."""
        lines = []
        for line in self.stream.getvalue().split("\n"):
            shown = ""
            for written in line.split("\r"):
                shown = written + shown[len(written) :]
            lines.append(shown.rstrip(" "))
        return lines


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setitem(sys.modules, "readline", None)
    monkeypatch.setattr(module, "_typed", lambda: "half a lin")


def test_on_a_terminal_one_line_tells_how_far_the_answer_is_and_makes_room():
    stage = Stage(Terminal())
    stage.grows(10)
    stage.grows(1240)
    assert stage.visible() == ["  \u2026 Hermes: is writing (1,240 characters)"]
    stage.grows(1240, title="ter\nminal", status="running")
    assert stage.visible() == ["  \u2026 Hermes: is using ter minal"]
    stage.canon.say(DIRECT, "user_dana", "hello")
    stage.printer.flush()
    assert stage.visible() == ["Dana: hello", "  \u2026 Hermes: is using ter minal"]
    with stage.canon.state.lock:
        stage.canon.state.nodes.clear()
    stage.printer.flush()
    assert stage.visible() == ["Dana: hello", ""]


def test_on_a_terminal_the_line_in_progress_never_fills_the_line():
    stage = Stage(Terminal())
    stage.grows(1, title="t" * 500, status="running")
    assert len(stage.visible()[0]) == 59


def test_without_a_terminal_progress_comes_in_steps_as_lines_of_their_own():
    stage = Stage(io.StringIO())
    for size in range(0, 5_001, 250):
        stage.grows(size)
    stage.grows(5_001, title="terminal", status="running")
    assert stage.stream.getvalue().splitlines() == [
        "  - Hermes: is writing (2,000 characters)",
        "  - Hermes: is writing (4,000 characters)",
        "  - Hermes: is using terminal",
    ]


def test_the_output_of_a_script_holds_no_progress():
    stage = Stage(io.StringIO(), progress=False)
    stage.grows(9_000, title="terminal", status="running")
    assert not stage.printer._due()
    assert stage.stream.getvalue() == ""


def test_growth_wakes_the_printer_and_showing_it_lets_it_sleep():
    stage = Stage(Terminal())
    assert not stage.printer._due()
    with stage.canon.state.lock:
        stage.canon.state.write_node({"conversationId": DIRECT, "text": "x"})
    assert stage.printer._due()
    stage.printer.flush()
    assert not stage.printer._due()


def test_what_comes_late_stands_above_the_prompt_with_what_was_typed(monkeypatch):
    stage = Stage(Terminal())
    monkeypatch.setattr(sys, "stdin", Terminal())

    def typing(prompt):
        stage.stream.write(f"{prompt}half a lin")
        stage.canon.say(DIRECT, "user_dana", "from elsewhere")
        stage.printer.flush()
        stage.grows(77)  # no progress in the middle of a line that is being typed
        assert stage.visible() == ["Dana: from elsewhere", "> half a lin"]
        return "half a line"

    stage.grows(10)
    monkeypatch.setattr("builtins.input", typing)
    assert stage.printer.read() == "half a line"
    stage.printer.flush()
    assert "is writing (77 characters)" in stage.stream.getvalue()


def test_the_end_of_the_input_is_the_end(monkeypatch):
    def end(_prompt):
        raise EOFError

    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr("builtins.input", end)
    assert Stage(io.StringIO()).printer.read() is None


def test_at_the_end_nothing_temporary_is_left():
    stage = Stage(Terminal())
    with stage.printer:
        stage.grows(10)
    assert stage.visible() == [""]
