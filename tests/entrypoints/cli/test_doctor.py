"""``canon-hermes doctor`` names the fault of every broken set-up, and says no part of a key (interactions §12.3)."""

import importlib.metadata
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from canon_hermes_plugin.infrastructure.files.outbox import FileOutbox
from canon_hermes_plugin.infrastructure.hermes import inspection
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.testing.contracts.outbox import entry

KEY = "agk_live_S3cretPart"
ENV = {"CANON_API_KEY": KEY, "CANON_ENVIRONMENT_ID": "canon-dev-v1", "CANON_ALLOW_ALL_USERS": "true"}
GOOD = "plugins: {enabled: [canon-hermes]}\nplatforms: {canon: {enabled: true}}\n"
PROFILE = {
    "apiKey": KEY,
    "agentId": "agent_1",
    "agentName": "Ermes",
    "registeredAt": "2026-08-01T10:05:00Z",
    "environmentId": "canon-dev-v1",
    "baseUrl": "https://dev.api.canonmail.com",
    "streamUrl": "https://dev.stream.canonmail.com",
    "rtdbUrl": "https://canonmail-dev.firebaseio.com",
    "firebaseApiKey": "public",
}


@pytest.fixture
def doctor(cli, home, tmp_path):
    """Write the files of one set-up, run the doctor, and return its exit code and its lines by name."""

    def run(*options, config=GOOD, env=ENV, canon=None):
        (home / "config.yaml").write_text(config, encoding="utf-8")
        (home / ".env").write_text("".join(f"{key}={value}\n" for key, value in env.items()), encoding="utf-8")
        (home / ".env").chmod(0o600)
        for name, content in (canon or {}).items():
            (tmp_path / "canon").mkdir(exist_ok=True)
            text = content if isinstance(content, str) else json.dumps(content)
            (tmp_path / "canon" / name).write_text(text, encoding="utf-8")
            (tmp_path / "canon" / name).chmod(0o600)
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        result = cli("doctor", "--json", *options)
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
        assert "S3cret" not in result.output
        document = json.loads(result.stdout)
        lines = {}
        for line in document["checks"]:
            lines.setdefault(line["check"], line)
        return result.exit_code, lines

    return run


def test_a_complete_set_up_is_ready(doctor):
    code, lines = doctor()
    assert code == 0
    assert [line["check"] for line in lines.values() if line["state"] == "fault"] == []
    required = {name for name, line in lines.items() if line["required"]}
    assert required == {"host-version", "entry-point", "config", "plugin-enabled", "platform-enabled", "credentials"}


