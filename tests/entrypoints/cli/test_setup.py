"""``canon-hermes setup`` without a terminal: options in, exit code out (interactions §12.2, D14)."""

import json

import click
import pytest
from canon_hermes_plugin.cli import setup
from canon_hermes_plugin.infrastructure.files import env_text
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon

OPS = {
    "apiKey": "agk_live_example",
    "agentId": "agent_7Qd",
    "agentName": "Er\x1b[31mmes",
    "registeredAt": "2026-08-01T10:05:00Z",
    "environmentId": "canon-dev-v1",
    "baseUrl": "https://dev.api.canonmail.com",
    "streamUrl": "https://dev.stream.canonmail.com",
    "rtdbUrl": "https://canonmail-dev.firebaseio.com",
    "firebaseApiKey": "public",
}


@pytest.fixture(scope="module")
def canon():
    with LoopbackCanon() as server:
        yield server


@pytest.fixture
def addresses(canon):
    canon.registrations.requests.clear()
    return [
        *("--environment", "canon-dev-v1", "--base-url", canon.base_url, "--stream-url", canon.base_url),
        *("--rtdb-url", "http://localhost:9", "--firebase-api-key", "public"),
    ]


def env_of(home):
    path = home / ".env"
    return env_text.values(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_profiles(tmp_path, profiles):
    (tmp_path / "canon").mkdir()
    (tmp_path / "canon" / "agents.json").write_text(json.dumps(profiles), encoding="utf-8")


def test_a_registration_runs_by_options_alone(cli, home, canon, addresses, tmp_path):
    options = ["--register", "--name", "My Agent!", "--owner-phone", "+41791234567", *addresses]
    result = cli("setup", *options, "--timeout", "1")
    assert result.exit_code == 1
    assert "run canon-hermes setup again" in result.stderr
    canon.registrations.approve()
    result = cli("setup", *options)
    assert result.exit_code == 0
    assert "resuming request" in result.stdout
    assert env_of(home) == {"CANON_AGENT": "my-agent"}
    assert canon.identity.api_key not in result.output


@pytest.mark.parametrize(
    ("options", "named"),
    [([], "--owner-phone"), (["--register"], "--owner-phone"), (["--use-profile"], "--profile")],
)
def test_what_cannot_be_asked_is_named_with_its_option_and_is_wrong_usage(cli, home, tmp_path, options, named):
    write_profiles(tmp_path, {"ops": OPS, "z": OPS})
    result = cli("setup", "--reconfigure", *options)
    assert result.exit_code == 2
    assert named in result.stderr
    assert env_of(home) == {}


def test_the_only_profile_needs_no_name(cli, home, tmp_path):
    write_profiles(tmp_path, {"ops": OPS})
    assert cli("setup", "--use-profile", "--reconfigure").exit_code == 0
    assert env_of(home) == {"CANON_AGENT": "ops"}


@pytest.mark.parametrize("second", ["--use-profile", "--api-key-stdin"])
def test_two_ways_at_once_are_wrong_usage(cli, home, second):
    result = cli("setup", "--register", second, "--profile", "ops", input="agk_live_x\n")
    assert result.exit_code == 2
    assert "choose one" in result.stderr
    assert env_of(home) == {}


def test_a_phone_that_is_none_is_asked_for_again(cli, home, monkeypatch):
    monkeypatch.setattr(setup, "interactive", lambda: True)
    result = cli("setup", "--register", "--environment", "canon-x", input="\n\n079\n\n+41791234567\n\n")
    assert result.output.count("Owner's phone") == 3
    assert result.output.count("country code") == 2
    assert "unknown Canon environment" in result.stderr


def test_an_interrupted_question_ends_with_130(cli, home, monkeypatch):
    def interrupted(*_args, **_options):
        raise click.Abort

    monkeypatch.setattr(setup, "interactive", lambda: True)
    monkeypatch.setattr(click, "prompt", interrupted)
    result = cli("setup")
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
    assert env_of(home) == {}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--owner-phone", "079"], "phone"),
        (["--owner-phone", "+41791234567", "--name", " "], "needed"),
        (["--owner-phone", "+41791234567", "--profile", " "], "needed"),
        (["--owner-phone", "+41791234567", "--environment", "canon-x"], "unknown Canon environment"),
        (["--owner-phone", "+41791234567", "--base-url", "http://example.com"], "baseUrl"),
    ],
)
def test_an_unusable_answer_ends_with_1_and_nothing_written(cli, home, tmp_path, options, reason):
    result = cli("setup", "--register", *options)
    assert result.exit_code == 1
    assert reason in result.stderr
    assert not (tmp_path / "canon").exists()


