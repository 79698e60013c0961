"""The inbox of a host: the suite of :class:`canon_hermes_plugin.ports.host.HostInbox`."""

from __future__ import annotations

import asyncio

import pytest
from canon_hermes_plugin.domain.inbound.intents import MAX_WAITING
from canon_hermes_plugin.domain.session_key import host_session_key
from canon_hermes_plugin.ports.errors import CanonError
from canon_hermes_plugin.ports.host import DeliveryIntent, LocalMedia
from canon_hermes_plugin.testing.contracts.base import on_a_loop
from canon_hermes_plugin.testing.contracts.host import (
    BOB,
    DANA,
    DIRECT,
    GROUP,
    HostInboxDriver,
    passed,
    run_through,
    running,
    say,
    until,
    wake,
)
from canon_hermes_plugin.testing.contracts.host_signals import ControlSignals

PICTURE = LocalMedia("/tmp/picture.png", "image/png")  # noqa: S108 - nobody opens it


class HostInboxContract(ControlSignals):
    """The suite of an inbox: messages, sessions, intents, and the control signals of its base class."""

    # --- one message, one turn --------------------------------------------------------------------------------------

    @on_a_loop
    async def test_a_message_starts_a_turn_of_its_own_at_once(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        turn = await running(host, 1)
        start = turn.start
        assert (start.conversation_id, start.message_id, start.responder) == (DIRECT, "msg_1", DANA)
        host.finish(turn)
        await until(lambda: turn.outcome, "the end of the turn")
        assert host.log.outcomes == [("msg_1", "success")]

    @on_a_loop
    async def test_field_68_messages_of_one_session_run_one_after_another_and_none_are_merged(
        self, host: HostInboxDriver
    ) -> None:
        """Turns §14 H2, H3: each has its own turn, its own text and its own responder."""
        people = {1: DANA, 2: BOB, 3: DANA, 4: None, 5: DANA}
        for number, user in people.items():
            await say(host, [number], user_id=user)
        await running(host, 1)
        await passed(host)
        await run_through(host, people)
        await passed(host)
        assert host.log.overlaps == []
        assert host.log.ran == [f"text {number}" for number in people]
        assert [(turn.start.message_id, turn.start.responder) for turn in host.log.turns] == [
            (f"msg_{number}", user) for number, user in people.items()
        ]
        assert {turn.outcome for turn in host.log.turns} == {"success"}

    @on_a_loop
    async def test_messages_with_pictures_are_not_merged_either(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        await say(host, [2, 3], kind="photo", media=(PICTURE,))
        await run_through(host, [1, 2, 3])
        assert host.log.ran == ["text 1", "text 2", "text 3"]

    @on_a_loop
    async def test_what_is_handed_over_while_a_turn_ends_is_neither_lost_nor_overtaken(
        self, host: HostInboxDriver
    ) -> None:
        await say(host, [1])
        host.finish(await running(host, 1))
        for number in range(2, 12):
            await say(host, [number])
            await asyncio.sleep(0.002)
        await run_through(host, range(2, 12))
        assert host.log.overlaps == []
        assert host.log.ran == [f"text {number}" for number in range(1, 12)]

    @on_a_loop
    async def test_messages_handed_over_at_the_same_time_all_run_one_after_another(self, host: HostInboxDriver) -> None:
        numbers = range(1, 8)
        await asyncio.gather(*(say(host, [number]) for number in numbers))
        for count in numbers:
            (turn,) = await until(lambda: [turn for turn in host.log.turns if turn.runs], "the next run")
            assert len(host.log.turns) == count
            host.finish(turn)
            await until(lambda: turn.outcome, "its end")  # noqa: B023 - awaited at once
        assert sorted(host.log.ran) == [f"text {number}" for number in numbers]
        assert host.log.overlaps == []

    @on_a_loop
    async def test_what_waits_is_named_until_its_turn_begins(self, host: HostInboxDriver) -> None:
        """A process that dies meanwhile must get it again, and nothing else."""
        assert host.inbox.waiting() == frozenset()
        await say(host, [1])
        assert host.inbox.waiting() <= {"msg_1"}
        turn = await running(host, 1)
        await say(host, [2, 3])
        await say(host, [4], message_id=None, synthetic=True, user_id=None, queued=False)
        await passed(host)
        assert host.inbox.waiting() == {"msg_2", "msg_3"}
        host.finish(turn)
        await running(host, 2)
        assert host.inbox.waiting() == {"msg_3"}
        await run_through(host, [2, 3, 4])
        assert host.inbox.waiting() == frozenset()

    @on_a_loop
    async def test_what_was_dropped_or_refused_does_not_wait(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        await running(host, 1)
        await say(host, range(2, MAX_WAITING + 3))
        await passed(host)
        assert host.inbox.waiting() == {f"msg_{number}" for number in range(2, MAX_WAITING + 2)}
        await say(host, [99], intent="stop")
        assert host.inbox.waiting() <= {"msg_99"}
        await run_through(host, [99])

    @on_a_loop
    async def test_what_joined_a_run_counts_as_waiting_until_that_run_has_ended(self, host: HostInboxDriver) -> None:
        """Nobody knows before that whether it was read."""
        await say(host, [1])
        turn = await running(host, 1)
        await say(host, [2], intent="interleave")
        assert host.inbox.waiting() == {"msg_2"}
        host.finish(turn)
        await until(lambda: turn.outcome, "the end of the turn")
        await passed(host)
        if [started.start.message_id for started in host.log.turns] != ["msg_1"]:
            await run_through(host, [2])  # an inbox without interleaving
        assert host.inbox.waiting() == frozenset()

    @on_a_loop
    async def test_what_waits_between_two_connections_is_named(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        turn = await running(host, 1)
        await say(host, [2])
        host.disconnect()
        host.finish(turn)
        await until(lambda: turn.outcome, "the end of the turn")
        await asyncio.sleep(0.01)
        assert host.inbox.waiting() == {"msg_2"}
        host.connect()
        await run_through(host, [2])

    @on_a_loop
    async def test_the_same_message_twice_is_two_turns(self, host: HostInboxDriver) -> None:
        """Who decides what is a repetition hands over; the inbox does not."""
        await say(host, [1, 1])
        await run_through(host, [1, 1])
        assert host.log.outcomes == [("msg_1", "success")] * 2

    @on_a_loop
    async def test_what_the_plugin_made_runs_like_any_other_message(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        await say(host, [2], message_id=None, synthetic=True, user_id=None, queued=False)
        await run_through(host, [1, 2])
        assert [turn.start.message_id for turn in host.log.turns] == ["msg_1", None]
        assert host.log.turns[1].start.responder is None

    @on_a_loop
    async def test_a_command_neither_waits_nor_reaches_the_agent(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        turn = await running(host, 1)
        await say(host, [2], text="/status", kind="command", queued=False)
        await say(host, [3])
        host.finish(turn)
        await run_through(host, [3])
        assert host.log.outcomes == [("msg_1", "success"), ("msg_3", "success")]

    @on_a_loop
    async def test_a_stop_command_ends_the_run_and_the_queue_goes_on(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        await running(host, 1)
        await say(host, [2])
        await say(host, [3], text="/stop", kind="command", queued=False)
        await run_through(host, [2])
        assert host.log.outcomes == [("msg_1", "cancelled"), ("msg_2", "success")]

    @on_a_loop
    async def test_field_22_a_message_without_a_conversation_is_refused(self, host: HostInboxDriver) -> None:
        """The host would put every such chat into one session."""
        for blank in ("", " "):
            with pytest.raises(ValueError, match="conversation"):
                await say(host, [1], blank)
        await passed(host)
        assert host.log.ran == []

    # --- the queued shelf and the bound -----------------------------------------------------------------------------

    @on_a_loop
    async def test_h28_a_message_leaves_the_queued_shelf_once_and_when_it_starts(self, host: HostInboxDriver) -> None:
        await say(host, [1, 2])
        turn = await running(host, 1)
        await until(lambda: "msg_1" in host.released, "the release of message 1")
        await passed(host)
        assert list(host.released) == ["msg_1"], "message 2 still waits"
        host.finish(turn)
        await run_through(host, [2])
        await until(lambda: "msg_2" in host.released, "the release of message 2")
        await say(host, [3], queued=False)
        await run_through(host, [3])
        await passed(host)
        assert list(host.released) == ["msg_1", "msg_2"], "what never lay on the shelf is not taken from it"

    @on_a_loop
    async def test_field_68_what_does_not_fit_is_refused_visibly_and_released(self, host: HostInboxDriver) -> None:
        """The bound is the adapter's own; whatever it takes, it runs."""
        numbers = range(1, MAX_WAITING + 20)
        await say(host, numbers)
        await running(host, 1)
        await until(lambda: len(host.released) == 1 + len(host.refused), "the release of what was refused")
        kept = [number for number in numbers if f"msg_{number}" not in host.refused]
        assert len(kept) > 1, "a busy session takes at least one more message"
        assert kept == list(range(1, len(kept) + 1)), "who came first is not refused for who came later"
        await run_through(host, kept)
        await until(lambda: sorted(host.released) == sorted(f"msg_{number}" for number in numbers), "every release")

    @on_a_loop
    async def test_what_the_plugin_made_is_given_back_when_it_does_not_fit(self, host: HostInboxDriver) -> None:
        """Nobody is asked to send again what nobody sent; whoever made it tries again."""
        numbers = range(1, MAX_WAITING + 2)
        await say(host, numbers)
        await running(host, 1)
        refusals: list[CanonError] = []
        try:
            await host.inbox.hand_over(wake(99))
        except CanonError as error:
            refusals.append(error)
        assert all(refusal.retryable for refusal in refusals)
        await run_through(host, numbers)
        if refusals:
            await host.inbox.hand_over(wake(99))
        await run_through(host, [99])
        assert [list(host.refused), host.log.ran.count("text 99")] == [[], 1]

    # --- sessions ---------------------------------------------------------------------------------------------------

    @on_a_loop
    async def test_conversations_run_side_by_side(self, host: HostInboxDriver) -> None:
        await say(host, [1, 2])
        first = await running(host, 1)
        await say(host, [3], "conv_second")
        await say(host, [4], GROUP)
        await run_through(host, [4, 3])
        assert first.runs, "nobody waited for anybody else"
        assert host.log.ran == ["text 1", "text 3", "text 4"]

    @on_a_loop
    async def test_two_people_of_a_group_have_a_session_each(self, host: HostInboxDriver) -> None:
        await say(host, [1], GROUP)
        await say(host, [2], GROUP, user_id=BOB)
        await say(host, [3], GROUP)
        await say(host, [4], GROUP, user_id=None)
        for number in (1, 2, 4):
            await running(host, number)
        await passed(host)
        assert host.log.ran == ["text 1", "text 2", "text 4"]
        await run_through(host, [1, 3])
        assert host.log.overlaps == []

    @on_a_loop
    async def test_whoever_writes_in_a_direct_conversation_shares_its_session(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        await say(host, [2], user_id=None)
        await running(host, 1)
        await passed(host)
        assert host.log.ran == ["text 1"]

    @on_a_loop
    async def test_field_24_a_session_has_one_key_for_everybody(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        await say(host, [2], GROUP)
        await say(host, [3], GROUP, user_id=None)
        for number in (1, 2, 3):
            await running(host, number)
        assert [turn.start.session_key for turn in host.log.turns] == [
            host_session_key(DIRECT, "direct", DANA),
            host_session_key(GROUP, "group", DANA),
            host_session_key(GROUP, "group", None),
        ]

    # --- intents ----------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("intent", [None, "queue"])
    @on_a_loop
    async def test_a_message_without_another_wish_waits(
        self, host: HostInboxDriver, intent: DeliveryIntent | None
    ) -> None:
        await say(host, [1])
        first = await running(host, 1)
        await say(host, [2], intent=intent)
        await passed(host)
        assert first.runs
        await run_through(host, [1, 2])
        assert host.log.outcomes == [("msg_1", "success"), ("msg_2", "success")]

    @on_a_loop
    async def test_h4_an_interrupting_message_ends_the_run_and_takes_its_own_place(self, host: HostInboxDriver) -> None:
        await say(host, [1])
        await running(host, 1)
        await say(host, [2])
        await say(host, [3], intent="interrupt")
        await run_through(host, [2, 3])
        assert host.log.outcomes == [("msg_1", "cancelled"), ("msg_2", "success"), ("msg_3", "success")]
        assert host.log.overlaps == []

    @on_a_loop
    async def test_a_stopping_message_ends_the_run_drops_what_waits_and_runs_itself(
        self, host: HostInboxDriver
    ) -> None:
        await say(host, [1])
        await running(host, 1)
        await say(host, [2, 3])
        await host.inbox.hand_over(wake(9))
        await say(host, [4], intent="stop")
        await run_through(host, [9, 4])
        await passed(host)
        assert host.log.ran == ["text 1", "text 9", "text 4"], "what the plugin made is nobody's to drop"
        assert [outcome for _, outcome in host.log.outcomes] == ["cancelled", "success", "success"]
        await until(lambda: len(host.released) == 4, "the release of what was dropped (H28)")
        assert sorted(host.released) == ["msg_1", "msg_2", "msg_3", "msg_4"]

    @pytest.mark.parametrize("intent", ["interrupt", "stop"])
    @on_a_loop
    async def test_a_wish_takes_effect_on_what_was_handed_over_just_before(
        self, host: HostInboxDriver, intent: DeliveryIntent
    ) -> None:
        await say(host, [1])
        await say(host, [2], intent=intent)
        await run_through(host, [2])
        first = [turn for turn in host.log.turns if turn.start.message_id == "msg_1"]
        assert [turn.outcome for turn in first] in (["cancelled"], [])

    @pytest.mark.parametrize("intent", ["interrupt", "stop", "interleave", "queue"])
    @on_a_loop
    async def test_a_wish_means_nothing_while_nothing_runs(self, host: HostInboxDriver, intent: DeliveryIntent) -> None:
        await say(host, [1], intent=intent)
        await run_through(host, [1])
        assert host.log.outcomes == [("msg_1", "success")]

    @pytest.mark.parametrize("intent", ["interrupt", "stop"])
    @on_a_loop
    async def test_a_wish_reaches_no_other_session(self, host: HostInboxDriver, intent: DeliveryIntent) -> None:
        await say(host, [1, 2], GROUP, user_id=BOB)
        await say(host, [3], GROUP)
        bobs, _ = await running(host, 1), await running(host, 3)
        await say(host, [4], GROUP, intent=intent)
        await run_through(host, [4])
        assert bobs.runs
        await run_through(host, [1, 2])

    # --- between connections ----------------------------------------------------------------------------------------

    @on_a_loop
    async def test_what_is_handed_over_between_connections_runs_once_after_it(self, host: HostInboxDriver) -> None:
        """Either it is kept, or the hand-over fails and may be repeated: then the claim on the message is released."""
        await say(host, [1])
        first = await running(host, 1)
        await say(host, [2])
        host.disconnect()
        refusals: list[CanonError] = []
        try:
            await say(host, [3])
        except CanonError as error:
            refusals.append(error)
        host.finish(first)
        await until(lambda: first.outcome, "the end of a turn that needs no connection")
        host.connect()
        await running(host, 2)
        for refusal in refusals:
            assert refusal.retryable
            await say(host, [3])
        await run_through(host, [2, 3])
        await passed(host)
        assert host.log.outcomes == [("msg_1", "success"), ("msg_2", "success"), ("msg_3", "success")]