LEDGER = {"a": "not an entry"}
BROKEN = {
    "broken-yaml": ({"config": "plugins: [a\nb: 1\n"}, "config", "line 2, column 2"),
    "config-is-a-list": ({"config": "- a\n"}, "config", "mapping"),
    "plugin-not-enabled": (
        {"config": "platforms: {canon: {enabled: true}}\n"},
        "plugin-enabled",
        "not in plugins.enabled",
    ),
    "plugin-in-both-lists": (
        {"config": GOOD.replace("]}", "], disabled: [canon-hermes]}")},
        "plugin-enabled",
        "conflict",
    ),
    "plugin-only-disabled": (
        {"config": "plugins: {disabled: [canon-hermes]}\nplatforms: {canon: {enabled: true}}\n"},
        "plugin-enabled",
        "in plugins.disabled",
    ),
    "plugin-list-ignored": (
        {"config": "plugins: {enabled: [canon-hermes, [x]]}\nplatforms: {canon: {enabled: true}}\n"},
        "plugin-enabled",
        "ignores all of it",
    ),
    "platform-off": ({"config": GOOD.replace("true", "no")}, "platform-enabled", "switched off"),
    "platform-missing": ({"config": "plugins: {enabled: [canon-hermes]}\n"}, "platform-enabled", "not enabled"),
    "no-credentials": ({"env": {}}, "credentials", "(none)"),
    "key-without-environment": ({"env": {"CANON_API_KEY": KEY}}, "credentials", "CANON_ENVIRONMENT_ID"),
    "unknown-environment": (
        {"env": {**ENV, "CANON_ENVIRONMENT_ID": "canon-x"}},
        "credentials",
        "canon-prod-v1, canon-dev-v1",
    ),
    "bad-address": ({"env": {**ENV, "CANON_BASE_URL": "http://example.com"}}, "credentials", "baseUrl"),
    "unknown-profile": (
        {"env": {"CANON_AGENT": "x"}, "canon": {"agents.json": {"ops": PROFILE}}},
        "credentials",
        "no Canon profile 'x'",
    ),
    "unbound-profile": (
        {"env": {"CANON_AGENT": "ops"}, "canon": {"agents.json": {"ops": {**PROFILE, "streamUrl": ""}}}},
        "credentials",
        "missing streamUrl",
    ),
    "foreign-profile": (
        {"env": {"CANON_AGENT": "ops"}, "canon": {"agents.json": {"ops": {**PROFILE, "clientType": "x"}}}},
        "credentials",
        "another runtime",
    ),
    "several-profiles": ({"env": {}, "canon": {"agents.json": {"a": PROFILE, "b": PROFILE}}}, "credentials", "a, b"),
    "broken-profiles": ({"env": {}, "canon": {"agents.json": "{"}}, "credentials", "agents.json is not valid JSON"),
    "broken-bootstrap": ({"env": {"CANON_AGENTS_JSON_BOOTSTRAP": "junk"}}, "credentials", "BOOTSTRAP"),
    "unexpanded-key": (
        {"env": {}, "config": GOOD.replace("{enabled: true}", "{enabled: true, extra: {api_key: '${NOPE}'}}")},
        "credentials",
        "not set",
    ),
    "unusable-key": ({"env": {**ENV, "CANON_API_KEY": '"agk live"'}}, "api-key", "characters"),
    "broken-ledger": ({"canon": {"detached-approvals.json": LEDGER}}, "ledger", "no approval works"),
    "truncated-ledger": ({"canon": {"detached-approvals.json": '{"a": {'}}, "ledger", "not valid JSON"),
    "broken-pending": ({"canon": {"pending-registrations.json": "[]"}}, "pending", "one JSON object"),
    "multiplexing": ({"config": f"{GOOD}gateway: {{multiplex_profiles: true}}\n"}, "multiplexing", "several agents"),
    "bad-setting": ({"env": {**ENV, "CANON_TURN_VERBOSITY": "loud"}}, "settings", "CANON_TURN_VERBOSITY"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_set_up_names_its_fault_and_a_fix(doctor, name):
    setting, check, meaning = BROKEN[name]
    code, lines = doctor(**setting)
    assert code == 1
    assert lines[check]["state"] == "fault"
    assert meaning in lines[check]["meaning"]
    assert lines[check]["fix"]


HURTING = {
    "approvals-off": ({"config": f"{GOOD}approvals: {{mode: off}}\n"}, "approvals-mode", "without asking"),
    "approvals-smart": ({"config": f"{GOOD}approvals: {{mode: smart}}\n"}, "approvals-mode", "a model may approve"),
    "reasoning-shown": ({"config": f"{GOOD}display: {{show_reasoning: true}}\n"}, "display", "reasoning"),
    "fresh-final": (
        {"config": f"{GOOD}streaming: {{enabled: true, fresh_final_after_seconds: 5}}\n"},
        "streaming-final",
        "second way",
    ),
    "key-and-profile": ({"env": {**ENV, "CANON_AGENT": "ops"}}, "credentials-conflict", "the key wins"),
    "nobody-allowed": ({"env": {k: v for k, v in ENV.items() if "ALLOW" not in k}}, "access", "pair"),
}


@pytest.mark.parametrize("name", HURTING)
def test_what_only_hurts_is_a_warning_and_no_fault(doctor, name):
    setting, check, meaning = HURTING[name]
    code, lines = doctor(**setting)
    assert (code, lines[check]["state"]) == (0, "warning")
    assert meaning in lines[check]["meaning"]
    assert lines[check]["fix"]


@pytest.mark.parametrize(
    ("config", "check"), [("", "streaming"), ("streaming: {enabled: true, transport: off}\n", "streaming")]
)
def test_streaming_that_is_off_is_noted(doctor, config, check):
    assert doctor(config=GOOD + config)[1][check]["state"] == "note"
    assert doctor(config=f"{GOOD}streaming: {{enabled: true}}\n")[1][check]["state"] == "ok"


def test_d13_credentials_in_the_hosts_env_file_are_found_and_their_place_told(doctor, home):
    _, lines = doctor()
    assert lines["credentials"]["meaning"] == f"credentials: (api key override) from CANON_API_KEY in {home / '.env'}"


def test_a_profile_is_told_by_its_name(doctor):
    _, lines = doctor(env={"CANON_AGENT": "ops"}, canon={"agents.json": {"ops": PROFILE}})
    assert "profile 'ops', agent Ermes (agent_1)" in lines["credentials"]["meaning"]


def test_a_bootstrap_is_judged_without_being_written(doctor):
    _, lines = doctor(env={"CANON_AGENTS_JSON_BOOTSTRAP": json.dumps({"ops": PROFILE})})
    assert "profile 'ops'" in lines["credentials"]["meaning"]


def test_the_facts_stand_in_the_order_of_the_contract(doctor):
    wanted = ["plugin-version", "host-version", "entry-point", "launcher", "plugin-enabled", "platform-enabled"]
    wanted += ["credentials", "hooks"]
    _, lines = doctor()
    assert [name for name in lines if name in wanted] == wanted


def test_a_variable_that_differs_between_file_and_shell_is_a_conflict(doctor, monkeypatch):
    monkeypatch.setenv("CANON_ENVIRONMENT_ID", "canon-prod-v1")
    assert "differs" in doctor()[1]["credentials-conflict"]["meaning"]


def test_a_key_assigned_twice_is_named_and_a_two_line_value_is_not(doctor, home):
    doctor()
    from canon_hermes_plugin.infrastructure.files.env_text import change

    path = home / ".env"
    quoted = change("", {"CANON_API_KEY": "it's $x"})
    path.write_text(quoted, encoding="utf-8")
    from canon_hermes_plugin.cli.doctor import examine

    assert not [line for line in examine(online=False).lines if line.check == "env-file"]
    path.write_text(f"{quoted}CANON_API_KEY=2\n", encoding="utf-8")
    assert [line.meaning for line in examine(online=False).lines if line.check == "env-file"]


def test_a_readable_secret_is_warned_of(doctor, home, cli):
    doctor()
    (home / ".env").chmod(0o644)
    assert "mode 0644" in cli("doctor").stdout


def test_a_ledger_is_counted_by_state_and_its_strays_told(doctor, tmp_path):
    (tmp_path / "canon").mkdir()
    (tmp_path / "canon" / ".detached-approvals.json.1.ab.tmp").write_bytes(b"")
    _, lines = doctor(canon={"detached-approvals.json": {}})
    assert lines["ledger"]["meaning"] == "approvals ledger: empty"
    assert "1 temporary files" in lines["ledger-strays"]["meaning"]


@pytest.mark.parametrize(("age", "told"), [(60, False), (7200, True)])
def test_field_90_answers_that_are_stuck_in_the_outbox_are_told_without_a_word_of_them(doctor, tmp_path, age, told):
    store = FileOutbox(tmp_path / "canon", "one")
    store.keep_now(entry("secret"))
    (path,) = (tmp_path / "canon" / "outbox").glob("*/*.json")
    os.utime(path, (time.time() - age,) * 2)
    _, lines = doctor()
    assert ("outbox" in lines) is told
    assert not told or "1 undelivered answer lies" in lines["outbox"]["meaning"]
    assert not told or "for 2.0 h" in lines["outbox"]["meaning"]
    assert "secret" not in str(lines)


def test_a_pending_registration_is_told(doctor):
    _, lines = doctor(canon={"pending-registrations.json": {"ops": {"requestId": "r"}}})
    assert "'ops' waits for its owner" in lines["pending"]["meaning"]


def test_a_given_up_platform_and_a_silent_stream_are_told(doctor, home):
    state = {
        "pid": os.getpid(),
        "gateway_state": "running",
        "platforms": {"canon": {"state": "fatal", "error_code": "auth_failed"}},
    }
    (home / "gateway_state.json").write_text(json.dumps(state), encoding="utf-8")
    (home / "canon-stream.json").write_text('{"state": "live", "lastByteAt": 1000}', encoding="utf-8")
    code, lines = doctor()
    assert code == 1
    assert "auth_failed" in lines["gateway"]["meaning"]
    assert lines["stream"]["state"] == "warning"


def test_an_unsupported_or_missing_host_is_named(doctor, monkeypatch):
    versions = {"hermes-agent": "0.20.1", "canon-hermes-plugin": "0.12.1"}
    monkeypatch.setattr(inspection, "_version", versions.get)
    assert "outside the supported range" in doctor()[1]["host-version"]["meaning"]
    versions["hermes-agent"] = None
    code, lines = doctor()
    assert (code, lines["host-version"]["state"]) == (1, "fault")


def test_field_58_a_missing_entry_point_is_told_apart_from_the_enable_key(doctor, monkeypatch):
    monkeypatch.setattr(inspection, "entry_points", lambda **_: importlib.metadata.EntryPoints())
    code, lines = doctor()
    assert code == 1
    assert lines["entry-point"]["state"] == "fault"
    assert lines["plugin-enabled"]["state"] == "ok"


def test_missing_internals_and_hooks_are_named(doctor, monkeypatch):
    monkeypatch.setattr(inspection, "_source", lambda _: "VALID_HOOKS: Set[str] = {\n}\ndef register_hook(\n")
    _, lines = doctor()
    assert "_active_sessions" in lines["host-internals"]["meaning"]
    assert "pre_tool_call" in lines["hooks"]["meaning"]


def test_field_62_the_installed_host_has_every_borrowed_name_and_hook(doctor):
    _, lines = doctor()
    assert (lines["host-internals"]["state"], lines["hooks"]["state"]) == ("ok", "ok")


@pytest.mark.parametrize(
    ("script", "state"),
    [
        (None, "absent"),
        ("#!{python}\n", "same"),
        ('#!/bin/sh\n\'\'\'exec\' "{python}" "$0" "$@"\n', "same"),
        ("#!/other/venv/bin/python3\n", "other"),
        ("#!{folder}/../{folder_name}/python\n", "same"),
        ("#!{linked}/python\n", "same"),
        ("#!{linked}/../python\n", "other"),
        ("#!/bin/bash\n", "not python"),
        ("\x7fELF", "not python"),
    ],
)
def test_the_launcher_is_told_apart(tmp_path, monkeypatch, script, state):
    monkeypatch.setenv("PATH", str(tmp_path))
    if script is not None:
        folder = Path(sys.executable).parent
        (tmp_path / "bin").symlink_to(folder)
        names = {"python": sys.executable, "folder": folder, "folder_name": folder.name, "linked": tmp_path / "bin"}
        (tmp_path / "hermes").write_text(script.format_map(names), encoding="utf-8")
        (tmp_path / "hermes").chmod(0o755)
    assert inspection._launcher()[0] == state


@pytest.fixture(scope="module")
def canon():
    with LoopbackCanon() as server:
        yield server


def online_env(canon, **changes):
    return {
        "CANON_API_KEY": canon.identity.api_key,
        "CANON_ENVIRONMENT_ID": "canon-dev-v1",
        "CANON_BASE_URL": canon.base_url,
        "CANON_STREAM_URL": canon.base_url,
        "CANON_RTDB_URL": "http://localhost:9",
        **changes,
    }


def test_online_proves_environment_and_key(doctor, canon):
    code, lines = doctor("--online", env=online_env(canon))
    assert code == 0
    assert canon.identity.agent_id in lines["environment"]["meaning"]


@pytest.mark.parametrize(
    ("changes", "meaning", "fix"),
    [
        ({"CANON_API_KEY": "agk_live_wrong"}, "401", "canon-hermes setup"),
        ({"CANON_BASE_URL": "http://127.0.0.1:1"}, "does not answer", "try again later"),
        ({"CANON_ENVIRONMENT_ID": "canon-prod-v1"}, "another environment", "correct the addresses"),
    ],
)
def test_online_names_what_canon_refuses(doctor, canon, changes, meaning, fix):
    code, lines = doctor("--online", env=online_env(canon, **changes))
    assert code == 1
    assert meaning in lines["environment"]["meaning"]
    assert fix in lines["environment"]["fix"]


def test_without_online_no_network_is_used(doctor, canon):
    before = len(canon.requests())
    _, lines = doctor(env=online_env(canon))
    assert lines["environment"]["state"] == "note"
    assert len(canon.requests()) == before


def test_lines_for_people_carry_mark_meaning_fix_and_a_verdict(cli, home):
    (home / "config.yaml").write_text(GOOD, encoding="utf-8")
    result = cli("doctor")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[-1].endswith("needs setup: credentials")
    assert any(line.strip() == "-> canon-hermes setup" for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(("variables", "coloured"), [({}, False), ({"FORCE_COLOR": "1"}, False)])
def test_nothing_is_coloured_without_a_terminal(home, variables, coloured):
    shown = subprocess.run(
        [sys.executable, "-m", "canon_hermes_plugin.cli", "doctor"],
        env={**os.environ, **variables},
        capture_output=True,
        check=False,
    ).stdout
    assert (b"\x1b[" in shown) == coloured
