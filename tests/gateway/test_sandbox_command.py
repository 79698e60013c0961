"""``canon-hermes sandbox`` as a newcomer runs it: a process of its own, from the first line to the last file."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.gateway
PROC = Path("/proc")
_DRIVER = Path(__file__).parents[1] / "entrypoints" / "cli" / "terminal_driver.py"
_spec = importlib.util.spec_from_file_location("terminal_driver", _DRIVER)
driver = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(driver)
COMMAND = [sys.executable, "-m", "canon_hermes_plugin.cli", "sandbox"]


def environment(tmp_path, encoding="utf-8"):
    return {**os.environ, "TMPDIR": str(tmp_path), "PYTHONIOENCODING": encoding, "NO_COLOR": "1"}


def run(tmp_path, *arguments, encoding="utf-8", **options):
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(tmp_path, encoding),
        capture_output=True,
        encoding="utf-8",
        timeout=110,
        check=False,
        **options,
    )


@pytest.mark.parametrize(
    ("streaming", "encoding", "shown", "mark"),
    [("--streaming", "utf-8", "\u05e9", "\u00b7"), ("--no-streaming", "ascii", "\\u05e9", "-")],
)
def test_one_message_gets_exactly_one_complete_answer_and_leaves_nothing_behind(
    tmp_path, streaming, encoding, shown, mark
):
    result = run(tmp_path, "--say", "hello \u05e9", streaming, encoding=encoding)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"Dana: hello {shown}\n" in result.stdout
    assert f"  {mark} Hermes: has finished (turn_complete)\n" in result.stdout
    assert result.stdout.count("turn_complete") == 1
    assert "\x1b" not in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_without_say_it_reads_lines_until_the_input_ends(tmp_path):
    result = run(tmp_path, input="first\n\nsecond\n")
    assert result.returncode == 0, result.stdout + result.stderr
    assert [result.stdout.count(f'You wrote: "{word}"') for word in ("first", "second")] == [1, 1]


def test_a_new_session_begins_at_once_and_a_trail_reads_as_a_line(tmp_path):
    result = run(tmp_path, "--say", "/new", "--say", "demo tools")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "/approve" not in result.stdout
    (trail,) = (line for line in result.stdout.splitlines() if "trail:" in line)
    assert "terminal completed in " in trail
    assert "UTC" in trail
    assert not set('{}"') & set(trail)


def test_a_termination_signal_stops_the_gateway_and_removes_the_files(tmp_path):
    process = subprocess.Popen(
        COMMAND, env=environment(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    try:
        timer = threading.Timer(100, process.kill)
        timer.start()
        for line in process.stdout:
            if "connected" in line:
                break
        (root,) = tmp_path.iterdir()
        process.send_signal(signal.SIGTERM)
        process.stdin.close()
        assert process.wait(30) == 0
        timer.cancel()
    finally:
        process.kill()
        process.stdout.close()
    assert not root.exists()
    assert not _processes_naming(str(root))


@pytest.fixture
def prompt(tmp_path):
    """The command as a person at a terminal sees it, connected."""
    session = driver.Session("sandbox", environ=environment(tmp_path))
    try:
        session.expect("Ctrl-C ends")
        session.expect("> ")
        yield session
    finally:
        if session.process.poll() is None:
            session.type("/quit")
            session.end(30)


def test_at_a_terminal_one_sees_the_answer_grow_and_the_tool_work(prompt):
    prompt.type("demo long")
    prompt.expect("\u2026 Hermes: is writing (")
    prompt.expect("turn_complete")
    prompt.expect("> ")
    prompt.type("demo tools")
    prompt.expect("\u2026 Hermes: is using terminal")
    prompt.expect("terminal completed in ")
    prompt.expect("turn_complete")
    prompt.expect("> ")


def test_at_a_terminal_a_word_nobody_knows_does_not_cost_the_card_and_has_one_answer(prompt):
    prompt.type("demo card")
    prompt.expect("answers: /file")
    prompt.type("/zzz")
    prompt.expect("> ")
    prompt.type("/file")
    prompt.expect('You picked "file" on the card.')
    prompt.expect("turn_complete")
    prompt.expect("Unknown command `/zzz`")
    prompt.expect("turn_complete")
    prompt.expect("> ")
    prompt.type("goodbye")
    between = prompt.expect('You wrote: "goodbye"')
    assert "/zzz" not in between


def _processes_naming(text):
    """The processes that mention ``text`` in their environment; one may still be on its way out."""
    deadline = time.monotonic() + 5
    while True:
        found = [path for path in PROC.glob("[0-9]*/environ") if text in _read(path)]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def _read(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
