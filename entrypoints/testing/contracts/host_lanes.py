"""The sessions of a host: the suite of :class:`canon_hermes_plugin.ports.host.HostLanes`."""

from __future__ import annotations

import pytest
from canon_hermes_plugin.domain.session_key import host_session_key
from canon_hermes_plugin.ports.host import LocalMedia
from canon_hermes_plugin.testing.contracts.base import Contract, on_a_loop
from canon_hermes_plugin.testing.contracts.host import (
    BOB,
    DANA,
    DIRECT,
    GROUP,
    HostLanesDriver,
    passed,
    run_through,
    running,
    say,
    until,
)

KEY = host_session_key(DIRECT, "direct")


class HostLanesContract(Contract[HostLanesDriver]):
    """The suite of a view of the host's sessions: typing, depth, interleaving."""

    # --- typing -----------------------------------------------------------------------------------------------------

    @on_a_loop
    async def test_typing_stops_where_it_is_paused_and_nowhere_else(self, host: HostLanesDriver) -> None:
        host.lanes.pause_typing(DIRECT)
        assert not host.refreshes_typing(DIRECT)
        assert host.refreshes_typing(GROUP)
        host.lanes.resume_typing(DIRECT)
        assert host.refreshes_typing(DIRECT)

    @on_a_loop
    async def test_pausing_twice_is_pausing_once(self, host: HostLanesDriver) -> None:
        """Who counts what waits for a human is not the host."""
        host.lanes.pause_typing(DIRECT)
        host.lanes.pause_typing(DIRECT)
        assert not host.refreshes_typing(DIRECT)
        host.lanes.resume_typing(DIRECT)
        assert host.refreshes_typing(DIRECT)
        host.lanes.resume_typing(DIRECT)
        assert host.refreshes_typing(DIRECT)

    @on_a_loop
    async def test_a_conversation_nobody_knows_can_be_paused_and_resumed(self, host: HostLanesDriver) -> None:
        host.lanes.resume_typing("conv_unknown")
        assert host.refreshes_typing("conv_unknown")
        host.lanes.pause_typing("conv_unknown")
        assert host.refreshes_typing(DIRECT)

    @on_a_loop
    async def test_between_connections_there_is_nothing_to_pause_and_no_error(self, host: HostLanesDriver) -> None:
        host.disconnect()
        host.lanes.pause_typing(DIRECT)
        host.lanes.resume_typing(DIRECT)
        host.connect()
        assert host.refreshes_typing(DIRECT)

    # --- depth ------------------------------------------------------------------------------------------------------

    @on_a_loop
    async def test_the_depth_is_what_waits_behind_the_running_message(self, host: HostLanesDriver) -> None:
        await say(host, [1])
        await running(host, 1)
        assert host.lanes.queue_depth(KEY) == 0
        for waiting, number in enumerate((2, 3, 4), start=1):
            await say(host, [number])
            assert host.lanes.queue_depth(KEY) == waiting
        for waiting, number in ((2, 1), (1, 2), (0, 3)):
            await run_through(host, [number])
            await running(host, number + 1)
            assert host.lanes.queue_depth(KEY) == waiting

    @on_a_loop
    async def test_each_session_has_a_depth_of_its_own(self, host: HostLanesDriver) -> None:
        await say(host, [1, 2, 3], GROUP)
        await say(host, [4, 5], GROUP, user_id=BOB)
        await running(host, 1)
        await running(host, 4)
        depths = [host.lanes.queue_depth(host_session_key(GROUP, "group", user)) for user in (DANA, BOB, None)]
        assert depths == [2, 1, 0]
        assert host.lanes.queue_depth(KEY) == 0

    @on_a_loop
    async def test_nothing_waits_in_a_session_nobody_knows(self, host: HostLanesDriver) -> None:
        assert host.lanes.queue_depth("no:such:session") == 0
        assert host.lanes.queue_depth("") == 0

    @on_a_loop
    async def test_what_was_dropped_does_not_wait(self, host: HostLanesDriver) -> None:
        await say(host, [1])
        await running(host, 1)
        await say(host, [2, 3])
        await host.inbox.apply_signal(DIRECT, "stop_and_drop", DANA)
        assert host.lanes.queue_depth(KEY) == 0

    @on_a_loop
    async def test_between_connections_what_waits_still_counts(self, host: HostLanesDriver) -> None:
        await say(host, [1])
        await running(host, 1)
        await say(host, [2])
        host.disconnect()
        assert host.lanes.queue_depth(KEY) == 1

    # --- interleaving -----------------------------------------------------------------------------------------------

    @on_a_loop
    async def test_interleaving_is_promised_or_not_and_then_kept(self, host: HostLanesDriver) -> None:
        """What joins the running turn has no turn of its own and left the shelf; else it waits like any other."""
        promised = host.lanes.supports_interleave()
        assert isinstance(promised, bool)
        await say(host, [1])
        first = await running(host, 1)
        await say(host, [2], intent="interleave", user_id=BOB)
        assert host.lanes.queue_depth(KEY) == (0 if promised else 1)
        assert list(host.joined(first)) == (["text 2"] if promised else [])
        if promised:
            await until(lambda: "msg_2" in host.released, "the release of what joined")
        host.finish(first)
        await (passed(host) if promised else run_through(host, [2]))
        assert host.log.ran == (["text 1"] if promised else ["text 1", "text 2"])
        assert first.start.responder == DANA, "who may answer in the turn does not change"
        await until(lambda: sorted(host.released) == ["msg_1", "msg_2"], "one release each")

    @on_a_loop
    async def test_a_message_without_words_waits_although_it_asks_to_join(self, host: HostLanesDriver) -> None:
        picture = LocalMedia("/tmp/picture.png", "image/png")  # noqa: S108 - nobody opens it
        await say(host, [1])
        first = await running(host, 1)
        await say(host, [2], intent="interleave", text=" ", kind="photo", media=(picture,))
        assert host.lanes.queue_depth(KEY) == 1
        assert list(host.joined(first)) == []

    @pytest.mark.parametrize("intent", ["interrupt", "stop"])
    @on_a_loop
    async def test_nothing_joins_a_run_that_was_ended(self, host: HostLanesDriver, intent: str) -> None:
        await say(host, [1])
        first = await running(host, 1)
        await say(host, [2], intent=intent)
        await say(host, [3], intent="interleave")
        second = await running(host, 2)
        await passed(host)
        assert (first.outcome, list(host.joined(first))) == ("cancelled", [])
        joined = list(host.joined(second))
        host.finish(second)
        if not joined:
            await run_through(host, [3])
        await passed(host)
        assert [*host.log.ran, *joined] == ["text 1", "text 2", "text 3"]