def test_another_environment_behind_the_address_is_refused_before_anything_is_written(cli, home, addresses, tmp_path):
    options = ["--register", "--owner-phone", "+41791234567", *addresses, "--environment", "canon-prod-v1"]
    result = cli("setup", *options)
    assert result.exit_code == 1
    assert "another environment" in result.stderr
    assert not (tmp_path / "canon").exists()


def test_a_stored_profile_is_switched_to_and_its_name_shown_harmlessly(cli, home, tmp_path):
    write_profiles(tmp_path, {"ops": OPS, "z": OPS})
    (home / ".env").write_text("CANON_API_KEY=agk_live_old\nCANON_BASE_URL=https://x\n", encoding="utf-8")
    result = cli("setup", "--use-profile", "--profile", "ops", "--reconfigure")
    assert result.exit_code == 0
    assert env_of(home) == {"CANON_AGENT": "ops", "CANON_BASE_URL": "https://x"}
    assert "\x1b[31m" not in result.output


@pytest.mark.parametrize(
    ("profiles", "name", "reason"),
    [
        ({"ops": OPS}, "gone", "no profile 'gone'"),
        ({"ops": {**OPS, "apiKey": ""}}, "ops", "missing apiKey"),
        ({"ops": {**OPS, "clientType": "claude"}}, "ops", "another runtime"),
        ([], "ops", "one JSON object"),
    ],
)
def test_an_unusable_profile_is_refused(cli, home, tmp_path, profiles, name, reason):
    write_profiles(tmp_path, profiles)
    result = cli("setup", "--use-profile", "--profile", name, "--reconfigure")
    assert result.exit_code == 1
    assert reason in result.stderr
    assert env_of(home) == {}


def test_the_profile_of_another_runtime_is_never_replaced(cli, home, tmp_path):
    write_profiles(tmp_path, {"ops": {**OPS, "clientType": "claude"}})
    result = cli("setup", "--register", "--owner-phone", "+41791234567", "--profile", "ops")
    assert result.exit_code == 1
    assert "another runtime" in result.stderr


def test_the_hosts_set_up_step_is_ours(home, capsys):
    from canon_hermes_plugin import plugin

    class Context:
        def __getattr__(self, name):
            return lambda *_, **fields: self.entries.append((name, fields))

    context = Context()
    context.entries = []
    plugin.register(context)
    (step,) = [fields["setup_fn"] for name, fields in context.entries if name == "register_platform"]
    (home / ".env").write_text("CANON_AGENT=ops\n", encoding="utf-8")
    assert step() is None
    assert "nothing was changed" in capsys.readouterr().out


def test_a_key_on_standard_input_is_stored_with_its_whole_environment(cli, home, canon, addresses):
    result = cli("setup", "--api-key-stdin", *addresses, input="agk_live_piped\n")
    assert result.exit_code == 0
    assert env_of(home) == {
        "CANON_API_KEY": "agk_live_piped",
        "CANON_ENVIRONMENT_ID": "canon-dev-v1",
        "CANON_BASE_URL": canon.base_url,
        "CANON_STREAM_URL": canon.base_url,
        "CANON_RTDB_URL": "http://localhost:9",
        "CANON_FIREBASE_API_KEY": "public",
    }
    assert "piped" not in result.output


def test_a_blank_key_ends_with_1(cli, home, addresses):
    assert cli("setup", "--api-key-stdin", *addresses, input="\n").exit_code == 1
    assert env_of(home) == {}


def test_present_credentials_are_kept_without_reconfigure(cli, home):
    (home / ".env").write_text("CANON_AGENT=ops\n", encoding="utf-8")
    result = cli("setup", "--register", "--owner-phone", "+41791234567")
    assert result.exit_code == 0
    assert "nothing was changed" in result.stdout


def test_a_key_exported_by_the_shell_is_warned_of(cli, home, tmp_path, monkeypatch):
    write_profiles(tmp_path, {"ops": OPS})
    monkeypatch.setenv("CANON_API_KEY", "agk_live_exported")
    result = cli("setup", "--use-profile", "--profile", "ops", "--reconfigure")
    assert result.exit_code == 0
    assert "exported by your shell" in result.output


def test_a_managed_host_is_refused(cli, home, monkeypatch):
    monkeypatch.setenv("HERMES_MANAGED", "nixos")
    assert cli("setup").exit_code == 1


def test_the_gateway_setup_step_returns_instead_of_exiting(home, capsys):
    (home / ".env").write_text("CANON_AGENT=ops\n", encoding="utf-8")
    assert setup.gateway_setup() is None
    assert "nothing was changed" in capsys.readouterr().out
