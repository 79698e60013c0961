"""An operator's first minutes: install, setup, gateway, doctor, each as its own program (interactions §12)."""

import json
import subprocess
import sys

import pytest
from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewaySettings
from canon_hermes_plugin.infrastructure.sandbox.server import DIRECT

pytestmark = pytest.mark.gateway
CONFIG = """\
# my agent
model:
  default: scripted-model   # the best one
  provider: custom
  base_url: {url}
  api_key: sk-loopback
  context_length: 200000
onboarding: {{profile_build: "off"}}
security: {{allow_lazy_installs: false, tirith_enabled: false}}
plugins:
  enabled:
  disabled: [canon-hermes]
"""


@pytest.fixture
def machine(tmp_path, model, monkeypatch):
    """A Hermes home with a model and nothing of Canon, and the environment of a shell on it."""
    settings = GatewaySettings(
        canon={}, model_url=model.url, env={"CANON_ALLOW_ALL_USERS": "", "CANON_HOME_CHANNEL": ""}
    )
    gateway = Gateway(settings, root=tmp_path)
    monkeypatch.setattr(gateway, "_prepare", lambda: None)
    gateway.home.mkdir()
    (tmp_path / "user").mkdir()
    (gateway.home / "config.yaml").write_text(CONFIG.format(url=model.url), encoding="utf-8")
    yield gateway
    gateway.close()


def run(gateway, *arguments, **options):
    command = [sys.executable, "-m", "canon_hermes_plugin.cli", *arguments]
    return subprocess.Popen(
        command, env=gateway.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )


def test_from_an_untouched_hermes_to_an_answer_and_a_clean_bill(machine, canon, model):
    install = run(machine, "install")
    assert "removed from plugins.disabled" in install.communicate(timeout=60)[0]
    assert install.returncode == 0
    assert "# the best one" in (machine.home / "config.yaml").read_text(encoding="utf-8")

    addresses = ["--environment", "canon-dev-v1", "--base-url", canon.base_url, "--stream-url", canon.base_url]
    addresses += ["--rtdb-url", "http://localhost:9", "--firebase-api-key", "public"]
    setup = run(machine, "setup", "--register", "--owner-phone", "+41791234567", *addresses)
    canon.wait_for(lambda c: c.registrations.requests)
    canon.registrations.approve()
    shown, _ = setup.communicate(timeout=60)
    assert setup.returncode == 0, shown
    assert canon.identity.api_key not in shown

    machine.start()
    canon.wait_connected()
    model.script("weather", ["It is sunny."])
    canon.say(DIRECT, "user_dana", "weather?")
    (final,) = canon.wait_for(lambda c: c.finals(DIRECT))
    assert final.text == "It is sunny."

    doctor = run(machine, "doctor", "--json", "--online")
    report = json.loads(doctor.communicate(timeout=60)[0])
    faults = [line for line in report["checks"] if line["state"] in {"fault", "unknown"}]
    assert (doctor.returncode, report["ready"]) == (0, True), faults
    lines = {line["check"]: line for line in report["checks"]}
    assert lines["gateway"]["state"] == "ok"
    assert canon.identity.agent_id in lines["environment"]["meaning"]
    assert (machine.home / "canon-stream.json").exists()
    assert machine.stop() == 0
