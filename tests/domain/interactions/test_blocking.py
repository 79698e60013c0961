"""Clarify and exec approvals of a blocked run: routing, correlation per request, the turn that asked (D2, D3, D20)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from canon_hermes_plugin.domain.interactions.blocking import (
    BlockingDeps,
    BlockingLimits,
    BlockingRequests,
    ClarifyAsk,
    ExecAsk,
)
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.questions import MemoryAskingTurn, MemoryQuestions
from canon_hermes_plugin.infrastructure.memory.time import RecordedTasks, SeededIds, VirtualClock, settle
from canon_hermes_plugin.ports.errors import CanonError


class Rig:
    def __init__(self, exact: bool = True, owner: str | None = "user_owner") -> None:
        self.clock = VirtualClock()
        self.canon = MemoryCanon(clock=self.clock)
        self.host, self.tasks, self.turn = MemoryQuestions(exact=exact), RecordedTasks(), MemoryAskingTurn("u_77")
        limits = BlockingLimits(clarify=60, approval=300)
        self.requests = BlockingRequests(
            BlockingDeps(self.canon, self.host, self.clock, SeededIds(), self.tasks, lambda: owner, limits)
        )

    async def run(self, command="rm x", responder: str | None = "u_77", **fields: Any) -> str:
        self.host.hold("key", command)
        ask = ExecAsk("cv", command, "key", "dangerous command", responder, **fields)
        await self.requests.exec_approval(ask, self.turn)
        return list(self.canon.interactions.requests)[-1][1]

    async def ask(self, responder: str | None = "u_77", choices: Any = None, clarify_id: str = "cl_1") -> None:
        self.host.put("key", clarify_id)
        ask = ClarifyAsk("cv", "Which berth?", choices, clarify_id, "key", responder)
        await self.requests.clarify(ask, self.turn)

    def body(self, identifier: str, kind: str = "approval") -> Any:
        return self.canon.interactions.requests[kind, identifier].body

    def answer(self, identifier: str, status: str, kind: str = "approval", **fields: Any) -> None:
        self.canon.interactions.answer(kind, identifier, {"status": status, **fields})


@pytest.fixture(params=[True, False], ids=["identified", "oldest"])
def rig(request):
    return Rig(request.param)


@pytest.mark.parametrize(("status", "choice"), [("allow", "once"), ("deny", "deny")])
async def test_a_decision_settles_the_hosts_wait_and_the_turn_goes_on(rig, status, choice):
    approval = await rig.run()
    await settle()
    rig.answer(approval, status)
    await rig.clock.advance(1)
    assert [wait.choice for wait in rig.host.held] == [choice]
    assert rig.turn.shown == [True, False]


async def test_nobody_answering_is_a_denial_and_the_request_is_taken_back(rig):
    await rig.run()
    await rig.clock.advance(301)
    assert [wait.choice for wait in rig.host.held] == ["deny"]
    assert rig.canon.calls[-1].subject["cancel"] is True


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_d2_an_answer_settles_its_own_command_in_any_order(rig, order):
    approvals = [await rig.run("rm a"), await rig.run("rm b")]
    decisions = ["allow", "deny"]
    for index in order:
        rig.answer(approvals[index], decisions[index])
        await rig.clock.advance(1)
    assert [(wait.command, wait.choice) for wait in rig.host.held] == [("rm a", "once"), ("rm b", "deny")]


async def test_d2_a_late_answer_to_a_wait_the_host_gave_up_never_reaches_the_next_one(rig):
    first = await rig.run("rm a")
    await settle()
    rig.host.give_up(rig.host.held[0])  # the host's own time ran out
    rig.requests.host_closed("key", "rm a")
    second = await rig.run("rm b")
    rig.answer(first, "allow")
    await rig.clock.advance(2)
    assert rig.host.held[1].choice is None
    rig.answer(second, "deny")
    await rig.clock.advance(2)
    assert [wait.choice for wait in rig.host.held] == [None, "deny"]


async def test_d2_what_the_host_closed_is_taken_back_from_the_person(rig):
    approval = await rig.run("rm a")
    await settle()
    rig.host.give_up(rig.host.held[0])
    rig.requests.host_closed("key", "rm a")
    await rig.clock.advance(2)
    assert rig.canon.interactions.requests["approval", approval].cancelled
    assert rig.turn.shown == [True, False]


async def test_d2_a_command_given_up_before_it_was_shown_is_taken_back_and_decides_no_other():
    rig = Rig(exact=True)
    gone, other = rig.host.hold("key", "rm a"), rig.host.hold("key", "rm b")
    rig.host.give_up(gone)
    await rig.requests.exec_approval(ExecAsk("cv", "rm a", "key", "dangerous command", "u_77"), rig.turn)
    approval = list(rig.canon.interactions.requests)[-1][1]
    rig.answer(approval, "allow")
    await rig.clock.advance(2)
    assert other.choice is None
    assert rig.turn.shown == [True, False]


async def test_d2_two_equal_commands_are_not_confused(rig):
    first, second = await rig.run("rm a"), await rig.run("rm a")
    rig.answer(first, "allow")
    await rig.clock.advance(1)
    rig.requests.host_closed("key", "rm a")  # the host reports the wait we just settled
    await rig.clock.advance(1)
    assert [wait.choice for wait in rig.host.held] == ["once", None]
    rig.answer(second, "deny")
    await rig.clock.advance(1)
    assert [wait.choice for wait in rig.host.held] == ["once", "deny"]


async def test_d2_the_hosts_own_wait_caps_the_request(rig):
    rig.host.seconds = 60.0
    approval = await rig.run()
    assert rig.body(approval)["expiresAt"] == rig.clock.now_ms() + 60_000


async def test_sudo_is_the_owners_and_a_session_rule_only_theirs(rig):
    plain, sudo, owners = await rig.run("rm a"), await rig.run("sudo rm a"), await rig.run("rm b", "user_owner")
    denied = await rig.run("rm c", "user_owner", smart_denied=True)
    assert (rig.body(plain)["responseUserId"], rig.body(plain)["allowSessionRule"]) == ("u_77", False)
    assert ("responseUserId" in rig.body(sudo), rig.body(sudo)["allowSessionRule"]) == (False, True)
    assert rig.body(owners)["allowSessionRule"] is True
    assert rig.body(denied)["allowSessionRule"] is False


async def test_a_session_rule_counts_only_where_it_was_offered(rig):
    allowed, refused = await rig.run("rm a", "user_owner"), await rig.run("rm b")
    rule = {"sessionRule": {"type": "approve-all"}}
    rig.answer(allowed, "allow", **rule)
    await rig.clock.advance(1)
    rig.answer(refused, "allow", **rule)
    await rig.clock.advance(1)
    assert [wait.choice for wait in rig.host.held] == ["session", "once"]


async def test_d20_an_answer_of_somebody_else_is_a_denial(rig):
    approval = await rig.run()
    rig.canon.interactions.answer("approval", approval, {"status": "allow"}, by="stranger")
    await rig.clock.advance(1)
    assert rig.host.held[0].choice == "deny"


async def test_a_request_that_could_not_be_shown_is_an_error_and_leaves_nothing(rig):
    rig.canon.faults.fail_next("create_interaction", Fault.definitive(503))
    with pytest.raises(CanonError):
        await rig.run("rm a")
    assert rig.turn.shown == []
    later = await rig.run("rm b")
    rig.answer(later, "allow")
    await rig.clock.advance(1)
    assert rig.host.held[1 if rig.host.exact else 0].choice == "once"


async def test_after_a_disconnect_the_host_is_left_to_its_own_time_limit(rig):
    approval = await rig.run()
    await settle()
    await rig.tasks.drain(0)
    assert rig.host.held[0].choice is None
    assert rig.canon.interactions.requests["approval", approval].cancelled


# --- clarify --------------------------------------------------------------------------------------------------------


async def test_the_persons_words_reach_the_host():
    rig = Rig()
    await rig.ask(choices=["North", {"label": "South", "value": "s"}])
    body = rig.body("cl_1", "input")
    assert (body["kind"], body["prompt"], body["responseUserId"]) == ("clarify", "Which berth?", "u_77")
    assert body["choices"] == [{"label": "North", "value": "North"}, {"label": "South", "value": "s"}]
    assert body["native"]["method"] == "clarify"
    rig.answer("cl_1", "submitted", "input", choice={"value": "s"})
    await rig.clock.advance(1)
    assert rig.host.clarified == [("cl_1", "s")]
    assert rig.turn.shown == [True, False]


@pytest.mark.parametrize(
    ("status", "by", "words"), [("cancelled", None, "cancelled"), ("submitted", "stranger", "cancelled")]
)
async def test_d20_a_cancelled_or_foreign_answer_is_told_as_cancelled(status, by, words):
    rig = Rig()
    await rig.ask()
    rig.canon.interactions.answer("input", "cl_1", {"status": status, "value": "x"}, by=by)
    await rig.clock.advance(1)
    assert words in rig.host.clarified[0][1]


async def test_a_typed_answer_takes_the_question_back_and_the_turn_goes_on():
    rig = Rig()
    await rig.ask()
    await settle()
    rig.host.withdraw("cl_1")
    await rig.clock.advance(1)
    assert rig.canon.interactions.requests["input", "cl_1"].cancelled
    assert rig.host.clarified == []
    assert rig.turn.shown == [True, False]


async def test_nobody_answering_names_the_real_minutes():
    rig = Rig()
    await rig.ask()
    await rig.clock.advance(61)
    assert "1 minute" in rig.host.clarified[0][1]


async def test_field_29_a_host_without_an_id_gets_one_and_no_responder_means_the_owner():
    rig = Rig()
    await rig.ask(responder=None, clarify_id=" ")
    kind, identifier = next(iter(rig.canon.interactions.requests))
    assert kind == "input"
    assert identifier.strip()
    assert "responseUserId" not in rig.body(identifier, "input")


async def test_d3_outcomes_are_told_to_the_turn_that_asked():
    rig = Rig()
    first = rig.turn
    await rig.ask()
    rig.turn = MemoryAskingTurn("u_77")
    await rig.ask(clarify_id="cl_2")
    rig.answer("cl_1", "submitted", "input", value="late")
    await rig.clock.advance(1)
    assert first.shown == [True, False]
    assert rig.turn.shown == [True]
    await asyncio.sleep(0)
    await rig.tasks.drain(0)
