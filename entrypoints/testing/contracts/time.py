"""Time, identifiers, background work: what the ports of :mod:`canon_hermes_plugin.ports.time` promise."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import pytest
from canon_hermes_plugin.ports.time import Clock, IdSource, Tasks
from canon_hermes_plugin.testing.contracts.base import Suite, wanted

_YEAR_2020 = 1_577_836_800_000


class ClockContract(Suite[Clock]):
    """The suite of :class:`canon_hermes_plugin.ports.time.Clock`."""

    def factory(self) -> Clock:
        """Return a clock; called on the test's event loop."""
        raise NotImplementedError(wanted(type(self)))

    def test_sleeping_zero_yields_once(self) -> None:
        async def whole() -> list[str]:
            clock, order = self.factory(), list[str]()
            asyncio.get_running_loop().call_soon(order.append, "other")
            await clock.sleep(0)
            return [*order, "sleeper"]

        assert asyncio.run(whole()) == ["other", "sleeper"]

    def test_the_wall_clock_counts_milliseconds_since_the_epoch(self) -> None:
        async def whole() -> int:
            return self.factory().now_ms()

        read = asyncio.run(whole())
        assert isinstance(read, int)
        assert read > _YEAR_2020

    def test_the_monotonic_clock_never_goes_back(self) -> None:
        async def whole() -> list[float]:
            clock = self.factory()
            return [clock.monotonic() for _ in range(100)]

        read = asyncio.run(whole())
        assert read == sorted(read)


class IdSourceContract(Suite[IdSource]):
    """The suite of :class:`canon_hermes_plugin.ports.time.IdSource`."""

    def factory(self) -> IdSource:
        """Return a source."""
        raise NotImplementedError(wanted(type(self)))

    @pytest.mark.parametrize("digits", [1, 2, 5, 20, 32, 64])
    def test_hex_has_exactly_the_asked_digits(self, digits: int) -> None:
        minted = self.factory().hex(digits)
        assert len(minted) == digits
        assert set(minted) <= set("0123456789abcdef")

    @pytest.mark.parametrize("digits", [0, -1, 65])
    def test_hex_refuses_lengths_outside_its_bounds(self, digits: int) -> None:
        with pytest.raises(ValueError, match="between 1 and 64"):
            self.factory().hex(digits)

    def test_identifiers_do_not_repeat(self) -> None:
        ids = self.factory()
        assert len({ids.hex(20) for _ in range(1000)}) == 1000

    def test_jitter_stays_in_its_interval(self) -> None:
        ids = self.factory()
        assert all(0 <= ids.jitter() < 1 for _ in range(1000))


class _Log(Protocol):
    """The part of pytest's ``caplog`` that is used."""

    text: str

    def set_level(self, level: int) -> None: ...


class TasksContract(Suite[Tasks]):
    """The suite of :class:`canon_hermes_plugin.ports.time.Tasks`."""

    def factory(self) -> Tasks:
        """Return an owner of tasks; called on the test's event loop."""
        raise NotImplementedError(wanted(type(self)))

    def test_background_failures_are_logged_with_the_name_and_never_lost(self, caplog: _Log) -> None:
        async def fail() -> None:
            raise RuntimeError("the text of a message")

        async def whole(tasks: Tasks) -> None:
            tasks.spawn(fail(), name="release-retry")
            await tasks.drain(1)

        caplog.set_level(logging.ERROR)
        self._run(whole)
        assert "release-retry" in caplog.text
        assert "the text of a message" not in caplog.text

    def test_drain_waits_for_work_that_ends_in_time(self) -> None:
        done: list[bool] = []

        async def work() -> None:
            await asyncio.sleep(0)
            done.append(True)

        async def whole(tasks: Tasks) -> None:
            tasks.spawn(work(), name="short")
            await tasks.drain(5)

        self._run(whole)
        assert done == [True]

    def test_spawning_waits_for_nothing_and_runs_on_the_owning_loop(self) -> None:
        seen: list[object] = []

        async def work() -> None:
            seen.append(asyncio.get_running_loop())

        async def whole(tasks: Tasks) -> None:
            tasks.spawn(work(), name="work")
            assert not seen
            await tasks.drain(5)
            assert seen == [asyncio.get_running_loop()]

        self._run(whole)

    def test_drain_cancels_and_awaits_the_rest(self) -> None:
        ended: list[bool] = []

        async def stuck() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        async def whole(tasks: Tasks) -> None:
            tasks.spawn(stuck(), name="stuck")
            await asyncio.sleep(0)
            await tasks.drain(0)
            assert ended == [True]

        self._run(whole)

    def test_drain_also_ends_work_started_while_draining(self) -> None:
        ended: list[str] = []

        async def second() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("second")

        async def whole(tasks: Tasks) -> None:
            async def first() -> None:
                tasks.spawn(second(), name="second")

            tasks.spawn(first(), name="first")
            await tasks.drain(0.01)
            assert ended == ["second"]

        self._run(whole)

    def test_a_task_may_drain_its_siblings_without_waiting_for_itself(self) -> None:
        drained: list[bool] = []

        async def whole(tasks: Tasks) -> None:
            async def closer() -> None:
                await tasks.drain(0)
                drained.append(True)

            tasks.spawn(closer(), name="closer")
            async with asyncio.timeout(5):
                while not drained:
                    await asyncio.sleep(0)
            await tasks.drain(1)

        self._run(whole)
        assert drained == [True]

    def _run(self, whole: Callable[[Tasks], Awaitable[None]]) -> None:
        async def on_loop() -> None:
            await whole(self.factory())

        asyncio.run(on_loop())
