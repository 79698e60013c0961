"""The throw-away home holds what the contract asks, the child sees nothing of the caller, and nothing survives."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from canon_hermes_plugin.infrastructure.sandbox import gateway as module
from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewayError, GatewaySettings

CANON = {"CANON_BASE_URL": "http://127.0.0.1:1"}


def settings(**fields):
    return GatewaySettings(**{"canon": CANON, "model_url": "http://127.0.0.1:2/v1", **fields})


@pytest.fixture
def child(monkeypatch):
    """Replaces the gateway by a Python program."""

    def replace(code):
        monkeypatch.setattr(module, "_command", lambda: [sys.executable, "-c", code])

    return replace


def config_of(gateway):
    return json.loads((gateway.home / "config.yaml").read_text(encoding="utf-8"))


def test_the_child_inherits_only_the_bare_necessities(tmp_path, monkeypatch):
    monkeypatch.setenv("CANON_API_KEY", "the caller's")
    monkeypatch.setenv("HERMES_HOME", "the caller's")
    monkeypatch.setenv("OPENAI_API_KEY", "the caller's")
    environment = Gateway(settings(env={"LANG": "", "EXTRA": "1"}), root=tmp_path).environment()
    assert "the caller's" not in environment.values()
    assert environment["HOME"].startswith(str(tmp_path))
    assert environment["HERMES_HOME"].startswith(str(tmp_path))
    assert environment["CANON_BASE_URL"] == CANON["CANON_BASE_URL"]
    assert environment["EXTRA"] == "1"
    assert "LANG" not in environment


@pytest.mark.parametrize(("url", "reaches"), [("http://127.0.0.1:2/v1", False), ("https://models.example/v1", True)])
def test_the_network_is_reachable_only_for_a_model_that_is_there(tmp_path, monkeypatch, url, reaches):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    proxy = Gateway(settings(model_url=url), root=tmp_path).environment()["HTTPS_PROXY"]
    assert (proxy == "http://proxy.example") == reaches


def test_the_models_key_stays_out_of_files_and_texts(tmp_path, child):
    child(f"import pathlib, time; {_SAY_READY}")
    with Gateway(settings(model_key="sk-secret"), root=tmp_path, keep=True) as gateway:
        assert gateway.environment()[module.MODEL_KEY_VARIABLE] == "sk-secret"
        assert "sk-secret" not in repr(gateway.settings)
    assert all(b"sk-secret" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_the_host_installs_nothing_and_overrides_are_merged_deeply(tmp_path, child):
    child(f"import pathlib, time; {_SAY_READY}")
    over = {"security": {"x": 1}, "plugins": {"enabled": ["other"]}, "display": {"platforms": {"canon": {"y": 2}}}}
    with Gateway(settings(config=over, streaming=False), root=tmp_path) as gateway:
        config = config_of(gateway)
    assert config["security"] == {
        "allow_lazy_installs": False,
        "tirith_enabled": False,
        "allow_private_urls": True,
        "x": 1,
    }
    assert config["plugins"]["enabled"] == ["other"]
    assert config["display"]["platforms"]["canon"] == {**config["display"]["platforms"]["canon"], "y": 2}
    assert config["streaming"] == {"enabled": False}


_SAY_READY = (
    "log = pathlib.Path(__import__('os').environ['HERMES_HOME'], 'logs'); log.mkdir(exist_ok=True); "
    "file = (log / 'gateway.log').open('a'); file.write('Press Ctrl+C to stop\\n'); file.flush(); time.sleep(60)"
)


def test_an_early_end_is_told_with_the_exit_code_and_the_end_of_the_output(child):
    child("print('what went wrong'); raise SystemExit(3)")
    gateway = Gateway(settings())
    with pytest.raises(GatewayError, match="exit code 3") as caught, gateway:
        pass
    assert "what went wrong" in caught.value.log
    assert not gateway.root.exists()


@pytest.mark.parametrize(
    ("url", "allowed"), [("http://127.0.0.1:1", True), ("http://localhost:1", True), ("https://canon.example", False)]
)
def test_files_of_a_canon_on_this_machine_are_fetched_unless_the_test_says_otherwise(tmp_path, child, url, allowed):
    child(f"import pathlib, time; {_SAY_READY}")
    with Gateway(settings(canon={"CANON_BASE_URL": url}), root=tmp_path, keep=True) as gateway:
        assert config_of(gateway)["security"]["allow_private_urls"] is allowed
        gateway.restart(settings(config={"security": {"allow_private_urls": False}}))
        assert config_of(gateway)["security"]["allow_private_urls"] is False


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["ERROR canon_hermes_plugin.x: no such profile", "ERROR gateway.run: platform failed"], "no such profile"),
        (["INFO all is well", "ERROR gateway.run: no platform"], "no platform"),
        (["Traceback (most recent call last):", "ValueError: a bad setting", "bye"], "ValueError: a bad setting"),
        (["ERROR x: the key sk-secret is bad"], r"the key \*\*\* is bad"),
        (["ERROR x: canon-key and other-token are bad"], r": \*\*\* and \*\*\* are bad"),
        (["ERROR x: " + "y" * 9_000], "y{480,491}$"),
        (["nothing to see"], "exit code 78$"),
    ],
)
def test_an_early_end_gives_the_reason_the_log_gives(child, lines, reason):
    child(f"print({chr(10).join(lines)!r}); raise SystemExit(78)")
    secrets = {"CANON_API_KEY": "canon-key", "MY_TOKEN": "other-token"}
    gateway = Gateway(settings(model_key="sk-secret", env=secrets))
    with pytest.raises(GatewayError, match=reason) as caught, gateway:
        pass
    assert str(caught.value).startswith("the gateway ended with exit code 78")
    assert not any(secret in str(caught.value) for secret in ("sk-secret", *secrets.values()))


def test_without_a_models_key_a_reason_stays_readable(child):
    child("print('ERROR x: no model'); raise SystemExit(78)")
    with pytest.raises(GatewayError, match=r"ERROR x: no model$"), Gateway(settings(model_key="")):
        pass


def test_a_gateway_that_never_gets_ready_is_killed(child, tmp_path):
    child("import time; time.sleep(60)")
    gateway = Gateway(settings(), root=tmp_path)
    with pytest.raises(GatewayError, match="not ready"):
        gateway.start(timeout=0.2)
    assert not gateway.running
    with pytest.raises(GatewayError, match="does not run"):
        assert gateway.pid


def test_a_stubborn_gateway_is_killed_with_what_it_started(child, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "STOP_LIMIT", 0.3)
    grandchild = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid"
    child(
        "import pathlib, signal, subprocess, sys, time; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        f"pathlib.Path('pid').write_text(str({grandchild})); {_SAY_READY}"
    )
    with Gateway(settings(), root=tmp_path, keep=True) as gateway:
        pid = int((tmp_path / "pid").read_text())
        gateway.stop()
    assert _ends(pid)


@pytest.mark.skipif(not Path("/bin/sh").exists(), reason="no POSIX shell to guard with")
def test_a_killed_owner_leaves_neither_gateway_nor_files(tmp_path):
    root = tmp_path / "root"
    owner = f"""
