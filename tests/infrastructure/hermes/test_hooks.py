"""The hooks find their turn in the context they run in, on any thread, and never harm a run."""

from __future__ import annotations

import contextvars
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.infrastructure.hermes.hooks import Hooks

NAMES = {"pre_tool_call", "post_tool_call", "subagent_stop", "post_llm_call"}


class Activity:
    def __init__(self) -> None:
        self.seen: list[tuple[str, Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda turn, value: self.seen.append((name, turn, value))


class Context:
    def __init__(self) -> None:
        self.hooks: dict[str, Any] = {}

    def register_hook(self, name: str, callback: Any) -> None:
        self.hooks[name] = callback


@pytest.fixture
def turn() -> Any:
    made = SimpleNamespace(start=SimpleNamespace(session_key="key"))
    token = current_turn.set(made)  # type: ignore[arg-type]
    yield made
    current_turn.reset(token)


@pytest.fixture
def served() -> tuple[Context, Activity, list[str]]:
    hooks, ctx, activity, finished = Hooks(), Context(), Activity(), list[str]()
    hooks.register(ctx)

    class Queue:
        def run_recorded(self, key: str) -> None:
            finished.append(f"{key} asks the model")

        def run_finished(self, key: str, host_session: str | None) -> bool:
            finished.append(key)
            return host_session != "cron_job_1"

    hooks.serve(activity, Queue())
    return ctx, activity, finished


def test_every_registration_pass_registers_again() -> None:
    hooks = Hooks()
    for _ in range(2):
        ctx = Context()
        hooks.register(ctx)
        assert set(ctx.hooks) >= NAMES


def test_a_host_without_hooks_is_tolerated() -> None:
    Hooks().register(SimpleNamespace())


def test_the_hosts_arguments_become_values_of_the_turn(served: Any, turn: Any) -> None:
    ctx, activity, finished = served
    common = {"task_id": "t", "session_id": "s", "telemetry_schema_version": "hermes.observer.v1"}
    ctx.hooks["pre_tool_call"](tool_name="terminal", args={"command": "ls"}, tool_call_id="c1", **common)
    ctx.hooks["post_tool_call"](
        tool_name="terminal", args={}, tool_call_id="c1", result="ok", status="error", duration_ms=12.7, **common
    )
    ctx.hooks["subagent_stop"](child_session_id="s2", child_role="r", child_summary="done", duration_ms=True, **common)
    ctx.hooks["post_llm_call"](assistant_response="The answer.", user_message="q", **common)
    names = [name for name, _, _ in activity.seen]
    assert names == ["tool_started", "tool_finished", "subagent_finished", "answer_confirmed"]
    assert all(seen is turn for _, seen, _ in activity.seen)
    start, end, sub, answer = (value for _, _, value in activity.seen)
    assert (start.name, start.call_id, start.arguments) == ("terminal", "c1", {"command": "ls"})
    assert (end.status, end.duration_ms, end.result) == ("error", 12, "ok")
    assert (sub.session_id, sub.status, sub.duration_ms) == ("s2", "completed", None)
    assert answer == "The answer."
    assert finished == ["key"]


def test_the_text_of_another_agent_inside_the_turn_is_not_its_answer(served: Any, turn: Any) -> None:
    ctx, activity, _ = served
    ctx.hooks["post_llm_call"](assistant_response="[SILENT]", session_id="cron_job_1")
    assert activity.seen == []


def test_missing_and_malformed_arguments_are_defaults(served: Any, turn: Any) -> None:
    ctx, activity, _ = served
    ctx.hooks["pre_tool_call"]()
    ctx.hooks["post_tool_call"](tool_name=None, status=3, duration_ms="fast", tool_call_id=7)
    ctx.hooks["post_llm_call"](assistant_response=None)
    start, end = (value for _, _, value in activity.seen)
    assert (start.name, start.call_id) == ("tool", None)
    assert (end.name, end.status, end.duration_ms, end.call_id) == ("tool", "ok", None, None)


def test_without_a_turn_in_the_context_nothing_is_recorded(served: Any) -> None:
    ctx, activity, finished = served
    for name in NAMES:
        ctx.hooks[name](tool_name="x", assistant_response="y")
    assert (activity.seen, finished) == ([], [])


def test_an_unserved_process_ignores_its_hooks(turn: Any) -> None:
    ctx = Context()
    Hooks().register(ctx)
    for name in NAMES:
        ctx.hooks[name](tool_name="x", assistant_response="y")


def test_a_tool_thread_that_inherits_the_context_reports_to_its_turn(served: Any, turn: Any) -> None:
    ctx, activity, _ = served
    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: context.run(ctx.hooks["pre_tool_call"], tool_name="x"))
    thread.start()
    thread.join()
    assert [seen for _, seen, _ in activity.seen] == [turn]


def test_the_first_question_to_the_model_tells_that_the_host_keeps_the_message(served: Any, turn: Any) -> None:
    ctx, _, told = served
    ctx.hooks["pre_api_request"](task_id="t", session_id="s", api_request_id="1", model="m")
    assert told == ["key asks the model"]


def test_a_question_to_the_model_outside_any_turn_tells_nothing(served: Any) -> None:
    ctx, _, told = served
    ctx.hooks["pre_api_request"](task_id="t", session_id="s")
    assert told == []
