"""What ``canon-hermes sandbox`` refuses, and how it ends when the gateway does not come up."""

import socket

import pytest
from canon_hermes_plugin.cli import main, sandbox
from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewayError
from click.testing import CliRunner


def run(*arguments, **environment):
    return CliRunner().invoke(main, ["sandbox", *arguments], env=environment)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--model", "m"), "need --model-url"),
        (("--api-key-env", "KEY"), "need --model-url"),
        (("--model-url", "http://x"), "needs --model"),
        (("--model-url", "http://x", "--model", "m", "--api-key-env", "SANDBOX_NO_SUCH_KEY"), "SANDBOX_NO_SUCH_KEY"),
        (("--model-url", "notaurl", "--model", "m"), "notaurl: not an http or https URL"),
        (("--port", "70000"), "70000"),
        (("--say", "hi", "--say", " "), "--say needs a text"),
        (("--no-gateway", "--say", "hi"), "--say cannot go with --no-gateway"),
        (("--no-gateway", "--model-url", "http://x", "--model", "m"), "config.yaml; choose it there"),
        (("--no-gateway", "--model", "m"), "need --model-url"),
        (("--no-gateway", "--keep"), "--keep cannot go with --no-gateway"),
        (("--no-gateway", "--no-streaming"), "set streaming.enabled there"),
    ],
)
def test_contradictory_options_are_refused_before_anything_starts(monkeypatch, arguments, complaint):
    for start in ("_run", "_run_without_gateway"):
        monkeypatch.setattr(sandbox, start, lambda *_: pytest.fail("started"))
    result = run(*arguments)
    assert result.exit_code == 2
    assert complaint in result.output


def test_a_taken_port_is_one_clear_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("--say", "hi", "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 1
    assert "cannot be used" in result.output
    assert "Traceback" not in result.output


def test_an_unreachable_model_is_a_failure_before_anything_starts(monkeypatch):
    monkeypatch.setattr(Gateway, "start", lambda *_, **__: pytest.fail("started"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    result = run("--say", "hi", "--model-url", url, "--model", "m")
    assert result.exit_code == 1
    assert f"The model at {url} cannot be reached: " in result.output
    assert "refused" in result.output
    assert "Canon:" not in result.output


def test_a_gateway_that_fails_ends_the_command_with_its_escaped_log_and_no_files(monkeypatch):
    roots = []

    def fail(self, *, timeout=0):
        roots.append(self.root)
        raise GatewayError("the gateway ended with exit code 3", "last line \x1b[31m")

    monkeypatch.setattr(Gateway, "start", fail)
    result = run("--say", "hi")
    assert result.exit_code == 1
    assert "exit code 3" in result.output
    assert "last line \\x1b[31m" in result.output
    assert not roots[0].exists()


def test_keep_leaves_the_home_and_says_where(monkeypatch, tmp_path):
    def fail(self, *, timeout=0):
        raise GatewayError("no", "log")

    monkeypatch.setattr(Gateway, "start", fail)
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path))
    result = run("--say", "hi", "--keep")
    assert f"Kept: {tmp_path}" in result.output
    assert tmp_path.exists()


def test_the_key_of_a_real_model_is_read_from_the_environment_only(monkeypatch):
    seen = []
    monkeypatch.setattr(sandbox, "_run", lambda options, _screen: seen.append(options.model))
    run("--model-url", "http://m/v1", "--model", "m", "--api-key-env", "KEY", KEY="secret")
    assert (seen[0].url, seen[0].name, seen[0].key) == ("http://m/v1", "m", "secret")
    assert "secret" not in repr(seen[0])


def test_ctrl_c_during_say_is_130(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sandbox, "_run", interrupted)
    assert run("--say", "hi").exit_code == 130
    assert run().exit_code == 0


def test_without_a_gateway_it_prints_the_environment_for_one_and_waits(monkeypatch):
    seen = {}

    def connected(chat, timeout):
        seen.update(running=chat.gateway.running, key=chat.canon.identity.api_key)
        raise KeyboardInterrupt

    monkeypatch.setattr(sandbox.Chat, "wait_connected", connected)
    result = run("--no-gateway")
    assert result.exit_code == 0
    assert f"CANON_API_KEY={seen['key']}" in result.output
    assert seen["running"]


@pytest.mark.parametrize(("limit", "hint"), [("7", True), ("8", False)])
def test_the_text_of_a_time_out_names_the_option_that_set_it(monkeypatch, limit, hint):
    def run_out(*_):
        raise sandbox.LateError("no complete answer", "the log", 7.0)

    monkeypatch.setattr(sandbox, "_run", run_out)
    result = run("--say", "hi", "--timeout", limit)
    assert result.exit_code == 1
    assert "no complete answer" in result.output
    assert ("--timeout SECONDS waits longer" in result.output) == hint


class _Gateway:
    def __init__(self, running):
        self.running = running

    def log(self, lines=40):
        return "the log"


def _converse(monkeypatch, running, lines):
    said = []

    def fail(_self, text):
        said.append(text)
        raise GatewayError("no complete answer", "the log")

    typed = iter(lines)
    monkeypatch.setattr(sandbox.Participant, "say", fail)
    monkeypatch.setattr(sandbox.Printer, "read", lambda _printer: next(typed, None))
    options = sandbox.SandboxOptions((), None, keep=False, streaming=True, port=0, timeout=1)
    chat = sandbox.Chat(sandbox.LoopbackCanon(), _Gateway(running))
    sandbox._converse(chat, options, sandbox.Screen())
    return said


def test_at_the_prompt_a_missing_answer_does_not_end_the_conversation(monkeypatch, capsys):
    assert _converse(monkeypatch, True, ["one", "  ", "two", "/quit", "three"]) == ["one", "two"]
    assert capsys.readouterr().out.count("No complete answer. Write on") == 2


def test_at_the_prompt_a_mistyped_answer_is_not_sent(monkeypatch, capsys):
    assert _converse(monkeypatch, True, ["/allow", "/stop"]) == ["/stop"]
    assert "Nothing is waiting for an answer." in capsys.readouterr().out


def test_at_the_prompt_a_dead_gateway_does(monkeypatch):
    with pytest.raises(GatewayError):
        _converse(monkeypatch, False, ["one", "two"])
