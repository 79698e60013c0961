"""Questions: what the host's open ones and the turn that puts one promise (interactions §7, D2, D3)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import pytest
from canon_hermes_plugin.ports.interactions import AskingTurn, ExecChoice, HostQuestions
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop

SESSION = "agent:main:canon:dm:conv_1"
OTHER = "agent:main:canon:dm:conv_2"


class HeldBack(Protocol):
    """A dangerous command that the host holds back."""

    @property
    def choice(self) -> str | None:
        """What the host was told, ``None`` while nothing was."""
        ...


class HostQuestionsDriver(Driver, Protocol):
    """The subject and the host behind it.

    Attributes:
        questions: the subject.
    """

    questions: HostQuestions

    def hold(self, session_key: str, command: str) -> HeldBack:
        """Let the host hold a command back."""
        ...

    def give_up(self, held: HeldBack) -> None:
        """Let the host stop waiting for a decision: its own time ran out."""
        ...

    def allow_seconds(self, seconds: float | None) -> None:
        """Say how long the host waits for a decision; ``None`` when it does not say."""
        ...

    def put(self, session_key: str, clarify_id: str) -> None:
        """Let the host put a question."""
        ...

    def withdraw(self, clarify_id: str) -> None:
        """Let the host stop waiting for an answer."""
        ...

    def told(self, clarify_id: str) -> str | None:
        """Return the words the host took as the answer, ``None`` when it took none."""
        ...


class HostQuestionsContract(Contract[HostQuestionsDriver]):
    """The suite of :class:`canon_hermes_plugin.ports.interactions.HostQuestions` and of the waits it gives.

    Attributes:
        exact: whether the subject's host lets one command be told from another, and tells what still waits.
    """

    exact = True

    @pytest.mark.parametrize("choice", ["once", "session", "deny"])
    @on_a_loop
    async def test_a_decision_reaches_the_host_exactly_once(
        self, host: HostQuestionsDriver, choice: ExecChoice
    ) -> None:
        held = host.hold(SESSION, "rm a")
        wait = host.questions.exec_wait(SESSION, "rm a", [])
        assert (wait.exact, wait.waiting(), held.choice) == (self.exact, True, None)
        assert wait.settle(choice) is True
        assert held.choice == choice
        assert wait.waiting() is not self.exact
        assert wait.settle("deny" if choice != "deny" else "once") is False
        assert held.choice == choice

    @on_a_loop
    async def test_two_waits_of_the_same_command_are_two(self, host: HostQuestionsDriver) -> None:
        first, second = host.hold(SESSION, "rm a"), host.hold(SESSION, "rm a")
        one = host.questions.exec_wait(SESSION, "rm a", [])
        two = host.questions.exec_wait(SESSION, "rm a", [one])
        assert one != two
        assert one.settle("once") is True
        assert (first.choice, second.choice) == ("once", None)
        assert two.waiting() is True
        assert two.settle("deny") is True
        assert (first.choice, second.choice) == ("once", "deny")

    @on_a_loop
    async def test_d2_a_wait_settles_its_own_command_or_the_oldest_one_and_says_which(
        self, host: HostQuestionsDriver
    ) -> None:
        first, second = host.hold(SESSION, "rm a"), host.hold(SESSION, "rm b")
        wait = host.questions.exec_wait(SESSION, "rm b", [])
        assert wait.settle("once") is True
        assert (first.choice, second.choice) == ((None, "once") if wait.exact else ("once", None))

    @on_a_loop
    async def test_d2_the_wait_of_a_command_that_is_gone_reaches_no_other_one(self, host: HostQuestionsDriver) -> None:
        gone, other = host.hold(SESSION, "rm a"), host.hold(SESSION, "rm b")
        before = host.questions.exec_wait(SESSION, "rm a", [])
        host.give_up(gone)
        after = host.questions.exec_wait(SESSION, "rm a", [])
        if not self.exact:
            return
        for wait in (before, after):
            assert wait.exact
            assert wait.waiting() is False
            assert wait.settle("once") is False
        assert other.choice is None

    @on_a_loop
    async def test_d2_a_taken_wait_is_not_found_again(self, host: HostQuestionsDriver) -> None:
        held = host.hold(SESSION, "rm a")
        taken = host.questions.exec_wait(SESSION, "rm a", [])
        again = host.questions.exec_wait(SESSION, "rm a", [taken])
        assert again != taken
        if self.exact:
            assert again.settle("once") is False
            assert held.choice is None
        assert taken.settle("deny") is True

    @on_a_loop
    async def test_another_session_is_never_touched(self, host: HostQuestionsDriver) -> None:
        theirs = host.hold(OTHER, "rm a")
        mine = host.hold(SESSION, "rm a")
        wait = host.questions.exec_wait(SESSION, "rm a", [])
        assert wait.settle("once") is True
        assert wait.settle("once") is False
        assert (mine.choice, theirs.choice) == ("once", None)
        assert host.questions.exec_wait(SESSION, "rm a", []).settle("deny") is False
        assert theirs.choice is None

    @on_a_loop
    async def test_several_threads_settle_once(self, host: HostQuestionsDriver) -> None:
        held = host.hold(SESSION, "rm a")
        wait = host.questions.exec_wait(SESSION, "rm a", [])
        settled = await asyncio.gather(*(asyncio.to_thread(wait.settle, "once") for _ in range(16)))
        assert sorted(settled) == [False] * 15 + [True]
        assert held.choice == "once"
        assert await asyncio.to_thread(wait.waiting) is not self.exact

    @pytest.mark.parametrize(("seconds", "told"), [(60.0, 60.0), (1.0, 1.0), (0.0, None), (-5.0, None), (None, None)])
    @on_a_loop
    async def test_d2_the_hosts_own_time_is_positive_seconds_or_not_told(
        self, host: HostQuestionsDriver, seconds: float | None, told: float | None
    ) -> None:
        host.allow_seconds(seconds)
        assert host.questions.exec_seconds() == told

    @on_a_loop
    async def test_a_question_is_answered_exactly_once(self, host: HostQuestionsDriver) -> None:
        host.put(SESSION, "cl_1")
        assert host.questions.clarify_waiting(SESSION) is True
        assert host.questions.settle_clarify("cl_1", "North") is True
        assert host.questions.settle_clarify("cl_1", "South") is False
        assert host.told("cl_1") == "North"

    @on_a_loop
    async def test_an_unknown_or_withdrawn_question_takes_no_answer(self, host: HostQuestionsDriver) -> None:
        host.put(SESSION, "cl_1")
        host.withdraw("cl_1")
        assert host.questions.settle_clarify("cl_1", "late") is False
        assert host.questions.settle_clarify("cl_unknown", "x") is False
        assert host.told("cl_1") is None

    @on_a_loop
    async def test_two_questions_are_answered_apart(self, host: HostQuestionsDriver) -> None:
        host.put(SESSION, "cl_1")
        host.put(OTHER, "cl_2")
        assert host.questions.settle_clarify("cl_2", "two") is True
        assert (host.told("cl_1"), host.told("cl_2")) == (None, "two")
        assert host.questions.settle_clarify("cl_1", "one") is True
        assert (host.told("cl_1"), host.told("cl_2")) == ("one", "two")

    @on_a_loop
    async def test_whether_a_question_waits_is_told_per_session_or_assumed(self, host: HostQuestionsDriver) -> None:
        host.put(SESSION, "cl_1")
        assert host.questions.clarify_waiting(SESSION) is True
        assert host.questions.clarify_waiting(OTHER) is not self.exact
        host.withdraw("cl_1")
        assert host.questions.clarify_waiting(SESSION) is not self.exact


class AskingTurnDriver(Driver, Protocol):
    """Starts turns of one conversation, one after another, and sees what viewers see of them."""

    async def begin(self, responder: str | None) -> AskingTurn:
        """Start a turn and return the subject; ``responder`` is the human who started it."""
        ...

    async def waits(self) -> Sequence[bool]:
        """Return what viewers were told: ``True`` that it waits for a person, ``False`` that it goes on."""
        ...

    async def shown(self) -> int:
        """Return how often anything about any of the turns was shown, whatever it was."""
        ...

    async def end(self) -> None:
        """Let the newest turn be over, and everything about its end be shown."""
        ...


class AskingTurnContract(Contract[AskingTurnDriver]):
    """The suite of :class:`canon_hermes_plugin.ports.interactions.AskingTurn`."""

    @on_a_loop
    async def test_a_question_shows_that_the_turn_waits_and_its_end_that_it_goes_on(
        self, asking: AskingTurnDriver
    ) -> None:
        turn = await asking.begin("user_dana")
        await turn.asked()
        assert list(await asking.waits()) == [True]
        await turn.answered()
        assert list(await asking.waits()) == [True, False]

    @on_a_loop
    async def test_d3_a_turn_that_is_over_stays_over(self, asking: AskingTurnDriver) -> None:
        turn = await asking.begin("user_dana")
        await turn.asked()
        await asking.end()
        before = await asking.shown()
        await turn.answered()
        await turn.asked()
        assert await asking.shown() == before

    @on_a_loop
    async def test_d3_a_late_outcome_never_touches_the_turn_that_runs_now(self, asking: AskingTurnDriver) -> None:
        earlier = await asking.begin("user_dana")
        await earlier.asked()
        await asking.end()
        await asking.begin("user_dana")
        before = await asking.shown()
        await earlier.answered()
        await earlier.asked()
        assert await asking.shown() == before

    @pytest.mark.parametrize("responder", ["user_dana", None])
    @on_a_loop
    async def test_the_human_is_the_one_captured_at_the_start(
        self, asking: AskingTurnDriver, responder: str | None
    ) -> None:
        turn = await asking.begin(responder)
        assert turn.responder == responder
        await asking.end()
        assert turn.responder == responder
