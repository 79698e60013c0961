"""What the kit never does, and what it says to who uses it in another way than it is meant."""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
import warnings
from types import SimpleNamespace
from unittest import mock

import pytest
from canon_hermes_plugin import (
    check_detached_approval,
    current_canon_turn,
    decisions,
    request_card_for_current_human,
    request_detached_approval_for_current_human,
    send_card_to_current_conversation,
)
from canon_hermes_plugin.container import standalone_for
from canon_hermes_plugin.infrastructure.hermes.live import LIVE, LiveAdapter
from canon_hermes_plugin.infrastructure.memory import virtual_loop
from canon_hermes_plugin.ports.errors import CredentialsError
from canon_hermes_plugin.testing import CanonHermes, loopback_canon

ACTIONS = [{"id": "pay", "label": "Pay"}]
CARD = {
    "schema": "canon.card.v1",
    "title": "Pay?",
    "fallbackText": "Pay?",
    "blocks": [{"kind": "actions", "actions": ACTIONS}],
}
PLAIN = {**CARD, "blocks": [{"kind": "summary", "text": "Paid."}]}


@pytest.fixture
def real(tmp_path):
    """A Canon that the environment names, as in the shell of somebody who has an agent."""
    with loopback_canon() as canon:
        homes = {"CANON_HOME": str(tmp_path / "canon"), "HERMES_HOME": str(tmp_path / "hermes")}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CANON_", "HERMES_"))}
        with mock.patch.dict(os.environ, kept | canon.environment() | homes, clear=True):
            yield canon


async def everything():
    """Do what a tool may do, one after another; return how each ended."""
    waiting = [
        request_card_for_current_human(CARD, timeout_seconds=5),
        send_card_to_current_conversation(PLAIN),
        request_detached_approval_for_current_human(title="big"),
        check_detached_approval("some"),
        _reach_out(),
    ]
    return await asyncio.gather(*waiting, return_exceptions=True)


async def _reach_out():
    return await (await decisions.actions()).run({"action": "reach_out", "targetUserId": "u", "message": "hi"})


def assert_untouched(canon, tmp_path):
    assert canon.requests() == []
    assert not (tmp_path / "canon").exists()


def test_the_environment_of_these_tests_leads_to_a_canon_that_would_see_a_request(real):
    assert decisions.connection().api_key.reveal() == real.environment()["CANON_API_KEY"]
    with pytest.raises(RuntimeError, match="turn"):
        asyncio.run(send_card_to_current_conversation(PLAIN))


def test_a_second_plugin_is_refused_and_nobody_real_is_asked(real, tmp_path, canon, canon_turn):
    second = CanonHermes()
    with pytest.raises(RuntimeError, match=r"another CanonHermes is entered.*plugin\.turn\(\) again"):
        second.__enter__()
    canon.answers(CARD, "pay")
    assert asyncio.run(request_card_for_current_human(CARD))["actionId"] == "pay"
    assert_untouched(real, tmp_path)


def test_a_refused_plugin_can_be_used_when_the_other_one_is_left():
    first, second = CanonHermes(), CanonHermes()
    with first, pytest.raises(RuntimeError):
        second.__enter__()
    with second:
        second.host.says("here")
        second.canon.says("hi")
        assert second.canon.texts() == ["here"]


def test_nobody_real_is_asked_where_no_adapter_is_connected(real, tmp_path, canon_hermes, canon_turn):
    for adapter in LIVE.all():
        LIVE.remove(adapter)
    ends = asyncio.run(everything())
    assert [type(end) for end in ends] == [CredentialsError] * len(ends)
    assert not decisions.available()
    with pytest.raises(CredentialsError):
        decisions.connection()
    told = asyncio.run(standalone_for(None, "c", "hi", thread_id=None, media_files=[]))
    assert "no real credentials" in told["error"]
    assert_untouched(real, tmp_path)


def test_a_tool_that_outlives_the_plugin_asks_nobody_real(real, tmp_path):
    began, go_on, ends = threading.Event(), threading.Event(), []

    def slow():
        began.set()
        go_on.wait(10)
        ends.extend(asyncio.run(everything()))

    with mock.patch.object(virtual_loop, "PATIENCE", 0.1), CanonHermes() as plugin:
        plugin.host.calls_tool(slow)
        with pytest.raises(TimeoutError):
            plugin.canon.says("go")
        assert began.is_set()
        with pytest.raises(TimeoutError):
            plugin.close()
    go_on.set()
    for _ in range(200):
        if ends:
            break
        time.sleep(0.05)
    assert ends
    assert all(isinstance(end, CredentialsError | RuntimeError) for end in ends)
    assert_untouched(real, tmp_path)


