"""The command group itself (interactions §12)."""

import subprocess
import sys
from pathlib import Path

import pytest
from canon_hermes_plugin.cli import approvals
from canon_hermes_plugin.infrastructure.files.environment_catalog import packaged_catalog


def test_help_lists_every_command_with_its_line(cli):
    result = cli("--help")
    assert result.exit_code == 0
    for name in ("install", "setup", "doctor", "send", "sandbox", "completion"):
        assert f"  {name}" in result.stdout


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["doctor", "--nonsense"], ["install", "extra"]])
def test_wrong_usage_ends_with_2(cli, arguments):
    assert cli(*arguments).exit_code == 2


@pytest.mark.parametrize("name", ["install", "setup", "doctor", "send", "sandbox", "completion"])
def test_every_command_explains_itself(cli, name):
    result = cli(name, "--help")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) > 4


def test_the_version_is_told(cli):
    assert cli("--version").stdout.startswith("canon-hermes-plugin ")


def test_both_scripts_and_the_module_are_one_program():
    from importlib.metadata import entry_points

    scripts = {
        entry.name: entry.value for entry in entry_points(group="console_scripts") if "canon-hermes" in entry.name
    }
    assert scripts == dict.fromkeys(("canon-hermes", "canon-hermes-plugin"), "canon_hermes_plugin.cli:main")
    shown = subprocess.run(
        [sys.executable, "-m", "canon_hermes_plugin.cli", "--version"], capture_output=True, check=True
    )
    assert shown.stdout.startswith(b"canon-hermes-plugin ")


@pytest.mark.skipif(sys.platform == "win32", reason="file descriptors are closed by a POSIX shell here")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_caller_that_closed_the_standard_streams_gets_the_same_exit_code(home, closed):
    program = f"exec {sys.executable} -m canon_hermes_plugin.cli doctor {closed}"
    ended = subprocess.run(["/bin/sh", "-c", program], capture_output=True, check=False)
    assert ended.returncode == 1
    assert b"Traceback" not in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_output_without_room_is_told_in_one_line(home, options):
    program = [sys.executable, "-m", "canon_hermes_plugin.cli", "doctor", *options]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 1
    (line,) = ended.stderr.decode("utf-8").splitlines()
    assert "could not be written" in line


def test_the_manual_names_the_default_environment_and_every_command_for_approvals():
    manual = (Path(__file__).parents[3] / "docs" / "operations.md").read_text(encoding="utf-8")
    assert f"else `{packaged_catalog().default().environment_id}`" in manual
    for name in approvals.command.commands:
        assert f"`canon-hermes approvals {name}`" in manual
