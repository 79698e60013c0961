"""Canon's request side: one suite for the HTTP client (against the loopback Canon) and for the in-memory twin."""

from __future__ import annotations

import pytest
from canon_hermes_plugin.infrastructure.canon.client import CanonHttp
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.ports.canon import AgentIdentity, NodeWrite, OutboundMessage, RuntimeSignal, Upload
from canon_hermes_plugin.ports.errors import CanonApiError, CanonError, DeliveryError
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret

CHAT = "conv_direct"
FINAL = {"turnSemantics": "turn_complete", "turnComplete": True, "turnId": "hermes-1"}


class MemoryWorld:
    """The twin and what it stored."""

    def __init__(self):
        self.canon = MemoryCanon(AgentIdentity("agent_1", "user_owner", "Ermes"))
        self.canon.conversations = [{"id": CHAT}, {"id": "conv_group"}]
        self.api = self.canon
        self.agent_id = "agent_1"

    async def close(self):
        await self.api.close()

    def stored(self):
        return [(message.text, message.metadata.get("turnSemantics")) for message in self.canon.messages]

    def notified(self):
        return len(self.canon.notifications)

    def node(self):
        node = self.canon.nodes.get(CHAT)
        return node and (node.text, list(node.blocks))

    def signal(self, signal, user_id):
        self.canon.put_signal(CHAT, RuntimeSignal(signal, user_id))

    def refuse(self, status):
        self.canon.faults.fail_next("send", Fault.definitive(status))

    def break_down(self):
        self.canon.faults.fail_next("send", Fault.ambiguous(500))

    def lose_answer(self):
        self.canon.faults.fail_next("send", Fault.lost_response())

    def queued_message(self):
        return "msg_1"

    def released(self):
        return [message_id for _, message_id in self.canon.released]


class HttpWorld:
    """The real client, and the loopback Canon behind a real socket."""

    def __init__(self):
        self.canon = LoopbackCanon()
        self.canon.start()
        identity, base = self.canon.identity, self.canon.base_url
        self.agent_id = identity.agent_id
        environment = Environment(
            identity.environment_id, identity.project_id, base, base, "http://localhost:9", "web-key"
        )
        connection = Connection(Secret(identity.api_key), environment, "direct", "test")
        self.api = CanonHttp(CanonLink(connection, clock=VirtualClock(instant=True)))

    async def close(self):
        await self.api.close()
        self.canon.stop()

    def stored(self):
        mine = [message for message in self.canon.state.messages if message.sender_id == self.agent_id]
        return [(message.text, message.metadata.get("turnSemantics")) for message in mine]

    def notified(self):
        return len(self.canon.logs.notifications)

    def node(self):
        node = self.canon.state.nodes.get(CHAT)
        return node and (node["text"], node.get("blocks", []))

    def signal(self, signal, user_id):
        self.canon.signal(CHAT, signal, user_id)

    def refuse(self, status):
        self.canon.fault("send", status=status)

    def break_down(self):
        self.canon.fault("send", status=500, times=3)

    def lose_answer(self):
        self.canon.fault("send", kind="drop", after=True, times=3)

    def queued_message(self):
        return self.canon.say(CHAT, "user_dana", "later", metadata={"inboundDisposition": "queued"})

    def released(self):
        return [entry["messageId"] for entry in self.canon.logs.dispositions]


@pytest.fixture(params=[MemoryWorld, HttpWorld], ids=["memory", "http"])
async def world(request):
    world = request.param()
    yield world
    await world.close()


def message(text="hello", message_id="m-1", **more):
    return OutboundMessage(CHAT, text, message_id, metadata={**FINAL, **more})


async def test_the_environment_proves_itself(world):
    await world.api.verify()


async def test_who_we_are_and_where_we_are_members(world):
    assert (await world.api.identify()).agent_id == world.agent_id
    assert {"conv_direct", "conv_group"} <= {item["id"] for item in await world.api.list_conversations()}


async def test_field_1_a_stored_message_names_its_id(world):
    assert (await world.api.send(message())).message_id == "m-1"
    assert (await world.api.send(OutboundMessage(CHAT, "no id"))).message_id


async def test_the_same_message_again_is_stored_once_and_notifies_once(world):
    first = await world.api.send(message())
    second = await world.api.send(message())
    assert first.message_id == second.message_id
    assert world.stored() == [("hello", "turn_complete")]
    assert world.notified() == 1


async def test_the_same_id_with_another_text_is_a_conflict_that_proves_nothing(world):
    await world.api.send(message())
    with pytest.raises(DeliveryError) as failure:
        await world.api.send(message("other"))
    assert (failure.value.certainty, failure.value.status_code) == ("ambiguous", 409)
    assert world.stored() == [("hello", "turn_complete")]


async def test_a_text_beyond_4096_bytes_is_refused_definitively(world):
    await world.api.send(message("é" * 2048))
    with pytest.raises(DeliveryError) as failure:
        await world.api.send(message("é" * 2048 + "x", "m-2"))
    assert failure.value.certainty == "definitive"
    assert len(world.stored()) == 1


