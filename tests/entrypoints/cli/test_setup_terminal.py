"""``canon-hermes`` as a person uses it: the loopback Canon and a pseudo-terminal (interactions §12, §13)."""

import importlib.util
import json
import os
from pathlib import Path

import pytest
from canon_hermes_plugin.infrastructure.files import env_text
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon

_spec = importlib.util.spec_from_file_location("terminal_driver", Path(__file__).with_name("terminal_driver.py"))
driver = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(driver)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
DIRECT = ("CANON_API_KEY", "CANON_ENVIRONMENT_ID", "CANON_BASE_URL", "CANON_STREAM_URL", "CANON_RTDB_URL")


@pytest.fixture
def canon():
    with LoopbackCanon() as server:
        yield server


@pytest.fixture
def addresses(canon):
    return {
        "CANON_ENVIRONMENT_ID": "canon-dev-v1",
        "CANON_BASE_URL": canon.base_url,
        "CANON_STREAM_URL": canon.base_url,
        "CANON_RTDB_URL": "http://localhost:9",
        "CANON_FIREBASE_API_KEY": "public",
    }


@pytest.fixture
def start(home, addresses):
    return lambda *arguments: driver.Session(*arguments, environ={**os.environ, **addresses})


def stored(home):
    profiles = Path(os.environ["CANON_HOME"]) / "agents.json"
    pending = Path(os.environ["CANON_HOME"]) / "pending-registrations.json"
    read = [json.loads(path.read_text(encoding="utf-8")) if path.exists() else {} for path in (profiles, pending)]
    env = home / ".env"
    return *read, env_text.values(env.read_text(encoding="utf-8")) if env.exists() else {}


def test_from_nothing_to_a_connected_agent_in_one_go(start, canon, home):
    session = start("install", "--setup")
    session.expect("platform canon: enabled now")
    session.register()
    session.expect("is with the owner")
    canon.registrations.approve()
    session.expect("connected as")
    code, rest = session.end()
    assert code == 0
    assert "'ops'" in rest
    profiles, pending, env = stored(home)
    assert profiles["ops"]["apiKey"] == canon.identity.api_key
    assert profiles["ops"]["baseUrl"] == canon.base_url
    assert pending == {}
    assert env == {"CANON_ALLOW_ALL_USERS": "true", "CANON_AGENT": "ops"}
    assert canon.registrations.requests[0].acknowledged
    assert canon.identity.api_key not in rest

    again = start("install")
    assert again.end()[0] == 0
    assert stored(home) == (profiles, pending, env)

    kept = start("setup")
    kept.answer("Reconfigure?", "")
    code, rest = kept.end()
    assert (code, stored(home)) == (0, (profiles, pending, env))
    assert "nothing was changed" in rest

    reconnect = start("setup", "--reconfigure")
    reconnect.register()
    reconnect.expect("is with the owner")
    assert canon.registrations.requests[-1].body["requestedAgentId"] == profiles["ops"]["agentId"]
    canon.registrations.approve()
    assert reconnect.end()[0] == 0
    assert len(canon.registrations.requests) == 2


def test_a_rejected_registration_is_no_success_d14(start, canon, home):
    session = start("setup")
    session.register()
    session.expect("is with the owner")
    canon.registrations.reject()
    code, rest = session.end()
    assert code == 1
    assert "rejected" in rest
    assert stored(home) == ({}, {}, {})


def test_a_server_that_is_down_changes_nothing_and_one_that_stumbles_is_outlived_d15(start, canon, home, addresses):
    addresses["CANON_BASE_URL"] = "http://127.0.0.1:1"
    session = start("setup")
    session.answer("Choose", "1")
    for question, line in (
        ("display name", ""),
        ("Description", ""),
        ("phone", "+41791234567"),
        ("Profile name", "ops"),
    ):
        session.answer(question, line)
    for question in ("Canon environment", "API address", "Stream address", "Database address", "Public web key"):
        session.answer(question)
    code, rest = session.end()
    assert code == 1
    assert "does not answer" in rest
    assert stored(home) == ({}, {}, {})

    addresses["CANON_BASE_URL"] = canon.base_url
    canon.fault("register.status", kind="status", status=503)
    canon.fault("register.status", kind="drop")
    session = start("setup")
    session.register()
    session.expect("is with the owner")
    canon.registrations.approve()
    session.expect("trying again")
    assert session.end()[0] == 0
    assert stored(home)[2] == {"CANON_AGENT": "ops"}


def test_an_interrupted_registration_is_taken_up_again(start, canon, home):
    session = start("setup")
    session.register()
    session.expect("waiting for approval")
    session.interrupt()
    code, rest = session.end()
    assert code == 130
    assert "run canon-hermes setup again" in rest
    assert stored(home)[1]["ops"]["requestId"] == "req_1"

    canon.registrations.approve()
    session = start("setup")
    session.answer("Choose", "1")
    session.answer("Take up the pending registration of profile 'ops'", "")
    session.expect("resuming request req_1")
    assert session.end()[0] == 0
    assert len(canon.registrations.requests) == 1
    assert stored(home)[0]["ops"]["agentId"] == canon.identity.agent_id


def test_colours_show_on_a_terminal_and_not_with_no_color(home, addresses):
    def raw(**more):
        session = driver.Session("doctor", environ={**os.environ, **addresses, **more})
        session.end()
        return session.raw

    assert "\x1b[32m" in raw()
    assert "\x1b[" not in raw(NO_COLOR="1")


@pytest.mark.flaky(reruns=2)  # a signal may fall into the interpreter's own start of reading a line
def test_an_interrupted_question_ends_with_130_and_changes_nothing(start, home):
    session = start("setup")
    session.expect("Choose")
    session.interrupt()
    assert session.end()[0] == 130
    assert stored(home) == ({}, {}, {})


def test_a_pasted_key_is_not_shown_and_replaces_a_profile(start, canon, home):
    (home / ".env").write_text("CANON_AGENT=old\nOTHER=1\n", encoding="utf-8")
    session = start("setup")
    session.answer("Reconfigure?", "y")
    session.answer("Choose", "3")
    session.answer("Canon API key", "agk_live_it's $ecret")
    for question in ("Canon environment", "API address", "Stream address", "Database address", "Public web key"):
        session.answer(question)
    code, rest = session.end()
    assert code == 0
    assert "ecret" not in rest
    env = stored(home)[2]
    assert env["CANON_API_KEY"] == "agk_live_it's $ecret"
    assert env["CANON_BASE_URL"] == canon.base_url
    assert env["OTHER"] == "1"
    assert "CANON_AGENT" not in env
