"""The control signals of a host: the part of the inbox's suite that ends runs (turns §2.6, §14 H29)."""

from __future__ import annotations

import pytest
from canon_hermes_plugin.domain.session_key import host_session_key
from canon_hermes_plugin.ports.canon import SignalKind
from canon_hermes_plugin.testing.contracts.base import Contract, on_a_loop
from canon_hermes_plugin.testing.contracts.host import (
    BOB,
    DANA,
    DIRECT,
    GROUP,
    OWNER,
    HostInboxDriver,
    passed,
    run_through,
    running,
    say,
    until,
    wake,
)


class ControlSignals(Contract[HostInboxDriver]):
    """What a control signal reaches, and what it leaves alone."""

    @on_a_loop
    async def test_an_interrupt_signal_ends_the_run_and_keeps_what_waits(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        await running(host, 1)
        await say(host, [2, 3])
        await host.inbox.apply_signal(DIRECT, "interrupt", DANA)
        await run_through(host, [2, 3])
        assert host.log.outcomes == [("msg_1", "cancelled"), ("msg_2", "success"), ("msg_3", "success")]
        assert list(host.renewed) == []

    @on_a_loop
    async def test_stop_and_drop_ends_the_run_and_releases_what_it_drops(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        await running(host, 1)
        await say(host, [2, 3])
        await host.inbox.apply_signal(DIRECT, "stop_and_drop", DANA)
        await until(lambda: host.log.turns[0].outcome, "the end of the run")
        await until(lambda: len(host.released) == 3, "the release of what was dropped (H28)")
        await say(host, [4])
        await run_through(host, [4])
        assert host.log.outcomes == [("msg_1", "cancelled"), ("msg_4", "success")]
        assert sorted(host.released)[:3] == ["msg_1", "msg_2", "msg_3"]

    @on_a_loop
    async def test_stop_and_drop_leaves_what_the_plugin_made(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        await running(host, 1)
        await say(host, [2])
        await host.inbox.hand_over(wake(9))
        await host.inbox.apply_signal(DIRECT, "stop_and_drop", DANA)
        await run_through(host, [9])
        assert host.log.ran == ["text 1", "text 9"]

    @on_a_loop
    async def test_a_new_session_ends_the_run_and_begins_its_session_anew(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        turn = await running(host, 1)
        await host.inbox.apply_signal(DIRECT, "new_session", DANA)
        await until(lambda: turn.outcome, "the end of the run")
        await until(lambda: host.renewed, "a new session")
        assert (turn.outcome, list(host.renewed)) == ("cancelled", [turn.start.session_key])

    @pytest.mark.parametrize("where", [DIRECT, GROUP])
    @on_a_loop
    async def test_a_new_session_of_an_idle_conversation_is_its_senders(
        self, host: HostInboxDriver, where: str
    ) -> None:
        await say(host, [1], where)
        await run_through(host, [1])
        await host.inbox.apply_signal(where, "new_session", BOB)
        await until(lambda: host.renewed, "a new session")
        key = host_session_key(where, "group" if where == GROUP else "direct", BOB)
        assert list(host.renewed) == [key]
        assert host.log.ran == ["text 1"]

    @pytest.mark.parametrize("signal", ["interrupt", "stop_and_drop"])
    @on_a_loop
    async def test_a_signal_takes_effect_on_what_was_handed_over_just_before(
        self, host: HostInboxDriver, signal: SignalKind
    ) -> None:
        await say(host, [1])
        await host.inbox.apply_signal(DIRECT, signal, DANA)
        await passed(host)
        unaffected = {None, "success"}
        assert not [turn for turn in host.log.turns if turn.start.message_id == "msg_1" and turn.outcome in unaffected]
        await until(lambda: "msg_1" in host.released, "the release of the message nobody will work on")
        await say(host, [2])
        await run_through(host, [2])

    @pytest.mark.parametrize("signal", ["interrupt", "stop_and_drop", "new_session"])
    @on_a_loop
    async def test_a_signal_reaches_its_own_conversation_only(self, host: HostInboxDriver, signal: SignalKind) -> None:
        await say(host, [1, 2])
        turn = await running(host, 1)
        await host.inbox.apply_signal("conv_idle", signal, DANA)
        await host.inbox.apply_signal("conv_idle", signal, None)
        await passed(host)
        assert turn.runs
        await run_through(host, [1, 2])
        assert host.log.outcomes == [("msg_1", "success"), ("msg_2", "success")]

    @pytest.mark.parametrize(
        ("sender", "ended"),
        [(DANA, {1}), (BOB, {2}), ("user_cleo", {1, 2}), (OWNER, {1, 2}), (None, {1, 2})],
    )
    @pytest.mark.parametrize("signal", ["interrupt", "stop_and_drop", "new_session"])
    @on_a_loop
    async def test_h29_a_signal_reaches_the_senders_own_runs_or_else_every_run_of_the_conversation(
        self, host: HostInboxDriver, signal: SignalKind, sender: str | None, ended: set[int]
    ) -> None:
        """The owner and a sender without a name reach every run."""
        await say(host, [1, 3], GROUP)
        await say(host, [2, 4], GROUP, user_id=BOB)
        turns = {number: await running(host, number) for number in (1, 2)}
        await host.inbox.apply_signal(GROUP, signal, sender)
        await until(lambda: all(turns[number].outcome for number in ended), "the end of every run it reaches")
        await passed(host)
        assert {number for number, turn in turns.items() if turn.outcome == "cancelled"} == ended
        rest = {1, 2} - ended
        assert all(turns[number].runs for number in rest)
        await run_through(host, rest)
        behind = {1: 3, 2: 4}
        kept = {behind[number] for number in (rest if signal == "stop_and_drop" else (1, 2))}
        await run_through(host, kept)
        await passed(host)
        assert set(host.log.ran) == {f"text {number}" for number in {1, 2} | kept}

    @on_a_loop
    async def test_stop_and_drop_keeps_what_came_after_it(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        await running(host, 1)
        await say(host, [2, 3])
        await host.inbox.apply_signal(DIRECT, "stop_and_drop", DANA, {"msg_3"})
        await run_through(host, [3])
        assert host.log.outcomes == [("msg_1", "cancelled"), ("msg_3", "success")]

    @pytest.mark.parametrize("signal", ["interrupt", "stop_and_drop", "new_session"])
    @on_a_loop
    async def test_a_signal_leaves_the_run_of_a_message_that_came_after_it(
        self, host: HostInboxDriver, signal: SignalKind
    ) -> None:
        await say(host, [1])
        turn = await running(host, 1)
        await say(host, [2])
        await host.inbox.apply_signal(DIRECT, signal, DANA, {"msg_1", "msg_2"})
        await passed(host)
        assert turn.runs
        await run_through(host, [1, 2])
        assert host.log.outcomes == [("msg_1", "success"), ("msg_2", "success")]
        assert list(host.renewed) == []

    @on_a_loop
    async def test_h29_the_owner_with_a_run_of_their_own_still_reaches_every_run(self, host: HostInboxDriver) -> None:
        await say(host, [1], GROUP, user_id=OWNER)
        await say(host, [2], GROUP)
        turns = [await running(host, number) for number in (1, 2)]
        await host.inbox.apply_signal(GROUP, "interrupt", OWNER)
        await until(lambda: all(turn.outcome == "cancelled" for turn in turns), "the end of both")

    @on_a_loop
    async def test_after_a_signal_the_session_works_as_before(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        await running(host, 1)
        await host.inbox.apply_signal(DIRECT, "interrupt", None)
        await say(host, [2])
        await run_through(host, [2])
        assert host.log.outcomes == [("msg_1", "cancelled"), ("msg_2", "success")]
