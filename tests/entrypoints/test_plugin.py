"""Registration: cheap, repeatable, in the right order, on the installed host's own registry."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from canon_hermes_plugin import plugin
from canon_hermes_plugin.ports.errors import UnsupportedHostError


class Context:
    """Records what a registration pass offers, in order."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.platform: dict[str, Any] = {}

    def register_hook(self, name: str, callback: Any) -> None:
        self.order.append(f"hook {name}")

    def register_tool(self, **_: Any) -> None:
        self.order.append("tool")

    def register_skill(self, *_: Any) -> None:
        self.order.append("skill")

    def register_platform(self, **values: Any) -> None:
        self.order.append("platform")
        self.platform = values


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("CANON_API_KEY", "CANON_AGENT", "CANON_AGENTS_JSON_BOOTSTRAP", "CANON_TURN_VERBOSITY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CANON_HOME", str(tmp_path))


def test_the_platform_is_registered_last_and_a_second_pass_registers_everything_again() -> None:
    first, second = Context(), Context()
    plugin.register(first)
    plugin.register(second)
    assert first.order == second.order
    assert first.order[-1] == "platform"
    assert {"tool", "skill", "hook pre_tool_call", "hook post_llm_call"} <= set(first.order)


def test_registering_loads_neither_the_host_nor_the_container_nor_fastapi() -> None:
    code = (
        "import sys\n"
        "from canon_hermes_plugin import plugin\n"
        "from types import SimpleNamespace as S\n"
        "n = lambda *a, **k: None\n"
        "plugin.register(S(register_hook=n, register_skill=n, register_platform=n))\n"
        "bad = {'gateway', 'hermes_cli', 'agent', 'dependency_injector', 'fastapi', 'canon_hermes_plugin.container'}\n"
        "print(sorted(bad & set(sys.modules)))\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert shown.stdout.strip() == "[]"


def test_the_installed_host_accepts_every_field_of_the_entry() -> None:
    from gateway.platform_registry import PlatformEntry

    ctx = Context()
    plugin.register(ctx)
    entry = PlatformEntry(**ctx.platform)
    assert entry.name == "canon"
    assert entry.max_message_length == 0, "H24: the host must not cut standalone texts"
    assert (entry.allowed_users_env, entry.allow_all_env) == ("CANON_ALLOWED_USERS", "CANON_ALLOW_ALL_USERS")
    assert entry.cron_deliver_env_var == "CANON_HOME_CHANNEL"
    assert entry.check_fn() is True


@pytest.mark.usefixtures("clean")
def test_the_platform_counts_as_configured_only_with_an_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    bare = SimpleNamespace(extra={}, api_key=None, token=None)
    assert plugin.is_configured(bare) is False
    assert plugin.is_configured(SimpleNamespace(extra={"canon_api_key": "x"}, api_key=None, token=None)) is True
    assert plugin.is_configured(SimpleNamespace(extra={}, api_key="x", token=None)) is True
    assert plugin.is_configured(SimpleNamespace(extra=None)) is False
    monkeypatch.setenv("CANON_AGENT", "ops")
    assert plugin.is_configured(bare) is True
    monkeypatch.delenv("CANON_AGENT")
    (tmp_path / "agents.json").write_text("{}", encoding="utf-8")
    assert plugin.is_configured(bare) is True


@pytest.mark.usefixtures("clean")
def test_a_bad_setting_makes_the_platform_invalid_with_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert plugin.is_valid(SimpleNamespace(extra={})) is True
    monkeypatch.setenv("CANON_TURN_VERBOSITY", "loud")
    assert plugin.is_valid(SimpleNamespace(extra={})) is False
    (record,) = caplog.records
    assert "CANON_TURN_VERBOSITY" in record.getMessage()
    assert "\n" not in record.getMessage()


def test_field_25_a_multiplexing_gateway_gets_no_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_MULTIPLEX_PROFILES", "true")
    with pytest.raises(UnsupportedHostError):
        plugin.create_adapter(SimpleNamespace(extra={}))
