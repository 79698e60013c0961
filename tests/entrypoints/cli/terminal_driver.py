"""Drives a program through a pseudo-terminal, as a person would."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@contextmanager
def heeding_interrupts():
    """Start programs that Ctrl-C reaches, also where a shell runs these tests in the background and has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Session:
    """One run of the command line, or of another ``command``, on a pseudo-terminal."""

    def __init__(
        self, *arguments, environ, command=(sys.executable, "-m", "canon_hermes_plugin.cli"), term="xterm-256color"
    ):
        self._master, slave = pty.openpty()
        self._seen = self.raw = ""
        with heeding_interrupts():
            self.process = subprocess.Popen(
                [*command, *arguments],
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env={**environ, "TERM": term, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
                start_new_session=True,
            )
        os.close(slave)

    def expect(self, text, seconds=60):
        """Read until ``text`` shows up behind everything expected before; return what stood between."""
        deadline = time.monotonic() + seconds
        while text not in self._seen:
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"{text!r} did not show up in:\n{self._seen}")
        before, self._seen = self._seen[: self._seen.index(text)], self._seen[self._seen.index(text) + len(text) :]
        return before

    def type(self, line=""):
        os.write(self._master, f"{line}\n".encode())

    def answer(self, question, line=""):
        self.expect(question)
        self.type(line)

    def register(self, profile="ops"):
        """Answer the questions of a new registration; the addresses' defaults come from the environment."""
        self.answer("Choose", "1")
        self.answer("display name", "Ermes")
        self.answer("Description")
        self.answer("phone", "+41791234567")
        self.answer("Profile name", profile)
        for question in ("Canon environment", "API address", "Stream address", "Database address", "Public web key"):
            self.answer(question)
        self.expect("prove to be canon-dev-v1")

    def end_input(self):
        """Press Ctrl-D at a question."""
        os.write(self._master, b"\x04")

    def interrupt(self):
        """Press Ctrl-C; once more, like a person, when it fell between the prompt and the terminal's wait for a key."""
        self._wait_until_it_waits()
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGINT)

    def _wait_until_it_waits(self):
        """A person reads the question first: return when the process has slept for a while, at most 10 s."""
        state, asleep = Path(f"/proc/{self.process.pid}/stat"), 0
        for _ in range(500):
            if not state.exists() or asleep >= 10:
                return
            asleep = asleep + 1 if state.read_text(encoding="utf-8").rsplit(") ", 1)[1].startswith("S") else 0
            time.sleep(0.02)

    def kill(self):
        """End the program and what it started, wherever it is."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(15)
        os.close(self._master)

    def end(self, seconds=60):
        """Read to the end; return the exit code and what was not expected yet."""
        deadline = time.monotonic() + seconds
        while self._read(deadline - time.monotonic()):
            pass
        os.close(self._master)
        return self.process.wait(seconds), self._seen

    def _read(self, seconds):
        if not select.select([self._master], [], [], max(seconds, 0))[0]:
            return False
        try:
            chunk = os.read(self._master, 65536)
        except OSError:  # the last process on the terminal is gone
            return False
        self.raw += chunk.decode("utf-8", "replace")
        self._seen += ANSI.sub("", chunk.decode("utf-8", "replace"))
        return bool(chunk)