import os, pathlib, signal, sys, time
from canon_hermes_plugin.infrastructure.sandbox import gateway as module
module._command = lambda: [sys.executable, "-c", {"import pathlib, time; " + _SAY_READY!r}]
running = module.Gateway(module.GatewaySettings({{}}, "http://127.0.0.1:2/v1"), root=pathlib.Path({str(root)!r}))
running.start()
print(running.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    result = subprocess.run([sys.executable, "-c", owner], capture_output=True, text=True, check=False)
    assert result.returncode == -signal.SIGKILL, result.stderr
    assert _ends(int(result.stdout))
    for _ in range(500):
        if not root.exists():
            return
        time.sleep(0.01)
    pytest.fail("the files are still there")


def _ends(pid):
    for _ in range(200):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_the_same_home_survives_a_restart_and_ready_means_ready_again(child, tmp_path):
    child(f"import pathlib, time; {_SAY_READY}")
    with Gateway(settings(), root=tmp_path) as gateway:
        (gateway.home / "state").write_text("kept", encoding="utf-8")
        first = gateway.pid
        gateway.restart()
        assert gateway.pid != first
        assert (gateway.home / "state").read_text(encoding="utf-8") == "kept"
        log = gateway.home / "logs" / "gateway.log"  # the console may hold a traceback that quotes the words
        assert log.read_text(encoding="utf-8").count("Press Ctrl+C") == 2
    gateway.close()
    assert not tmp_path.exists()
