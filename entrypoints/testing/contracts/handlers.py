"""Event handlers: what whoever takes the events over promises the stream (canon-wire §5.5, turns §14 H17, H21)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import pytest
from canon_hermes_plugin.ports.canon_stream import EagerEventHandler, EventHandler, StreamEvent, WaitingEventHandler
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop


class EventHandlerDriver(Driver, Protocol):
    """The subject, events for it, and what became of them.

    Attributes:
        handler: the subject.
    """

    handler: EventHandler

    def message(self, conversation_id: str, name: str) -> StreamEvent:
        """Return an event that must be handed on to somebody, under the id ``name``."""
        ...

    def passing(self, conversation_id: str, name: str) -> StreamEvent:
        """Return an event that nobody has to wait for, under the id ``name``."""
        ...

    def taken(self) -> Sequence[str]:
        """Return the names of the messages that were handed on, in order."""
        ...

    def fail(self, name: str) -> None:
        """Let the message ``name`` once not be taken by whom it is handed on to."""
        ...


ODD_PAYLOADS: list[object] = [
    None,
    "",
    "text",
    5,
    [],
    {},
    {"conversationId": None},
    {"conversationId": 5},
    {"conversationId": ["c"]},
    {"conversationId": {"id": "c"}},
    {"conversationId": "  "},
    {"message": {"conversationId": []}},
    {"id": {"x": 1}},
]


class EventHandlerContract(Contract[EventHandlerDriver]):
    """The suite of :class:`canon_hermes_plugin.ports.canon_stream.EventHandler`."""

    @on_a_loop
    async def test_one_conversation_is_one_lane_and_another_one_another(self, events: EventHandlerDriver) -> None:
        lane = events.handler.lane
        assert lane(events.message("conv_1", "e1")) == lane(events.message("conv_1", "e2"))
        assert lane(events.message("conv_1", "e1")) != lane(events.message("conv_2", "e3"))
        assert lane(events.message("conv_1", "e1")) is not None

    @pytest.mark.parametrize("payload", ODD_PAYLOADS, ids=range(len(ODD_PAYLOADS)))
    @pytest.mark.parametrize("name", ["message.created", "conversation.updated", "runtime.control", "unknown", ""])
    @on_a_loop
    async def test_h17_every_payload_has_a_lane(self, events: EventHandlerDriver, name: str, payload: object) -> None:
        lane = events.handler.lane(StreamEvent(name, payload, "e1"))
        assert lane is None or isinstance(lane, str)

    @on_a_loop
    async def test_returning_means_that_the_event_was_handed_over(self, events: EventHandlerDriver) -> None:
        for name in ("e1", "e2"):
            await events.handler.handle(events.message("conv_1", name))
        assert events.taken() == ["e1", "e2"]

    @on_a_loop
    async def test_raising_gives_the_event_back_and_its_redelivery_is_no_duplicate(
        self, events: EventHandlerDriver
    ) -> None:
        events.fail("e1")
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the hand-over raises
            await events.handler.handle(events.message("conv_1", "e1"))
        assert events.taken() == []
        await events.handler.handle(events.message("conv_1", "e1"))
        assert events.taken() == ["e1"]

    @on_a_loop
    async def test_conversations_are_handled_side_by_side(self, events: EventHandlerDriver) -> None:
        names = [f"e{number}" for number in range(8)]
        await asyncio.gather(*(events.handler.handle(events.message(f"conv_{name}", name)) for name in names))
        assert sorted(events.taken()) == names


class EagerEventHandlerContract(Contract[EventHandlerDriver]):
    """The suite of :class:`canon_hermes_plugin.ports.canon_stream.EagerEventHandler`, which is a handler as well."""

    @on_a_loop
    async def test_an_event_nobody_waits_for_is_taken_at_once(self, events: EventHandlerDriver) -> None:
        assert _eager(events).handle_now(events.passing("conv_1", "e1")) is True

    @on_a_loop
    async def test_false_means_that_nothing_was_done(self, events: EventHandlerDriver) -> None:
        message = events.message("conv_1", "e1")
        assert _eager(events).handle_now(message) is False
        assert _eager(events).handle_now(message) is False
        assert events.taken() == []
        await events.handler.handle(message)
        assert events.taken() == ["e1"]

    @on_a_loop
    async def test_what_was_given_back_is_not_taken_at_once_either(self, events: EventHandlerDriver) -> None:
        message = events.message("conv_1", "e1")
        events.fail("e1")
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the hand-over raises
            await events.handler.handle(message)
        assert _eager(events).handle_now(message) is False
        await events.handler.handle(message)
        assert events.taken() == ["e1"]

    @on_a_loop
    async def test_an_event_may_also_go_the_ordinary_way(self, events: EventHandlerDriver) -> None:
        await events.handler.handle(events.passing("conv_1", "e1"))
        await events.handler.handle(events.message("conv_1", "e2"))
        assert "e2" in events.taken()


class WaitingEventHandlerContract(Contract[EventHandlerDriver]):
    """The suite of :class:`canon_hermes_plugin.ports.canon_stream.WaitingEventHandler`, which is a handler as well."""

    @on_a_loop
    async def test_to_know_of_an_event_is_not_to_take_it_over(self, events: EventHandlerDriver) -> None:
        handler, message = events.handler, events.message("conv_1", "e2")
        assert isinstance(handler, WaitingEventHandler)
        handler.waits(message)
        assert events.taken() == []
        await handler.handle(events.message("conv_1", "e1"))
        await handler.handle(message)
        assert events.taken() == ["e1", "e2"]

    @on_a_loop
    async def test_what_was_noted_may_fail_and_come_again(self, events: EventHandlerDriver) -> None:
        handler, message = events.handler, events.message("conv_1", "e1")
        assert isinstance(handler, WaitingEventHandler)
        for _ in range(2):
            handler.waits(message)
        events.fail("e1")
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the hand-over raises
            await handler.handle(message)
        handler.waits(message)
        await handler.handle(message)
        assert events.taken() == ["e1"]

    @on_a_loop
    async def test_an_event_nobody_waits_for_may_be_noted_too(self, events: EventHandlerDriver) -> None:
        assert isinstance(events.handler, WaitingEventHandler)
        events.handler.waits(events.passing("conv_1", "e1"))
        await events.handler.handle(events.passing("conv_1", "e1"))


def _eager(events: EventHandlerDriver) -> EagerEventHandler:
    handler = events.handler
    assert isinstance(handler, EagerEventHandler)
    return handler
