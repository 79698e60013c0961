"""Silence: what ends a turn without a message, and what tells Canon of it, promise (interactions §5.7, turns H6)."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pytest
from canon_hermes_plugin.ports.errors import CanonApiError, CanonTransportError, MalformedResponseError
from canon_hermes_plugin.ports.interactions import Silencer, SilenceReporter
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop


class SilencerDriver(Driver, Protocol):
    """The subject and the turns it may silence; turns go by names.

    Attributes:
        silencer: the subject.
    """

    silencer: Silencer

    async def begin(self, turn: str, conversation_id: str) -> None:
        """Start a turn and bind the calling context to it, as a host's lifecycle does."""
        ...

    async def end(self, turn: str) -> None:
        """Let a turn be over; what is bound to it stays bound."""
        ...

    def silenced(self) -> Sequence[str]:
        """Return the turns that are silent, in the order they started."""
        ...


class SilencerContract(Contract[SilencerDriver]):
    """The suite of :class:`canon_hermes_plugin.ports.interactions.Silencer`."""

    @on_a_loop
    async def test_the_calling_contexts_turn_falls_silent_and_may_be_told_twice(self, turns: SilencerDriver) -> None:
        await turns.begin("mine", "conv_1")
        assert turns.silencer.silence("conv_1") is True
        assert turns.silencer.silence("conv_1") is True
        assert turns.silenced() == ["mine"]

    @on_a_loop
    async def test_h6_another_turn_of_a_shared_conversation_stays_untouched(self, turns: SilencerDriver) -> None:
        await asyncio.create_task(turns.begin("theirs", "conv_1"))
        await turns.begin("mine", "conv_1")
        await asyncio.create_task(turns.begin("later", "conv_1"))
        assert turns.silencer.silence("conv_1") is True
        assert turns.silenced() == ["mine"]

    @on_a_loop
    async def test_another_conversation_is_never_silenced(self, turns: SilencerDriver) -> None:
        await asyncio.create_task(turns.begin("theirs", "conv_2"))
        await turns.begin("mine", "conv_1")
        assert turns.silencer.silence("conv_2") is False
        assert turns.silencer.silence("conv_unknown") is False
        assert turns.silenced() == []

    @on_a_loop
    async def test_outside_of_any_turn_nothing_falls_silent(self, turns: SilencerDriver) -> None:
        assert turns.silencer.silence("conv_1") is False
        await asyncio.create_task(turns.begin("theirs", "conv_1"))
        assert turns.silencer.silence("conv_1") is False
        assert turns.silenced() == []

    @on_a_loop
    async def test_a_turn_that_is_over_cannot_fall_silent(self, turns: SilencerDriver) -> None:
        await turns.begin("mine", "conv_1")
        await turns.end("mine")
        assert turns.silencer.silence("conv_1") is False
        await asyncio.create_task(turns.begin("theirs", "conv_1"))
        assert turns.silencer.silence("conv_1") is False
        assert turns.silenced() == []

    @on_a_loop
    async def test_a_tool_thread_that_carries_the_context_silences_its_turn(self, turns: SilencerDriver) -> None:
        loop = asyncio.get_running_loop()
        contexts: list[contextvars.Context] = []

        async def lifecycle(name: str) -> None:
            await turns.begin(name, "conv_1")
            contexts.append(contextvars.copy_context())

        for name in ("one", "two"):
            await asyncio.create_task(lifecycle(name))
        silence = [lambda c=context: c.run(turns.silencer.silence, "conv_1") for context in contexts]
        assert await loop.run_in_executor(None, silence[1]) is True
        assert turns.silenced() == ["two"]
        assert await asyncio.gather(*(loop.run_in_executor(None, call) for call in silence)) == [True, True]
        assert turns.silenced() == ["one", "two"]


class SilenceReporterDriver(Driver, Protocol):
    """The subject and the Canon behind it.

    Attributes:
        reporter: the subject; a turn of ``conv_1`` runs.
    """

    reporter: SilenceReporter

    def reports(self) -> Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Return envelope and value of each call of the verb ``no_reply`` that Canon took."""
        ...

    def fail(self, error: Exception) -> None:
        """Let the next report fail with ``error``."""
        ...

    def hang(self) -> None:
        """Let Canon never answer the next report. A driver may shorten the subject's bound."""
        ...


class SilenceReporterContract(Contract[SilenceReporterDriver]):
    """The suite of :class:`canon_hermes_plugin.ports.interactions.SilenceReporter`."""

    @pytest.mark.parametrize(
        ("message_id", "envelope"),
        [("msg_1", {"conversationId": "conv_1", "messageId": "msg_1"}), (None, {"conversationId": "conv_1"})],
    )
    @on_a_loop
    async def test_a_report_names_conversation_and_message(
        self, canon: SilenceReporterDriver, message_id: str | None, envelope: Mapping[str, Any]
    ) -> None:
        await canon.reporter.report("conv_1", message_id, reasoned=False)
        assert [dict(sent) for sent, _ in canon.reports()] == [envelope]

    @pytest.mark.parametrize(("reasoned", "value"), [(True, {"reason": "given"}), (False, {})])
    @on_a_loop
    async def test_a_reason_is_one_fixed_word(
        self, canon: SilenceReporterDriver, reasoned: bool, value: Mapping[str, Any]
    ) -> None:
        await canon.reporter.report("conv_1", "msg_1", reasoned=reasoned)
        assert [dict(sent) for _, sent in canon.reports()] == [value]

    @pytest.mark.parametrize(
        "error",
        [
            CanonApiError(500),
            CanonApiError(403),
            CanonTransportError("gone", executed=False),
            MalformedResponseError("no verb"),
            TimeoutError(),
            OSError("no route"),
            ValueError("unforeseen"),
            RuntimeError("unforeseen"),
        ],
        ids=lambda error: type(error).__name__,
    )
    @on_a_loop
    async def test_every_failure_is_swallowed(self, canon: SilenceReporterDriver, error: Exception) -> None:
        canon.fail(error)
        await canon.reporter.report("conv_1", "msg_1", reasoned=True)
        assert list(canon.reports()) == []
        await canon.reporter.report("conv_1", "msg_2", reasoned=True)
        assert [sent["messageId"] for sent, _ in canon.reports()] == ["msg_2"]

    @on_a_loop
    async def test_a_canon_that_hangs_is_not_waited_for(self, canon: SilenceReporterDriver) -> None:
        canon.hang()
        async with asyncio.timeout(10):
            await canon.reporter.report("conv_1", "msg_1", reasoned=False)

    @on_a_loop
    async def test_a_cancelled_report_ends(self, canon: SilenceReporterDriver) -> None:
        canon.hang()
        task = asyncio.ensure_future(canon.reporter.report("conv_1", "msg_1", reasoned=False))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