def test_who_leaves_the_plugin_leaves_its_turn(real, tmp_path):
    with CanonHermes() as plugin:
        plugin.turn()("hello")
        assert current_canon_turn().user_id == "dana"
    with pytest.raises(RuntimeError, match="does not run inside a Canon turn"):
        asyncio.run(request_card_for_current_human(CARD))
    with pytest.raises(RuntimeError, match="does not run inside a Canon turn"):
        current_canon_turn()
    assert_untouched(real, tmp_path)


class Turns:
    """Another agent's turns."""

    def __init__(self, *turns):
        self.turns = turns

    def open_turns(self, conversation_id):
        return tuple(turn for turn in self.turns if turn.conversation_id == conversation_id)


@pytest.fixture
def other_agent():
    """Connects a second agent that runs some turns."""
    added = []

    def connect(*turns):
        unused = None
        added.append(LiveAdapter(Turns(*turns), unused, unused, unused, unused, unused))
        LIVE.add(added[-1])

    yield connect
    for adapter in added:
        LIVE.remove(adapter)


def test_of_two_connected_agents_the_one_acts_whose_turn_it_is(real, tmp_path, canon, canon_turn, other_agent):
    other_agent(SimpleNamespace(conversation_id=canon_turn.conversation_id))
    canon.answers(CARD, "pay")
    assert asyncio.run(request_card_for_current_human(CARD))["actionId"] == "pay"
    assert_untouched(real, tmp_path)


def test_where_it_is_not_clear_whose_turn_it_is_nobody_is_asked(real, tmp_path, canon_turn, other_agent):
    other_agent(canon_turn.turn)
    ends = asyncio.run(everything())
    assert all("2 Canon agents are connected in this process and 2 of them" in str(end) for end in ends)
    canon_turn.end()
    with pytest.raises(RuntimeError, match="2 Canon agents are connected in this process and 0 of them"):
        asyncio.run(decisions.actions())
    assert_untouched(real, tmp_path)


# --- not entered, closed, entered twice -------------------------------------------------------------------------------


USES = {
    "says": lambda plugin: plugin.canon.says("hi"),
    "texts": lambda plugin: plugin.canon.texts(),
    "advance": lambda plugin: plugin.advance(1),
    "turn": lambda plugin: plugin.turn(),
}


@pytest.mark.parametrize("use", USES)
def test_what_needs_the_plugin_says_that_it_is_not_entered(use):
    with pytest.raises(RuntimeError, match=r"not entered yet: write `with CanonHermes\(\) as plugin:`"):
        USES[use](CanonHermes())


@pytest.mark.parametrize("use", USES)
def test_what_needs_the_plugin_says_that_it_is_closed(use):
    with CanonHermes() as plugin:
        pass
    with pytest.raises(RuntimeError, match="is closed"):
        USES[use](plugin)


def test_an_entered_plugin_is_not_entered_again_and_goes_on():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with CanonHermes() as plugin:
            with pytest.raises(RuntimeError, match="entered already"):
                plugin.__enter__()
            plugin.host.says("still here")
            plugin.canon.says("hi")
            assert plugin.canon.texts() == ["still here"]
        with pytest.raises(RuntimeError, match="is closed"):
            plugin.__enter__()
        plugin.close()


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        ("3", TypeError),
        (None, TypeError),
        (True, TypeError),
        (-1, ValueError),
        (math.inf, ValueError),
        (math.nan, ValueError),
    ],
)
def test_only_a_length_of_time_can_pass(canon_hermes, seconds, error):
    before = canon_hermes.clock.monotonic()
    with pytest.raises(error, match="seconds must be"):
        canon_hermes.advance(seconds)
    assert canon_hermes.clock.monotonic() == before


def test_weeks_pass(canon, canon_hermes):
    with mock.patch.object(virtual_loop, "PATIENCE", 0.2):  # far less than this takes
        canon_hermes.advance(14 * 86_400)
    assert canon_hermes.clock.monotonic() == 14 * 86_400
    canon_hermes.host.says("still here")
    canon.says("hi")
    assert canon.texts() == ["still here"]


def test_an_idle_plugin_does_little(canon_hermes):
    loop, skipped = canon_hermes._machine.loop, []
    skip = loop.skip
    with mock.patch.object(loop, "skip", lambda timeout: [skip(timeout), skipped.append(1)][0]):
        canon_hermes.advance(3600)
    assert len(skipped) < 3600 / 5


def test_time_that_gets_no_further_says_how_far_it_got_and_why(canon, canon_hermes):
    go_on = threading.Event()
    canon_hermes.host.waits(50).calls_tool(lambda: go_on.wait(10))
    canon.says("hi")
    told = r"stands still at 50 s of 600 s .*: 1 of the threads .* did not end"
    with mock.patch.object(virtual_loop, "PATIENCE", 0.2), pytest.raises(TimeoutError, match=told):
        canon_hermes.advance(600)
    go_on.set()
    canon_hermes.advance(0)


