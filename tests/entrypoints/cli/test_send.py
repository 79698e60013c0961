"""``canon-hermes send`` and ``completion``."""

import subprocess
import sys

import pytest
from canon_hermes_plugin.infrastructure.sandbox.server import DIRECT, GROUP, LoopbackCanon


@pytest.fixture
def canon():
    with LoopbackCanon() as server:
        yield server


@pytest.fixture
def connected(home, canon):
    lines = {
        "CANON_API_KEY": canon.identity.api_key,
        "CANON_ENVIRONMENT_ID": "canon-dev-v1",
        "CANON_BASE_URL": canon.base_url,
        "CANON_STREAM_URL": canon.base_url,
        "CANON_RTDB_URL": "http://localhost:9",
        "CANON_HOME_CHANNEL": DIRECT,
    }
    (home / ".env").write_text("".join(f"{name}={value}\n" for name, value in lines.items()), encoding="utf-8")
    return canon


def texts(canon, conversation):
    return [message.text for message in canon.messages(conversation)]


def test_a_message_goes_to_the_conversation_that_was_named(cli, connected):
    result = cli("send", "--to", GROUP, "hello é")
    assert result.exit_code == 0
    assert texts(connected, GROUP) == ["hello é"]
    assert texts(connected, DIRECT) == []


def test_without_a_target_it_goes_to_the_home_channel_and_text_may_come_from_standard_input(cli, connected):
    assert cli("send", "-", input="from a pipe\n").exit_code == 0
    assert texts(connected, DIRECT) == ["from a pipe"]


def test_long_text_is_split_and_nothing_of_it_lost(cli, connected):
    text = "word " * 2000
    assert cli("send", "--to", GROUP, text).exit_code == 0
    parts = texts(connected, GROUP)
    assert len(parts) > 1
    assert "".join(" ".join(parts).split()) == "".join(text.split())


def test_a_file_is_attached(cli, connected, tmp_path):
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    assert cli("send", "--to", GROUP, "see", "--file", str(tmp_path / "a.txt")).exit_code == 0
    (request,) = connected.requests("send")
    assert len(request.body["attachments"]) == 1


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_is_refused_before_anything_goes_over_the_network(cli, home, text):
    result = cli("send", "--to", GROUP, text)
    assert result.exit_code == 1
    assert "no text" in result.stderr


def test_without_a_target_and_a_home_channel_it_is_wrong_usage(cli, connected, home):
    lines = (home / ".env").read_text(encoding="utf-8").replace(f"CANON_HOME_CHANNEL={DIRECT}\n", "")
    (home / ".env").write_text(lines, encoding="utf-8")
    result = cli("send", "x")
    assert result.exit_code == 2
    assert "--to" in result.stderr


def test_an_unknown_conversation_is_named(cli, connected):
    result = cli("send", "--to", "nope", "x")
    assert result.exit_code == 1
    assert "no conversation 'nope', or the agent is not in it; nothing was sent: check the id" in result.stderr
    assert "add the agent" in result.stderr


def test_a_forbidden_conversation_is_told_from_an_unknown_one(cli, connected):
    connected.fault("send", kind="status", status=403)
    result = cli("send", "--to", GROUP, "x")
    assert result.exit_code == 1
    assert "may not write" in result.stderr


def test_an_address_that_does_not_answer_is_named_with_what_to_check(cli, connected, home):
    text = (home / ".env").read_text(encoding="utf-8").replace(connected.base_url, "http://127.0.0.1:1")
    (home / ".env").write_text(text, encoding="utf-8")
    result = cli("send", "--to", GROUP, "x")
    assert result.exit_code == 1
    assert "the API address http://127.0.0.1:1 does not answer" in result.stderr
    assert "CANON_BASE_URL" in result.stderr
    assert "try again later" in result.stderr


def test_nothing_to_send_or_nobody_to_send_as_is_exit_1(cli, connected, home):
    assert cli("send", "--to", GROUP, "").exit_code == 1
    (home / ".env").unlink()
    result = cli("send", "--to", GROUP, "x")
    assert result.exit_code == 1
    assert "canon-hermes setup" in result.stderr


def test_a_refused_key_is_exit_1_and_nothing_of_it_shown(cli, connected, home):
    text = (home / ".env").read_text(encoding="utf-8").replace(connected.identity.api_key, "agk_live_wrong")
    (home / ".env").write_text(text, encoding="utf-8")
    result = cli("send", "--to", GROUP, "x")
    assert result.exit_code == 1
    assert "Canon refuses the key: canon-hermes setup --reconfigure" in result.stderr
    assert "agk_live" not in result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_names_program_and_variable(cli, shell):
    result = cli("completion", shell)
    assert result.exit_code == 0
    assert "_CANON_HERMES_COMPLETE" in result.stdout


def test_the_shell_is_told_the_commands(home, monkeypatch):
    monkeypatch.setenv("_CANON_HERMES_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "canon-hermes ")
    monkeypatch.setenv("COMP_CWORD", "1")
    code = "import sys; sys.argv[0] = 'canon-hermes'; from canon_hermes_plugin.cli import main; main()"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).stdout.decode("utf-8")
    assert {"plain,install", "plain,setup", "plain,doctor", "plain,send"} <= set(shown.split())
