"""From a stream event to a hand-over (turns §1.1, §1.2, §13 invariants 5, 6, 9, 10, 49 to 51; H18 to H21)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from canon_hermes_plugin.domain.inbound.service import InboundService
from canon_hermes_plugin.ports.canon import AgentIdentity, RuntimeSignal
from canon_hermes_plugin.ports.canon_stream import StreamEvent
from canon_hermes_plugin.ports.errors import CanonTransportError
from canon_hermes_plugin.ports.media import FetchedMedia
from hypothesis import given
from hypothesis import strategies as st

from .rig import PNG, World


async def test_a_direct_message_is_handed_over_as_it_is() -> None:
    world = World()
    await world.message(
        id="m1",
        senderName="Dana\nX",
        replyTo="m0",
        metadata={"deliveryIntent": "interrupt", "inboundDisposition": "queued"},
        payload={"conversation": {"id": "c", "name": "Ops", "type": "direct"}},
    )
    (message,) = world.messages
    assert (message.conversation_id, message.text, message.chat_kind, message.chat_name) == ("c", "hi", "direct", "Ops")
    assert (message.user_id, message.user_name, message.message_id, message.reply_to) == ("u1", "Dana X", "m1", "m0")
    assert (message.kind, message.intent, message.queued, message.channel_prompt) == ("text", "interrupt", True, None)
    assert message.raw["message"]["id"] == "m1"


async def test_h19_the_first_message_of_a_group_is_a_group_message() -> None:
    world = World()
    await world.message(id="m", payload={"provenance": {"conversation": {"type": "group"}, "mentionedAgent": True}})
    assert world.messages[0].chat_kind == "group"
    assert "names you (Otto)" in (world.messages[0].channel_prompt or "")
    assert world.service.kind("c") == "group"


async def test_an_agent_is_no_user() -> None:
    world = World()
    await world.message(id="m", senderType="ai_agent", metadata={"turnSemantics": "turn_complete"})
    assert world.messages[0].user_id is None


async def test_a_stop_takes_effect_before_the_message_that_was_sent_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world, answered = World(), asyncio.Event()
    world.pending["c"] = RuntimeSignal("interrupt", "u1")
    take = world.consume_signal

    async def slow(conversation_id: str) -> RuntimeSignal | None:
        await answered.wait()
        return await take(conversation_id)

    monkeypatch.setattr(world, "consume_signal", slow)
    control = asyncio.create_task(world.say("runtime.control", {"conversationId": "c", "kind": "signal"}))
    await asyncio.sleep(0)
    message = asyncio.create_task(world.message(id="m"))
    await world.message("elsewhere", id="other")
    assert [item.message_id for item in world.messages] == ["other"]
    answered.set()
    await asyncio.gather(control, message)
    assert world.signals == [("c", "interrupt", "u1")]
    assert world.order[-3:] == ["consume", "signal", "hand_over"]


async def test_a_signal_that_hangs_holds_messages_back_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    monkeypatch.setattr("canon_hermes_plugin.domain.inbound.service.SIGNAL_WAIT", 0.01)
    monkeypatch.setattr(world, "consume_signal", lambda _: asyncio.Event().wait())
    control = asyncio.create_task(world.say("runtime.control", {"conversationId": "c", "kind": "signal"}))
    await asyncio.sleep(0)
    await world.message(id="m")
    assert len(world.messages) == 1
    control.cancel()
    await asyncio.gather(control, return_exceptions=True)
    assert not world.service._signals.gate._pending


async def test_commands_are_commands() -> None:
    world = World()
    await world.message(id="m", text=" /status")
    assert world.messages[0].kind == "command"


async def test_field_65_a_repeated_id_is_handed_over_once() -> None:
    world = World()
    for _ in range(3):
        await world.message(id="m")
    await world.message()
    await world.message()
    assert [message.message_id for message in world.messages] == ["m", None, None]


async def test_field_63_a_failed_hand_over_is_no_duplicate_when_it_comes_again() -> None:
    world = World()
    world.failures = [RuntimeError("host is away")]
    with pytest.raises(RuntimeError):
        await world.message(id="m")
    await world.message(id="m")
    await world.message(id="m")
    assert len(world.messages) == 1


async def test_an_id_is_remembered_for_1024_others() -> None:
    world = World()
    for number in [*range(1024), 0]:
        await world.message(id=f"m{number}")
    assert len(world.messages) == 1024
    await world.message(id="m1024")
    await world.message(id="m1")
    await world.message(id="m0")
    assert [message.message_id for message in world.messages[1024:]] == ["m1024", "m0"]


async def test_h18_a_message_without_conversation_may_come_again_with_one() -> None:
    world = World()
    await world.message(conversation=None, id="m")
    await world.message(id="m")
    assert len(world.messages) == 1


@given(st.lists(st.integers(0, 40), max_size=80))
async def test_at_most_one_hand_over_per_id(ids: list[int]) -> None:
    world = World()
    for number in ids:
        await world.message(id=f"m{number}")
    assert [message.message_id for message in world.messages] == [f"m{n}" for n in dict.fromkeys(ids)]


async def test_own_and_control_messages_leave_no_trace() -> None:
    world = World()
    await world.message(id="m1", senderId="me")
    for kind in ("approval_reply", "approval_outcome", "runtime_input_reply", "runtime_input_outcome"):
        await world.message(id=f"x{kind}", senderType="ai_agent", metadata={"type": kind})
    assert world.messages == []
    assert world.service.context_for("c") is None


async def test_receipts_go_to_the_approvals_every_time_and_never_to_chat() -> None:
    world = World()
    for _ in range(2):
        await world.message(id="r", metadata={"type": "approval_reply", "approvalId": "a1"})
    assert len(world.receipts.offered) == 2
    assert world.messages == []


async def test_suppressed_messages_become_background_without_a_download() -> None:
    world = World()
    await world.message(
        id="m1", senderType="ai_agent", senderName="Otto2", attachments=[{"url": "https://x/a"}], text="one"
    )
    await world.message(conversation="d", id="m2", senderType="ai_agent", text="elsewhere")
    assert world.messages == []
    assert world.fetcher.fetched == []
    await world.message(id="m3", text="go")
    block = world.service.context_for("c") or ""
    assert block.endswith("[Otto2 [agent]] one")
    assert world.service.context_for("c") is None
    assert "elsewhere" in (world.service.context_for("d") or "")


async def test_h20_a_hand_over_alone_takes_no_background() -> None:
    world = World()
    await world.message(id="m1", senderType="ai_agent", text="one")
    await world.message(id="m2", text="/status")
    assert world.service.context_for("c") is not None


async def test_suppressed_messages_still_teach_the_room() -> None:
    world = World()
    await world.message(id="m1", senderType="ai_agent", payload={"conversation": {"type": "group"}})
    assert world.service.kind("c") == "group"


async def test_replay_expired_adopts_the_cursor_before_the_list_is_read() -> None:
    world = World()
    world.listed = [{"id": "g", "type": "group"}]
    await world.say("replay.expired", {"lastAvailableId": "evt_9"})
    assert world.order == ["cursor", "list"]
    assert world.cursors == ["evt_9"]
    assert world.service.kind("g") == "group"


@pytest.mark.parametrize("data", [{}, "text", None, {"lastAvailableId": ["x"]}])
async def test_replay_expired_without_an_id_clears_the_cursor_and_survives_a_failing_list(data: object) -> None:
    world = World()
    world.list_failure = CanonTransportError("away", executed=True)
    await world.say("replay.expired", data)
    assert world.cursors == [None]


async def test_updates_merge_and_context_names_us() -> None:
    world = World()
    await world.say("conversation.updated", {"id": "c", "changes": {"type": "group", "name": "Room"}})
    assert world.service.kind("c") == "group"
    await world.say("agent.context", {"userId": "u", "id": "agent2"})
    assert world.service.agent_id == "agent2"
    await world.message(id="m", senderId="agent2")
    assert world.messages == []


async def test_a_signal_is_consumed_and_its_carried_value_ignored() -> None:
    world = World()
    world.pending["c"] = RuntimeSignal("stop_and_drop", "u1")
    await world.say("runtime.control", {"conversationId": "c", "kind": "signal", "value": {"type": "interrupt"}})
    await world.say("runtime.control", {"conversationId": "c", "kind": "signal"})
    await world.say("runtime.control", {"conversationId": "c", "kind": "other"})
    await world.say("runtime.control", {"kind": "signal"})
    assert world.signals == [("c", "stop_and_drop", "u1")]
    assert world.order == ["consume", "signal", "consume"]


def test_h21_control_has_a_lane_that_no_download_blocks() -> None:
    lane = World().service.lane
    message = lane(StreamEvent("message.created", {"conversationId": "c"}))
    assert message == lane(StreamEvent("conversation.updated", {"id": "c"})) == "c"
    assert lane(StreamEvent("runtime.control", {"conversationId": "c"})) not in {message, None}
    for data in (None, "x", [], {}, {"conversationId": ["c"]}):
        assert lane(StreamEvent("message.created", data)) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "c", "x", "signal", "human", "image"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "id",
    "senderId",
    "senderName",
    "senderType",
    "text",
    "contentType",
    "attachments",
    "mentions",
    "metadata",
    "replyTo",
]


@given(
    st.sampled_from(["message.created", "conversation.updated", "agent.context", "runtime.control", "error", "typing"]),
    st.dictionaries(st.sampled_from(FIELDS), json_values),
    json_values,
)
async def test_h16_no_event_makes_the_service_raise(name: str, message: dict[str, Any], body: Any) -> None:
    world = World("visual")
    event = StreamEvent(
        name, body if isinstance(body, dict) else {"conversationId": "c", "message": message, "x": body}
    )
    world.service.lane(event)
    await world.service.handle(event)
    await world.say(name, body)


async def test_field_84_the_bytes_win_over_the_declared_type() -> None:
    world = World()
    world.fetcher.files["https://x/a.webp"] = FetchedMedia(PNG, "image/webp")
    await world.message(
        id="m", text="", attachments=[{"url": "https://x/a.webp", "mimeType": "image/webp", "fileName": "a.webp"}]
    )
    (message,) = world.messages
    assert (message.kind, message.media[0].mime_type) == ("photo", "image/png")
    assert message.media[0].path.endswith("/a.png")
    assert message.text == "[file attachment: a.webp]"


async def test_hidden_images_reach_trusted_tools_only_and_a_steer_becomes_a_queue() -> None:
    world = World("images")
    world.fetcher.files["https://x/a"] = FetchedMedia(PNG)
    await world.message(
        id="m", text="look", attachments=[{"url": "https://x/a"}], metadata={"deliveryIntent": "interleave"}
    )
    (message,) = world.messages
    assert message.media == ()
    assert message.kind == "text"
    assert message.intent == "queue"
    assert message.text.startswith("look\n\n[1 image attachment is available to trusted Canon tools")
    assert [item.data for item in world.captures.read("c", "m")] == [PNG]


async def test_media_of_a_direct_message_keeps_its_intent_when_nothing_is_hidden() -> None:
    world = World()
    world.fetcher.files["https://x/a"] = FetchedMedia(PNG)
    await world.message(id="m", attachments=[{"url": "https://x/a"}], metadata={"deliveryIntent": "interleave"})
    assert world.messages[0].intent == "interleave"


async def test_h13_nothing_handed_over_holds_a_lone_surrogate() -> None:
    world = World()
    await world.message(id="m1", senderType="ai_agent", senderName="O\ud83d", text="bad \ud83d")
    await world.message(
        id="m2",
        text="bad \ud83d",
        senderName="D\udc00",
        replyTo="r\ud83d",
        payload={"conversation": {"name": "n\ud800"}},
    )
    await world.message(conversation="c\ud83d", id="m3")
    (message,) = world.messages
    shown = [message.text, message.user_name, message.chat_name, message.reply_to, world.service.context_for("c")]
    assert "\x00".join(str(text) for text in shown).encode()
    assert message.text == "bad \ufffd"
    assert message.reply_to is None


def test_what_can_wait_is_left_alone_by_handle_now() -> None:
    world = World()
    human = {"id": "m", "senderType": "human", "text": "hi"}
    receipt = {"id": "r", "metadata": {"type": "approval_reply", "approvalId": "a"}}
    for message in (human, receipt):
        data = {"conversationId": "c", "message": message, "conversation": {"type": "group"}}
        assert not world.service.handle_now(StreamEvent("message.created", data))
    assert not world.service.handle_now(StreamEvent("runtime.control", {}))
    assert world.service.kind("c") == "unknown"
    agent = {**human, "senderType": "ai_agent"}
    assert world.service.handle_now(StreamEvent("message.created", {"conversationId": "c", "message": agent}))
    assert world.service.handle_now(StreamEvent("typing", None))
    assert world.service.context_for("c") is not None


async def test_a_text_file_stands_before_the_words_and_a_command_stays_one() -> None:
    world = World()
    world.fetcher.files["https://x/n.txt"] = FetchedMedia(b"line", "text/plain")
    await world.message(id="m1", text="read", attachments=[{"url": "https://x/n.txt"}])
    await world.message(id="m2", text="/go", attachments=[{"url": "https://x/n.txt"}])
    read, command = world.messages
    assert command.text == "/go"
    assert read.text == "[Content of n.txt]:\nline\n\nread"
    assert read.kind == "document"
    assert command.kind == "command"


@pytest.mark.parametrize("text", ["/approve", " /new", "\n/stop"])
async def test_an_agent_gives_no_commands(text: str) -> None:
    world = World()
    await world.message(id="m", senderType="ai_agent", text=text, metadata={"turnSemantics": "turn_complete"})
    (message,) = world.messages
    assert message.kind == "text"
    assert message.text == f"[agent message] {text}"


class Noting:
    """Writes down what the next process would be told, in order with everything else."""

    def __init__(self, world: World) -> None:
        self._world = world

    def taking(self, message_id: str) -> None:
        self._world.order.append(f"taking {message_id}")

    def changed(self) -> None:
        claims = self._world.service._state.claims
        self._world.order.append(f"changed, done: {list(claims.recent)}")


async def test_a_message_is_noted_before_it_is_handed_over_and_when_that_is_done() -> None:
    world = World()
    world.service = InboundService(replace(world.service._ports, notes=Noting(world)))
    world.service.adopt_identity(AgentIdentity("me", "owner", "Otto"))
    await world.message(id="m1")
    assert world.order == ["taking m1", "hand_over", "changed, done: ['m1']"]


async def test_a_message_whose_hand_over_fails_is_not_noted_as_done() -> None:
    world = World()
    world.service = InboundService(replace(world.service._ports, notes=Noting(world)))
    world.failures = [CanonTransportError("away", executed=False)]
    with pytest.raises(CanonTransportError):
        await world.message(id="m1")
    assert world.order == ["taking m1", "hand_over"]
    await world.message(id="m1")
    assert world.order[2:] == ["taking m1", "hand_over", "changed, done: ['m1']"]


async def test_a_busy_room_does_not_push_out_what_the_next_process_must_know() -> None:
    world = World()
    await world.message(id="m1")
    for number in range(2000):
        await world.message(id=f"b{number}", metadata={"replyBehavior": "suppress_auto_reply"})
    assert world.service._state.claims.recent == ("m1",)
    await world.message(id="m1")
    await world.message(id="b1999")
    assert len(world.messages) == 1
