"""``hermes gateway setup``: the host's own menu finds the platform and runs our set-up in it (interactions §12.2)."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
from canon_hermes_plugin.infrastructure.files import env_text
from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewaySettings

_DRIVER = Path(__file__).parents[1] / "entrypoints" / "cli" / "terminal_driver.py"
_spec = importlib.util.spec_from_file_location("terminal_driver", _DRIVER)
driver = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(driver)

pytestmark = [pytest.mark.gateway, pytest.mark.timeout(300)]
CONFIG = """\
plugins: {enabled: [canon-hermes]}
platforms: {canon: {enabled: true}}
onboarding: {profile_build: "off"}
security: {allow_lazy_installs: false, tirith_enabled: false}
"""
MENU = "Select a platform to configure"
"""The host shows it as a numbered list on a terminal it does not know."""


@pytest.fixture
def machine(tmp_path, model, canon, monkeypatch):
    """A Hermes home with the plugin enabled and no agent; returns it with the environment of a shell on it."""
    gateway = Gateway(GatewaySettings(canon={}, model_url=model.url, env={}), root=tmp_path)
    monkeypatch.setattr(gateway, "_prepare", lambda: None)
    gateway.home.mkdir()
    (tmp_path / "user").mkdir()
    (gateway.home / "config.yaml").write_text(CONFIG, encoding="utf-8")
    addresses = {name: value for name, value in canon.environment().items() if name != "CANON_API_KEY"}
    yield gateway.home, {**gateway.environment(), **addresses, "HERMES_HOME": str(gateway.home)}
    gateway.close()


@pytest.fixture
def session(machine):
    hermes = [sys.executable, "-m", "hermes_cli.main"]
    running = driver.Session("gateway", "setup", environ=machine[1], command=hermes, term="none-such")
    yield running
    if running.process.poll() is None:
        running.kill()  # behind the menu the host would offer to install a service


def entry(shown):
    """The number and the status the menu gives our platform."""
    (found,) = re.findall(r"(\d+)\. \S+ Canon  \(([^)]*)\)", shown)
    return found


def test_the_hosts_menu_offers_the_platform_and_connects_an_agent(session, machine, canon):
    home, environ = machine
    session.expect(MENU)
    number, status = entry(session.expect("Choice [default"))
    assert status == "not configured"
    session.type(number)

    session.register()
    session.expect("is with the owner")
    canon.registrations.approve()
    session.expect("connected as")

    session.expect(MENU)
    assert entry(session.expect("Choice [default"))[1].startswith("configured")
    profiles = json.loads((Path(environ["CANON_HOME"]) / "agents.json").read_text(encoding="utf-8"))
    assert profiles["ops"]["apiKey"] == canon.identity.api_key
    assert env_text.values((home / ".env").read_text(encoding="utf-8"))["CANON_AGENT"] == "ops"
    assert canon.identity.api_key not in session.raw


def test_a_set_up_that_is_broken_off_returns_to_the_hosts_menu(session, machine):
    session.expect(MENU)
    number, _ = entry(session.expect("Choice [default"))
    session.type(number)
    session.expect("Choose")
    session.end_input()
    session.expect(MENU)
    assert entry(session.expect("Choice [default"))[1] == "not configured"
