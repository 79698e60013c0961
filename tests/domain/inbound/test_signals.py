"""A signal reaches what was there when it became known, and nothing that came after it (turns §2.6, §14 H29)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from canon_hermes_plugin.domain.inbound import signals
from canon_hermes_plugin.domain.inbound.claims import Claims
from canon_hermes_plugin.domain.inbound.cursor import CursorMark
from canon_hermes_plugin.domain.inbound.lanes import Lanes
from canon_hermes_plugin.infrastructure.memory.time import settle
from canon_hermes_plugin.ports.canon import RuntimeSignal
from canon_hermes_plugin.ports.canon_stream import StreamEvent
from canon_hermes_plugin.ports.errors import CanonError, CanonTransportError

from .rig import World

STOP = RuntimeSignal("stop_and_drop", "dana")


class Line:
    """The service behind real lanes, and a Canon whose answers to signal requests come one by one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = World()
        self.asked: list[asyncio.Future[RuntimeSignal | None]] = []
        monkeypatch.setattr(self.world, "consume_signal", self.consume)
        self.lanes = Lanes(self.world.service, Claims(), CursorMark())

    async def consume(self, conversation_id: str) -> RuntimeSignal | None:
        answer: asyncio.Future[RuntimeSignal | None] = asyncio.get_running_loop().create_future()
        self.asked.append(answer)
        return await answer

    async def says(self, message_id: str, **message: Any) -> None:
        body = {"senderType": "human", "senderId": "dana", "text": "hi", "id": message_id, **message}
        self.lanes.offer(StreamEvent("message.created", {"conversationId": "c", "message": body}))
        await settle()

    async def signalled(self) -> None:
        self.lanes.offer(StreamEvent("runtime.control", {"conversationId": "c", "kind": "signal"}))
        await settle()

    async def answers(self, number: int, answer: RuntimeSignal | Exception | None) -> None:
        if isinstance(answer, Exception):
            self.asked[number].set_exception(answer)
        else:
            self.asked[number].set_result(answer)
        await settle()

    @property
    def arrived(self) -> list[str | None]:
        return [message.message_id for message in self.world.messages]

    @property
    def nothing_is_remembered(self) -> bool:
        desk = self.world.service._signals
        return not (desk._known or desk._waiting or desk._asking or desk.gate._pending)


@pytest.fixture
async def line(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Line]:
    monkeypatch.setattr("canon_hermes_plugin.domain.inbound.service.SIGNAL_WAIT", 0.0)
    monkeypatch.setattr(signals, "RETRIES", (0.0, 0.0))
    made = Line(monkeypatch)
    yield made
    await made.lanes.close()


def away() -> CanonError:
    return CanonTransportError("away", executed=False)


async def test_what_is_handed_over_while_canon_still_answers_is_spared(line: Line) -> None:
    await line.says("m1")
    await line.signalled()
    await line.says("m2")
    await line.says("m3", text="/queue later")
    assert line.arrived == ["m1", "m2", "m3"], "messages do not wait longer than they must"
    await line.answers(0, STOP)
    assert (line.world.signals, line.world.spared) == ([("c", "stop_and_drop", "dana")], [{"m2", "m3"}])
    assert line.nothing_is_remembered


async def test_what_joins_a_run_waits_behind_it_while_a_stop_is_on_its_way(line: Line) -> None:
    joining = {"deliveryIntent": "interleave"}
    await line.says("m1", metadata=joining)
    await line.signalled()
    await line.says("m2", metadata=joining)
    await line.answers(0, None)
    await line.says("m3", metadata=joining)
    assert [message.intent for message in line.world.messages] == ["interleave", "queue", "interleave"]
    assert line.nothing_is_remembered


async def test_a_poll_spares_what_came_after_its_beginning(line: Line) -> None:
    await line.says("m1")
    poll = asyncio.create_task(line.world.service.consume_signal("c"))
    await settle()
    await line.says("m2")
    await line.answers(0, STOP)
    await poll
    assert line.world.spared == [{"m2"}]
    assert line.nothing_is_remembered


async def test_an_announced_signal_that_canon_does_not_give_is_asked_for_again_with_the_same_reach(line: Line) -> None:
    await line.says("m1")
    await line.signalled()
    await line.answers(0, away())
    await line.says("m2")
    await line.answers(1, away())
    await line.says("m3")
    await line.answers(2, STOP)
    assert line.world.spared == [{"m2", "m3"}]
    assert line.nothing_is_remembered


async def test_after_that_the_poll_asks_for_it_also_in_an_idle_conversation(line: Line) -> None:
    await line.signalled()
    for number in range(3):
        assert list(line.world.service.preparing()) == [], "nobody else asks meanwhile"
        await line.answers(number, away())
    await line.says("m")
    assert list(line.world.service.preparing()) == ["c"]
    failing = asyncio.create_task(line.world.service.consume_signal("c"))
    await settle()
    await line.answers(3, away())
    with pytest.raises(CanonTransportError):
        await failing
    poll = asyncio.create_task(line.world.service.consume_signal("c"))
    await settle()
    await line.answers(4, STOP)
    await poll
    assert line.world.spared == [{"m"}]
    assert line.nothing_is_remembered


async def test_a_failed_poll_remembers_nothing(line: Line) -> None:
    poll = asyncio.create_task(line.world.service.consume_signal("c"))
    await settle()
    await line.answers(0, away())
    with pytest.raises(CanonTransportError):
        await poll
    assert line.nothing_is_remembered


async def test_the_poll_leaves_a_signal_alone_that_is_being_taken(line: Line) -> None:
    await line.signalled()
    await line.world.service.consume_signal("c")
    await line.answers(0, STOP)
    assert (len(line.asked), line.world.spared) == (1, [set()])


async def test_a_signal_that_canon_refuses_for_good_is_given_up(line: Line) -> None:
    await line.signalled()
    for number in range(2):
        await line.answers(number, CanonError("no such conversation"))
    assert (len(line.asked), line.world.signals) == (2, [])
    assert line.nothing_is_remembered


async def test_a_second_stop_reaches_what_came_between_the_two_and_spares_what_came_after_it(line: Line) -> None:
    await line.signalled()
    await line.says("m1")
    await line.signalled()
    await line.says("m2")
    await line.answers(0, STOP)
    await line.answers(1, None)
    assert line.world.spared == [{"m2"}]
    assert line.nothing_is_remembered


async def test_a_typed_stop_does_not_wait_for_a_signal_that_canon_does_not_give(line: Line) -> None:
    await line.signalled()
    await line.says("m", text="/stop")
    assert line.arrived == ["m"]


async def test_the_host_is_told_of_what_comes_while_it_applies_the_signal(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()
    seen: list[set[str]] = []

    async def slow(conversation_id: str, signal: str, user_id: str | None, spare: Any) -> None:
        seen.append(set(spare))
        await begun.wait()
        seen.append(set(spare))

    monkeypatch.setattr(line.world, "apply_signal", slow)
    await line.signalled()
    await line.answers(0, STOP)
    await line.says("m")
    begun.set()
    await settle()
    assert seen == [set(), {"m"}]


async def test_what_is_remembered_of_a_signal_nobody_can_take_is_bounded(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "LATER", 2)
    await line.signalled()
    for number in range(4):
        await line.says(f"m{number}")
    await line.answers(0, STOP)
    assert line.world.spared == [{"m2", "m3"}]
