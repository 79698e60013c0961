"""A stop reaches the message that is still on its way to the host (turns §2.6, §14 H29)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from canon_hermes_plugin.domain.inbound.claims import Claims
from canon_hermes_plugin.domain.inbound.cursor import CursorMark
from canon_hermes_plugin.domain.inbound.lanes import Lanes
from canon_hermes_plugin.infrastructure.memory.time import settle
from canon_hermes_plugin.ports.canon import RuntimeSignal
from canon_hermes_plugin.ports.canon_stream import StreamEvent
from canon_hermes_plugin.ports.media import FetchedMedia

from .rig import PNG, World

FILE = {"url": "https://x/a"}
QUEUED = {"inboundDisposition": "queued"}


class Stage:
    """The service behind real lanes, with a download that does not end by itself."""

    def __init__(self) -> None:
        self.world = World("images")
        self.world.fetcher.files["https://x/a"] = FetchedMedia(PNG)
        self.world.fetcher.gate.clear()
        self.lanes = Lanes(self.world.service, Claims(), CursorMark())

    def arrives(self, message_id: str, *, conversation: str = "c", **message: Any) -> None:
        body = {"senderType": "human", "senderId": "dana", "text": "hi", "id": message_id, **message}
        self.lanes.offer(StreamEvent("message.created", {"conversationId": conversation, "message": body}))

    async def says(self, message_id: str, **message: Any) -> None:
        self.arrives(message_id, **message)
        await settle()

    async def signal(self, kind: Any, by: str | None = "dana", *, conversation: str = "c") -> None:
        self.world.pending[conversation] = RuntimeSignal(kind, by)
        self.lanes.offer(StreamEvent("runtime.control", {"conversationId": conversation, "kind": "signal"}))
        await settle()

    async def downloaded(self) -> list[str | None]:
        """Let the downloads end; return the messages that reached the host."""
        self.world.fetcher.gate.set()
        await self.lanes.idle()
        return [message.message_id for message in self.world.messages]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    made = Stage()
    yield made
    await made.lanes.close()


@pytest.mark.parametrize("kind", ["interrupt", "stop_and_drop"])
async def test_h29_a_message_whose_attachments_still_arrive_is_not_started_after_a_stop(
    stage: Stage, kind: str
) -> None:
    await stage.says("m", attachments=[FILE], metadata=QUEUED)
    assert list(stage.world.service.preparing()) == ["c"]
    await stage.signal(kind)
    assert list(stage.world.service.preparing()) == [], "the conversation goes on at once, not when the download ends"
    assert stage.world.dropped_ones == [("c", "m", True)]
    assert stage.world.signals == [("c", kind, "dana")], "what runs is stopped as well"
    await stage.says("m", attachments=[FILE])
    assert await stage.downloaded() == [], "it was handled: a redelivery is a duplicate"
    assert stage.world.captures.usage() == (0, 0)


async def test_h29_a_poll_that_finds_the_signal_stops_it_too(stage: Stage) -> None:
    await stage.says("m", attachments=[FILE])
    stage.world.pending["c"] = RuntimeSignal("interrupt", "dana")
    await stage.world.service.consume_signal("c")
    assert await stage.downloaded() == []


@pytest.mark.parametrize(("by", "left"), [("dana", ["m2"]), ("owner", []), (None, []), ("eve", ["m1", "m2"])], ids=str)
async def test_h29_a_stop_reaches_ones_own_message_and_the_owner_stops_all(
    stage: Stage, by: str | None, left: list[str]
) -> None:
    # Two messages of one conversation are prepared side by side only in theory: the second has a lane of its own here.
    await stage.says("m1", attachments=[FILE])
    second = asyncio.create_task(stage.world.message(id="m2", senderId="bob", attachments=[FILE]))
    await settle()
    await stage.signal("interrupt", by)
    stage.world.fetcher.gate.set()
    await second
    assert await stage.downloaded() == left


async def test_a_stop_elsewhere_and_a_new_session_stop_nothing(stage: Stage) -> None:
    await stage.says("m", attachments=[FILE])
    await stage.signal("stop_and_drop", conversation="d")
    await stage.signal("new_session")
    assert await stage.downloaded() == ["m"]


async def test_what_came_after_the_stop_is_not_stopped(stage: Stage) -> None:
    answered, take = asyncio.Event(), stage.world.consume_signal

    async def slow(conversation_id: str) -> RuntimeSignal | None:
        await answered.wait()
        return await take(conversation_id)

    stage.world.service._ports.signals.consume_signal = slow  # type: ignore[method-assign]  # the World is the port
    await stage.says("m1", attachments=[FILE])
    await stage.signal("stop_and_drop")
    stage.world.fetcher.gate.set()
    await settle()
    await stage.says("m2")
    assert stage.world.messages == [], "what was ready meanwhile waits for the signal"
    answered.set()
    await stage.lanes.idle()
    assert [message.message_id for message in stage.world.messages] == ["m2"]
    assert stage.world.captures.usage() == (0, 0), "bytes that had arrived are forgotten"


async def test_stop_and_clear_drops_what_waits_behind_the_download_and_a_plain_stop_does_not(stage: Stage) -> None:
    for kind, conversation in (("stop_and_drop", "c"), ("interrupt", "d")):
        await stage.says("m1" + conversation, conversation=conversation, attachments=[FILE])
        await stage.says("m2" + conversation, conversation=conversation, metadata=QUEUED)
        await stage.says("m3" + conversation, conversation=conversation, senderId="bob")
        await stage.signal(kind, conversation=conversation)
        await stage.says("m4" + conversation, conversation=conversation)
    assert await stage.downloaded() == ["m3c", "m4c", "m2d", "m3d", "m4d"]
    assert stage.world.dropped_ones == [("c", "m1c", False), ("c", "m2c", True), ("d", "m1d", False)]


async def test_what_arrived_at_one_moment_is_dropped_together_and_nothing_of_it_is_remembered(stage: Stage) -> None:
    stage.arrives("m1", attachments=[FILE])
    stage.arrives("m2")
    stage.arrives("m2")
    await stage.signal("stop_and_drop")
    await stage.says("m3", attachments=[FILE])
    stage.arrives("m2")
    stage.arrives("m4", text="/stop", senderId="bob")
    stage.arrives("m5", text="/stop", senderId="bob")
    assert await stage.downloaded() == ["m4", "m5", "m3"]
    preparing = stage.world.service._preparing
    assert (preparing._behind, preparing._dropped, preparing._prepared, preparing._handing) == ({}, set(), {}, {})


async def test_what_wakes_nobody_waits_and_stays_background(stage: Stage) -> None:
    await stage.says("m1", attachments=[FILE])
    await stage.says("m2", senderType="ai_agent", text="by the way")
    await stage.signal("stop_and_drop", None)
    await stage.downloaded()
    assert "by the way" in (stage.world.service.context_for("c") or "")
    assert stage.world.service._preparing.snapshot("c").behind == ()


@pytest.mark.parametrize("text", ["/stop", "/Stop now", "/stop@otto"])
async def test_a_typed_stop_overtakes_the_download_and_the_next_message_does_not_overtake_the_stop(
    stage: Stage, text: str
) -> None:
    await stage.says("m1", attachments=[FILE])
    await stage.says("m2", text=text)
    await stage.says("m3")
    assert [message.message_id for message in stage.world.messages] == ["m2", "m3"]
    assert stage.world.messages[0].kind == "command"
    assert stage.world.dropped_ones == [("c", "m1", False)]


async def test_a_typed_stop_of_somebody_else_and_of_an_agent_leave_the_message(stage: Stage) -> None:
    await stage.says("m1", attachments=[FILE])
    await stage.says("m2", text="/stop", senderId="bob")
    await stage.says("m3", text="/stop", senderType="ai_agent", metadata={"turnSemantics": "turn_complete"})
    await stage.says("m4", text="/stopwatch please")
    assert await stage.downloaded() == ["m2", "m1", "m3", "m4"]


async def test_a_stop_waits_for_the_hand_over_that_is_too_late_to_keep_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, hand_over = asyncio.Event(), stage.world.hand_over

    async def slow(message: Any) -> None:
        await taken.wait()
        await hand_over(message)

    monkeypatch.setattr(stage.world, "hand_over", slow)
    await stage.says("m")
    await stage.signal("interrupt")
    assert stage.world.signals == []
    taken.set()
    await settle()
    assert stage.world.order == ["consume", "hand_over", "signal"]


async def test_a_stopped_preparation_is_no_failure_and_other_time_limits_are(stage: Stage) -> None:
    preparing = stage.world.service._preparing
    with pytest.raises(TimeoutError):
        async with preparing.under_way("c", "dana"):
            raise TimeoutError
    async with preparing.under_way("c", "dana") as preparation:
        preparation.stop()
        preparation.stop()
        await asyncio.Event().wait()
    assert preparation.stopped
    assert list(preparing.conversations()) == []
