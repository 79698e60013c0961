"""The sandbox's conversation on a screen: what happened as lines, what happens now as one line that is written over.

Decides how lines, the line in progress and a prompt share a terminal. It refuses to know what is worth a line.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Final, Self

from canon_hermes_plugin.cli.terminal import Screen, printable
from canon_hermes_plugin.infrastructure.sandbox.transcript import Line, Transcript

PROMPT: Final = "> "
STEP: Final = 2_000
"""Characters between two notes about a growing answer where no line can be written over."""
_STYLES: Final = {"person": "bold cyan", "agent": "bold green", "note": "dim", "ask": "bold yellow", "done": "green"}


class Printer:
    """Prints the conversation from a thread of its own while the body runs, and all that is left at its end.

    Args:
        transcript: what is printed.
        screen: where.
        hide_person: leave out what the person says, who sees it as typed.
        progress: show what the agent is doing also where no line can be written over; a script's output is steadier
            without.
    """

    def __init__(self, transcript: Transcript, screen: Screen, *, hide_person: bool, progress: bool) -> None:
        self._transcript, self._screen, self._hide_person = transcript, screen, hide_person
        self._progress = progress or screen.terminal
        self._over, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._prompting, self._shown, self._temporary = False, "", False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._over.set()
        self._transcript.canon.wake()
        self._thread.join()
        self.flush()
        with self._lock:
            self._clear()

    def flush(self) -> None:
        """Print what is new now, above a prompt that waits for the person."""
        with self._lock:
            lines = [line for line in self._transcript.news() if not (self._hide_person and line.kind == "person")]
            if lines:
                self._clear()
            for line in lines:
                self._screen.line(self._text(line), _STYLES[line.kind])
            if lines and self._prompting:
                self._screen.temporary(PROMPT + _typed())
            if self._progress and not self._prompting:
                self._show(self._transcript.activity(STEP if not self._screen.terminal else 1))

    def read(self) -> str | None:
        """Return the next line typed, or ``None`` at the end of the input."""
        interactive = sys.stdin.isatty() and self._screen.terminal
        if interactive:
            with suppress(ImportError):
                import_module("readline")  # it tells what is typed already, and lets the person edit it
        self.flush()
        try:
            with self._prompt(interactive=interactive):
                return input(PROMPT if sys.stdin.isatty() else "")
        except EOFError:
            return None

    @contextmanager
    def _prompt(self, *, interactive: bool) -> Generator[None]:
        with self._lock:
            self._clear()
            self._prompting = interactive
        try:
            yield
        finally:
            with self._lock:
                self._prompting = False

    def _show(self, activity: str) -> None:
        if activity == self._shown:
            return
        self._shown = activity
        line = Line("note", self._transcript.canon.identity.agent_name, activity)
        if not self._screen.terminal:
            if activity:
                self._screen.line(self._text(line), _STYLES["note"])
            return
        self._clear()
        if activity:
            text = self._text(line, "\u2026" if self._screen.unicode else "...")
            self._screen.temporary(text[: _columns()])
            self._shown, self._temporary = activity, True

    def _clear(self) -> None:
        """Take away the line in progress, or the prompt: what is printed next begins at the left edge."""
        if self._temporary or self._prompting:
            self._screen.erase(_columns())
            self._temporary, self._shown = False, ""

    def _follow(self) -> None:
        while not self._over.is_set():
            self.flush()
            with suppress(TimeoutError):
                self._transcript.canon.wait_for(lambda _: self._due(), 1.0)

    def _due(self) -> bool:
        if self._transcript.pending() or self._over.is_set():
            return True
        step = 1 if self._screen.terminal else STEP
        return self._progress and not self._prompting and self._transcript.activity(step) != self._shown

    def _text(self, line: Line, mark: str | None = None) -> str:
        who, text = printable(line.who).replace("\n", " "), printable(line.text)
        mark = mark or ("\u00b7" if self._screen.unicode else "-")
        return f"  {mark} {who}: {text}" if line.kind in {"note", "done"} else f"{who}: {text}"


def _columns() -> int:
    """Return how many columns may be written without the cursor going to the next line."""
    return shutil.get_terminal_size().columns - 1


def _typed() -> str:
    """Return what stands behind the prompt already, where the line editor tells."""
    editor = sys.modules.get("readline")
    return "" if editor is None else str(editor.get_line_buffer())
