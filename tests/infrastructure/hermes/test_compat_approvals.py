"""The borrowed host registries, against the installed host (hermes-host §8, §14)."""

from __future__ import annotations

import threading
import time

import pytest
from canon_hermes_plugin.infrastructure.hermes import compat_approvals as compat
from canon_hermes_plugin.infrastructure.hermes.questions import EntryWait, HermesQuestions, OldestWait

approval = pytest.importorskip("tools.approval")


@pytest.fixture
def key():
    name = "agent:main:canon:dm:test"
    yield name
    with approval._lock:
        approval._gateway_queues.pop(name, None)


def hold(key: str, command: str):
    entry = approval._ApprovalEntry({"command": command, "description": "d"})
    with approval._lock:
        approval._gateway_queues.setdefault(key, []).append(entry)
    return entry


def test_an_entry_is_found_and_settled_whatever_its_place(key):
    first, second = hold(key, "rm a"), hold(key, "rm b")
    wait = HermesQuestions().exec_wait(key, "rm b", [])
    assert isinstance(wait, EntryWait)
    assert wait.exact
    assert wait.waiting()
    assert wait.settle("once")
    assert (first.result, second.result) == (None, "once")
    assert second.event.is_set()
    assert not wait.waiting()
    assert not wait.settle("deny")
    assert second.result == "once"
    assert approval.has_blocking_approval(key)


def test_two_equal_commands_get_two_entries(key):
    first, second = hold(key, "rm a"), hold(key, "rm a")
    questions = HermesQuestions()
    one = questions.exec_wait(key, "rm a", [])
    two = questions.exec_wait(key, "rm a", [one])
    assert isinstance(one, EntryWait)
    assert isinstance(two, EntryWait)
    assert (one.entry, two.entry) == (first, second)


def test_without_the_private_queue_the_public_function_settles_the_oldest(key, monkeypatch):
    entry = hold(key, "rm a")
    monkeypatch.setattr(compat, "waiting_entries", lambda _: None)
    wait = HermesQuestions().exec_wait(key, "rm a", [])
    assert isinstance(wait, OldestWait)
    assert not wait.exact
    assert wait.waiting()
    assert wait.settle("deny")
    assert entry.result == "deny"
    assert not wait.settle("deny")


def test_the_hosts_wait_is_readable():
    seconds = HermesQuestions().exec_seconds()
    assert seconds is not None
    assert seconds > 0


def test_a_clarify_is_settled_through_the_hosts_own_function():
    clarify = pytest.importorskip("tools.clarify_gateway")
    assert HermesQuestions().settle_clarify("no-such-id", "x") is False
    assert HermesQuestions().clarify_waiting("key") is False
    clarify.register("cl_test", "key", "Which?", ["A", "B"])
    assert HermesQuestions().clarify_waiting("key") is True
    results: list[object] = []
    waiter = threading.Thread(target=lambda: results.append(clarify.wait_for_response("cl_test", 10)))
    waiter.start()
    deadline = time.monotonic() + 5
    while not HermesQuestions().settle_clarify("cl_test", "A") and time.monotonic() < deadline:
        time.sleep(0.01)
    waiter.join(10)
    assert results == ["A"]


def test_nothing_is_interrupted_here_and_the_alias_registers():
    assert compat.is_interrupted() is False
    assert compat.register_toolset_alias("canon_runtime_test", "canon_test") is True


def test_an_unreadable_host_costs_a_feature_not_a_failure(monkeypatch):
    monkeypatch.setattr(compat, "_module", lambda _: None)
    assert compat.waiting_entries("k") is None
    assert compat.approval_seconds() is None
    assert compat.clarify_waiting("k") is True
    assert compat.settle_oldest("k", "deny") is False
    assert compat.settle_clarify("c", "x") is False
    assert compat.is_interrupted() is False
    assert compat.redacted("rm x") == "rm x"
    assert compat.register_toolset_alias("a", "b") is False
    assert compat.platform_section("canon") == {}