async def test_a_refusal_is_definitive_and_stores_nothing(world):
    world.refuse(400)
    with pytest.raises(DeliveryError) as failure:
        await world.api.send(message())
    assert (failure.value.certainty, failure.value.status_code, failure.value.retryable) == ("definitive", 400, False)
    assert world.stored() == []


async def test_a_breakdown_is_ambiguous(world):
    world.break_down()
    with pytest.raises(DeliveryError) as failure:
        await world.api.send(message())
    assert (failure.value.certainty, failure.value.status_code) == ("ambiguous", 500)


async def test_field_6_a_lost_answer_is_ambiguous_and_its_replay_settles_without_a_second_copy(world):
    world.lose_answer()
    with pytest.raises(DeliveryError) as failure:
        await world.api.send(message())
    assert failure.value.certainty == "ambiguous"
    assert (await world.api.send(message())).message_id == "m-1"
    assert world.stored() == [("hello", "turn_complete")]


async def test_node_writes_merge_and_unsent_blocks_stay(world):
    await world.api.write_node(NodeWrite(CHAT, "t1", "one", blocks=[{"id": "b"}]))
    await world.api.write_node(NodeWrite(CHAT, "t1", "one two"))
    assert world.node() == ("one two", [{"id": "b"}])
    await world.api.write_node(NodeWrite(CHAT, "t1", "", "thinking", []))
    assert world.node() == ("", [])


async def test_a_blanked_node_is_cleared_without_a_trace(world):
    await world.api.write_node(NodeWrite(CHAT, "t1", "", "thinking", []))
    await world.api.clear_node(CHAT)
    await world.api.clear_node(CHAT)
    assert world.node() is None
    assert world.stored() == []


async def test_a_full_node_without_a_final_is_salvaged_as_progress(world):
    await world.api.write_node(NodeWrite(CHAT, "t1", "half an answer"))
    await world.api.clear_node(CHAT)
    assert world.stored() == [("half an answer", "progress")]
    assert world.notified() == 0


async def test_a_full_node_with_a_final_is_not_salvaged(world):
    await world.api.write_node(NodeWrite(CHAT, "hermes-1", "hello"))
    await world.api.send(message())
    await world.api.clear_node(CHAT)
    assert world.stored() == [("hello", "turn_complete")]


async def test_a_signal_is_consumed_once(world):
    world.signal("interrupt", "user_dana")
    assert await world.api.consume_signal(CHAT) == RuntimeSignal("interrupt", "user_dana")
    assert await world.api.consume_signal(CHAT) is None


async def test_typing_reading_and_releasing_are_idempotent(world):
    queued = world.queued_message()
    for _ in range(2):
        await world.api.set_typing(CHAT, typing=False)
        await world.api.mark_read(CHAT)
        await world.api.release_message(CHAT, queued)
    assert set(world.released()) == {queued}


async def test_an_upload_gives_an_attachment_that_can_be_sent(world):
    attachment = await world.api.upload(Upload(CHAT, b"\x89PNG\r\n\x1a\n", "image/png", "a.png"))
    assert (attachment["kind"], attachment["mimeType"]) == ("image", "image/png")
    await world.api.send(OutboundMessage(CHAT, "", "m-3", content_type="image", attachments=[attachment]))
    assert world.stored() == [("", None)]


async def test_ten_mebibytes_is_the_limit_of_an_upload(world):
    with pytest.raises(CanonError):
        await world.api.upload(Upload(CHAT, bytes(10_485_761), "image/png"))


async def test_silence_is_acknowledged(world):
    value = await world.api.call_verb("no_reply", envelope={"conversationId": CHAT}, value={"reason": "given"})
    assert value["status"] == "acknowledged"


def approval(identifier="hermes-00112233445566778899", **more):
    return {
        "interactionKind": "approval",
        "conversationId": CHAT,
        "approvalId": identifier,
        "toolName": "File invoice",
        "toolSummary": "File it?",
        "expiresAt": 4_000_000_000_000,
        "category": "command",
        "risk": "high",
        "riskLevel": "destructive",
        "allowSessionRule": False,
        **more,
    }


def key_of(body):
    return {name: body[name] for name in ("interactionKind", "conversationId", "approvalId")}


async def test_an_interaction_echoes_the_effective_responder_and_expiry_and_is_pending(world):
    created = await world.api.create_interaction(approval(responseUserId="user_dana"))
    assert (created["responseUserId"], created["expiresAt"]) == ("user_dana", 4_000_000_000_000)
    assert (await world.api.consume_interaction(key_of(approval())))["status"] == "pending"


async def test_an_interaction_id_can_never_be_used_again(world):
    await world.api.create_interaction(approval())
    with pytest.raises(CanonApiError) as failure:
        await world.api.create_interaction(approval())
    assert failure.value.status_code == 409


async def test_a_cancelled_interaction_is_over_and_an_unknown_one_is_404(world):
    await world.api.create_interaction(approval())
    await world.api.consume_interaction({**key_of(approval()), "cancel": True})
    with pytest.raises(CanonApiError) as failure:
        await world.api.consume_interaction(key_of(approval("hermes-unknown")))
    assert failure.value.status_code == 404


async def test_closing_twice_is_harmless(world):
    await world.api.close()
    await world.api.close()