# --- what was said before ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decide", ["approves", "denies"])
def test_a_decision_that_was_said_before_wakes_the_agent_whatever_the_machine_does(decide):
    """30 runs, each with other pauses in the tool and while the ledger writes: the same turns, at the same instants."""
    seen = set()
    for run in range(30):
        with CanonHermes(seed=7) as plugin:
            pauses = iter([0.0, run % 3 / 1000, run % 5 / 1000, run % 2 / 500] * 10)

            def pause(pauses=pauses):
                time.sleep(next(pauses))

            transact = plugin.ledger.transact

            async def slowly(decide_, pause=pause, transact=transact):
                if threading.current_thread().name != "canon-testing":
                    pause()
                return await transact(decide_)

            async def ask_big(pause=pause):
                pause()
                asked = await request_detached_approval_for_current_human(title="big")
                pause()
                return asked["status"]

            with mock.patch.object(plugin.ledger, "transact", slowly):
                getattr(plugin.canon, decide)()
                script = plugin.host.calls_tool(ask_big).says("w")
                plugin.host.says("woken")
                plugin.canon.says("x")
                opened, now = len(plugin.host.opened), plugin.clock.monotonic()
                seen.add((tuple(script.results), opened, now, tuple(plugin.canon.texts())))
    assert seen == {(("pending",), 2, 0.0, ("w", "woken"))}


async def test_a_decision_that_was_said_before_is_there_when_no_time_passed(canon, canon_hermes, canon_turn):
    canon.approves()
    canon_hermes.host.says("woken")
    asked = await request_detached_approval_for_current_human(title="big")
    assert asked["status"] == "pending"
    canon_hermes.advance(0)
    canon_turn.end()
    assert canon.texts() == ["woken"]


# --- a tool that raises -----------------------------------------------------------------------------------------------


class UnpaidError(Exception):
    """What the tool of these tests raises."""


def book():
    raise UnpaidError("berth 42 is not paid")


def test_the_results_of_a_script_whose_tool_raised_tell_the_cause(canon, canon_hermes):
    script = canon_hermes.host.calls_tool(list).calls_tool(book).says("never said")
    canon.says("book it")
    with pytest.raises(RuntimeError, match=r"broke off at calls_tool\(book\): UnpaidError: berth 42") as told:
        assert script.results == [[]]
    assert isinstance(told.value.__cause__, UnpaidError)
    assert [type(error) for error in canon_hermes.host.failures] == [UnpaidError]


def one_told_failure_and_one_untold():
    with CanonHermes() as plugin:
        told_of = plugin.host.calls_tool(book)
        plugin.host.runs(lambda stage: stage.calls_tool("pay", lambda: 1 / 0))
        plugin.canon.says("book it")
        plugin.canon.says("pay it")
        with pytest.raises(RuntimeError):
            _ = told_of.results


def test_a_failure_that_nobody_was_told_of_is_told_at_the_end():
    with pytest.raises(ExceptionGroup) as told:
        one_told_failure_and_one_untold()
    assert [type(error) for error in told.value.exceptions] == [ZeroDivisionError]


def test_a_failure_that_is_meant_to_be_is_taken_out(canon, canon_hermes):
    canon_hermes.host.calls_tool(book)
    canon.says("book it")
    assert str(canon_hermes.host.failures.pop()) == "berth 42 is not paid"


def expects_an_answer_of_a_turn_whose_tool_raises():
    with CanonHermes() as plugin:
        plugin.host.calls_tool(book).says("Booked.")
        plugin.canon.says("book it")
        assert plugin.canon.texts() == ["Booked."]


def test_a_failed_assertion_shows_the_tool_that_may_be_its_cause():
    with pytest.raises(AssertionError) as told:
        expects_an_answer_of_a_turn_whose_tool_raises()
    (note,) = told.value.__notes__
    assert "UnpaidError: berth 42 is not paid" in note
    assert "in book" in note


def test_a_run_that_is_meant_to_break_off_keeps_its_results(canon, canon_hermes):
    script = canon_hermes.host.calls_tool(list).fails()
    canon.says("go")
    assert script.results == [[]]


@pytest.mark.parametrize(
    ("write", "error", "words"),
    [
        (lambda host: host.streams(), ValueError, "at least one frame"),
        (lambda host: host.streams("a", 5), TypeError, "text, not 5"),
        (lambda host: host.says(None), TypeError, "text, not None"),
        (lambda host: host.calls_tool("book"), TypeError, "a function, .* not 'book'"),
        (lambda host: host.runs("book"), TypeError, "a function, .* not 'book'"),
        (lambda host: host.waits(-1), ValueError, "0 or more"),
        (lambda host: host.waits("1"), TypeError, "a number"),
    ],
)
def test_a_script_that_cannot_be_played_is_refused_where_it_is_written(canon, canon_hermes, write, error, words):
    with pytest.raises(error, match=words):
        write(canon_hermes.host)
    canon_hermes.host.says("the next one")
    canon.says("go")
    assert canon.texts() == ["the next one"]
