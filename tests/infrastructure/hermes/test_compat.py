"""Every borrowed host internal against the installed host, and the fallback without it."""

from __future__ import annotations

import ast
import asyncio
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import canon_hermes_plugin.infrastructure.hermes as room
import pytest
from canon_hermes_plugin.infrastructure.hermes import compat
from canon_hermes_plugin.ports.errors import UnsupportedHostError

KEY = "agent:main:canon:dm:c1"


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    from gateway.config import GatewayConfig
    from gateway.run import GatewayRunner

    return GatewayRunner(GatewayConfig())


def test_field_62_the_installed_host_has_every_borrowed_name(stage: Any, runner: Any) -> None:
    assert compat.missing(stage.adapter, runner) == ()


def test_a_missing_name_is_told_with_what_is_lost(stage: Any) -> None:
    lost = compat.missing(stage.adapter, SimpleNamespace(_running_agents={}))
    assert {item.name for item in lost} == {item.name for item in compat.BORROWED if item.owner == "runner"} - {
        "_running_agents"
    }
    assert all(item.effect for item in lost)


@pytest.mark.parametrize(("later", "dropped"), [(0, True), (60_000, False)])
def test_field_90_a_session_that_ended_before_its_answer_was_kept_is_not_resumed(
    stage: Any, runner: Any, later: int, dropped: bool
) -> None:
    store = runner.session_store
    entry = store.get_or_create_session(stage.adapter.build_source(chat_id="c1", user_id="u1"))
    assert store.suspend_recently_active() == 1
    ended_at = int(entry.updated_at.timestamp() * 1000) + 1 - later
    assert compat.drop_resume(runner, entry.session_key, ended_at) is dropped
    assert entry.resume_pending is not dropped
    assert compat.drop_resume(runner, "another session", ended_at) is False


@pytest.mark.parametrize("store", [None, object(), SimpleNamespace(list_sessions=lambda: [SimpleNamespace()])])
def test_field_90_a_store_that_cannot_be_asked_leaves_the_session_to_the_host(store: Any) -> None:
    assert compat.drop_resume(SimpleNamespace(session_store=store), KEY, 1) is False
    assert compat.drop_resume(None, KEY, 1) is False


def test_the_probe_for_compression_works_on_the_real_runner(runner: Any) -> None:
    assert asyncio.run(compat.is_compressing(runner, KEY)) is False


def test_one_process_takes_and_gives_back_the_lock_of_a_key(
    stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_GATEWAY_LOCK_DIR", str(tmp_path / "locks"))
    assert compat.claim(stage.adapter, "digest")
    assert compat.claim(stage.adapter, "digest"), "a reconnect of the same process"
    assert len(list((tmp_path / "locks").iterdir())) == 1
    compat.release_claim(stage.adapter)
    compat.release_claim(stage.adapter)
    assert list((tmp_path / "locks").iterdir()) == []


def test_a_lock_that_cannot_be_kept_refuses_nobody(stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("HERMES_GATEWAY_LOCK_DIR", str(tmp_path / "file" / "locks"))
    assert compat.claim(stage.adapter, "digest")
    compat.release_claim(stage.adapter)
    assert compat.claim(object(), "digest")


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_h5_the_probe_for_compression_may_be_plain_or_a_coroutine(asynchronous: bool) -> None:
    async def later(key: str) -> bool:
        return True

    probe = later if asynchronous else lambda key: True
    assert await compat.is_compressing(SimpleNamespace(_session_has_compression_in_flight=probe), KEY) is True


def test_the_real_runner_answers_every_question(runner: Any, stage: Any) -> None:
    assert compat.knows_runs(runner)
    assert compat.live_agent(runner, KEY) is None
    assert compat.has_subagents(runner, None) is False
    assert compat.is_draining(runner) is False
    assert compat.take_overflow(runner, KEY) == []
    assert compat.approval_blocks(KEY) is False
    assert compat.clarify_waits(KEY) is False
    source = stage.adapter.build_source(chat_id="c1", chat_type="dm", user_id=None)
    assert compat.is_authorized(runner, source) is False, "the host refuses events without a user id"


def test_the_placeholder_of_a_starting_run_is_not_a_live_agent(runner: Any) -> None:
    from gateway import run

    runner._running_agents[KEY] = run._AGENT_PENDING_SENTINEL
    assert compat.live_agent(runner, KEY) is None


def test_the_hosts_agent_takes_an_interrupt_without_a_text_and_gives_steering_back(runner: Any) -> None:
    from run_agent import AIAgent

    agent = AIAgent.__new__(AIAgent)
    agent._pending_steer = None
    assert compat.steer_agent(agent, "also this")
    assert compat.can_steer(agent)
    assert compat.take_leftover_steer(agent) == "also this"
    assert compat.take_leftover_steer(agent) == ""
    assert inspect.signature(AIAgent.interrupt).parameters["message"].default is None


def test_without_the_internals_everything_falls_back() -> None:
    bare = SimpleNamespace()
    assert not compat.session_is_busy(bare, KEY)
    assert not compat.owner_is_running(bare, KEY)
    assert not compat.on_owner_end(bare, KEY, lambda: None)
    assert not compat.fill_slot(bare, KEY, "event")
    assert compat.take_slot(bare, KEY) is None
    assert compat.take_overflow(bare, KEY) == []
    assert compat.live_agent(bare, KEY) is None
    assert not compat.has_subagents(bare, None)
    assert not asyncio.run(compat.is_compressing(bare, KEY))
    assert compat.is_authorized(bare, None) is None
    assert not compat.steer_agent(bare, "text")
    assert compat.take_leftover_steer(bare) == ""
    assert compat.allowed_path(bare, "/x") == "/x"


def test_a_taken_slot_is_left_alone(stage: Any) -> None:
    assert compat.fill_slot(stage.adapter, KEY, "first")
    assert not compat.fill_slot(stage.adapter, KEY, "second")
    assert compat.take_slot(stage.adapter, KEY) == "first"


@pytest.mark.parametrize("value", ["1", "true", "YES"])
def test_field_25_multiplexed_profiles_are_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_MULTIPLEX_PROFILES", value)
    with pytest.raises(UnsupportedHostError, match="multiplex_profiles"):
        compat.refuse_multiplexing()


def test_a_plain_home_is_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GATEWAY_MULTIPLEX_PROFILES", raising=False)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    compat.refuse_multiplexing()


def test_private_host_names_are_touched_in_the_compat_modules_alone() -> None:
    """An attribute with a leading underscore that is neither our own nor ``self``'s belongs to the host."""
    for path in Path(room.__path__[0]).glob("*.py"):
        if path.name.startswith("compat"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                owner = node.value
                assert isinstance(owner, ast.Name), f"{path.name}:{node.lineno} {node.attr}"
                assert owner.id in {"self", "cls"}, f"{path.name}:{node.lineno} {owner.id}.{node.attr}"
