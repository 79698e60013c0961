"""The provenance of a turn: what every :class:`canon_hermes_plugin.ports.host.SessionContext` promises.

See interactions §2: the values belong to the calling task or thread, so that turns side by side never see each other's.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final, Protocol

import pytest
from canon_hermes_plugin.ports.host import SessionContext, SessionSnapshot
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop

TURN: Final = SessionSnapshot(
    "canon", "conv_1", "user_dana", "Dana", "session_1", "agent:main:canon:dm:conv_1", "msg_1"
)
"""A turn with everything known."""
NOWHERE: Final = SessionSnapshot()
FIELDS: Final = ("platform", "conversation_id", "user_id", "user_name", "session_id", "session_key", "message_id")


class SessionContextDriver(Driver, Protocol):
    """The subject, and the host that binds what it reads.

    Attributes:
        session: the subject.
    """

    session: SessionContext

    def bind(self, raw: SessionSnapshot) -> None:
        """Let the host begin a turn in the calling context; blank values stay as they are."""
        ...

    def clear(self) -> None:
        """Let the host end the turn of the calling context."""
        ...

    def break_down(self) -> None:
        """Let the host's context be unreadable from now on, whatever reads it."""
        ...


class SessionContextContract(Contract[SessionContextDriver]):
    """The suite of a session context."""

    @on_a_loop
    async def test_everything_the_host_says_about_the_turn_is_read(self, host: SessionContextDriver) -> None:
        host.bind(TURN)
        assert host.session.snapshot() == TURN

    @on_a_loop
    async def test_without_a_turn_there_is_nothing_to_read(self, host: SessionContextDriver) -> None:
        assert host.session.snapshot() == NOWHERE

    @on_a_loop
    async def test_after_a_turn_nothing_of_it_is_left(self, host: SessionContextDriver) -> None:
        host.bind(TURN)
        host.clear()
        assert host.session.snapshot() == NOWHERE

    @on_a_loop
    async def test_the_next_turn_inherits_nothing_of_the_one_before(self, host: SessionContextDriver) -> None:
        host.bind(TURN)
        host.bind(SessionSnapshot("canon", "conv_2"))
        assert host.session.snapshot() == SessionSnapshot("canon", "conv_2")

    @pytest.mark.parametrize("blank", ["", " ", "\t\n"])
    @pytest.mark.parametrize("name", FIELDS)
    @on_a_loop
    async def test_blank_is_unknown(self, host: SessionContextDriver, name: str, blank: str) -> None:
        host.bind(replace(TURN, **{name: blank}))
        assert host.session.snapshot() == replace(TURN, **{name: None})

    @pytest.mark.parametrize("name", FIELDS)
    @on_a_loop
    async def test_space_around_a_value_is_no_part_of_it(self, host: SessionContextDriver, name: str) -> None:
        host.bind(replace(TURN, **{name: f"  {getattr(TURN, name)}\n"}))
        assert host.session.snapshot() == TURN

    @pytest.mark.parametrize("platform", ["Canon", "CANON", " canon "])
    @on_a_loop
    async def test_the_platform_has_one_spelling(self, host: SessionContextDriver, platform: str) -> None:
        host.bind(replace(TURN, platform=platform, user_name="Dana D", user_id="User_Dana"))
        read = host.session.snapshot()
        assert (read.platform, read.user_name, read.user_id) == ("canon", "Dana D", "User_Dana")

    @on_a_loop
    async def test_turns_side_by_side_never_see_each_other(self, host: SessionContextDriver) -> None:
        both = asyncio.Barrier(2)

        async def turn(number: int) -> list[SessionSnapshot]:
            own, read = (
                replace(TURN, conversation_id=f"conv_{number}", user_id=f"user_{number}"),
                list[SessionSnapshot](),
            )
            host.bind(own)
            for _ in range(3):
                read.append(host.session.snapshot())
                await both.wait()
            read.append(host.session.snapshot())
            host.clear()
            await asyncio.sleep(0)
            return [*(item for item in read if item != own), host.session.snapshot()]

        first, second = await asyncio.gather(asyncio.create_task(turn(1)), asyncio.create_task(turn(2)))
        assert first == second == [NOWHERE]
        assert host.session.snapshot() == NOWHERE, "what a task binds is not its parent's"

    @on_a_loop
    async def test_work_that_a_turn_starts_belongs_to_it(self, host: SessionContextDriver) -> None:
        async def work() -> SessionSnapshot:
            await asyncio.sleep(0)
            return host.session.snapshot()

        host.bind(TURN)
        started = asyncio.create_task(work())
        host.clear()
        assert await started == TURN
        assert host.session.snapshot() == NOWHERE

    @on_a_loop
    async def test_a_thread_with_the_turns_context_reads_it_and_any_other_thread_nothing(
        self, host: SessionContextDriver
    ) -> None:
        host.bind(TURN)
        context = contextvars.copy_context()
        read: list[SessionSnapshot] = []
        stranger = threading.Thread(
            target=lambda: contextvars.Context().run(lambda: read.append(host.session.snapshot()))
        )
        stranger.start()
        stranger.join()
        with ThreadPoolExecutor(1) as pool:
            inside = pool.submit(context.run, host.session.snapshot).result()
        assert inside == await asyncio.to_thread(host.session.snapshot) == TURN
        assert read == [NOWHERE]

    @on_a_loop
    async def test_what_a_tools_thread_binds_stays_there(self, host: SessionContextDriver) -> None:
        host.bind(TURN)
        other = replace(TURN, conversation_id="conv_2")

        def work() -> SessionSnapshot:
            host.bind(other)
            return host.session.snapshot()

        assert await asyncio.to_thread(work) == other
        assert host.session.snapshot() == TURN

    @on_a_loop
    async def test_a_context_that_cannot_be_read_is_none_and_never_an_error(self, host: SessionContextDriver) -> None:
        host.bind(TURN)
        host.break_down()
        assert host.session.snapshot() == NOWHERE
