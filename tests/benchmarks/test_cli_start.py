"""What the command line costs before it does anything, against a bare interpreter, in one run."""

import os
import statistics
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.bench
RUNS = 7


def median_seconds(*arguments, environ):
    """The middle of several runs, interleaved by the caller."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=environ, capture_output=True, check=False)
    return time.perf_counter() - started


def test_help_and_doctor_start_within_a_small_multiple_of_the_interpreter(tmp_path, record_property):
    (tmp_path / "hermes").mkdir()
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("CANON_", "HERMES_", "GATEWAY_"))
    }
    environ |= {"HOME": str(tmp_path), "HERMES_HOME": str(tmp_path / "hermes"), "CANON_HOME": str(tmp_path / "canon")}
    commands = {
        "pass": ("-c", "pass"),
        "help": ("-m", "canon_hermes_plugin.cli", "--help"),
        "doctor": ("-m", "canon_hermes_plugin.cli", "doctor"),
    }
    seconds = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, arguments in commands.items():
            seconds[name].append(median_seconds(*arguments, environ=environ))
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    ratios = {name: round(middle[name] / middle["pass"], 1) for name in ("help", "doctor")}
    record_property("ratios", ratios)
    sys.stdout.write(f"\nstart-up against a bare interpreter: {ratios}\n")
    assert ratios["help"] < 20
    assert ratios["doctor"] < 80


@pytest.mark.parametrize("command", [["--help"], ["--version"], ["doctor", "--help"]])
def test_showing_help_loads_neither_container_nor_host(command):
    code = (
        "import sys\n"
        "from canon_hermes_plugin.cli import main\n"
        f"try: main({command!r})\n"
        "except SystemExit: pass\n"
        "heavy = {'dependency_injector', 'httpx', 'rich', 'starlette', 'uvicorn', 'ruamel', 'hermes_cli', 'gateway'}\n"
        "print('LOADED', sorted(heavy & set(sys.modules)))\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.decode("utf-8")
    assert "LOADED []" in shown
