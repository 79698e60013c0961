"""Canon's request side: what every :class:`canon_hermes_plugin.ports.canon.CanonApi` promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pytest
from canon_hermes_plugin.ports.canon import (
    CanonApi,
    NodeWrite,
    OutboundMessage,
    RuntimeSignal,
    SignalKind,
    Upload,
)
from canon_hermes_plugin.ports.errors import CanonApiError, CanonError, DeliveryError
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop

CHAT = "conv_direct"
"""The direct conversation with ``user_dana`` that a driver's Canon has; ``conv_group`` is the other one."""
FINAL = {"turnSemantics": "turn_complete", "turnComplete": True, "turnId": "hermes-1"}


class CanonApiDriver(Driver, Protocol):
    """The subject and the Canon behind it.

    Attributes:
        api: the subject.
        agent_id: who its key belongs to.
    """

    api: CanonApi
    agent_id: str

    def stored(self) -> Sequence[tuple[str, Any]]:
        """Return text and ``turnSemantics`` of each of the agent's durable messages."""
        ...

    def notified(self) -> int:
        """Return how many messages notified somebody."""
        ...

    def node(self) -> tuple[str, Sequence[Any]] | None:
        """Return text and blocks of the ephemeral node."""
        ...

    def signal(self, signal: SignalKind, user_id: str) -> None:
        """Leave a runtime signal."""
        ...

    def refuse(self, status: int) -> None:
        """Let the next send be refused with ``status``."""
        ...

    def break_down(self) -> None:
        """Let every attempt of the next send fail with 500 and without effect."""
        ...

    def lose_answer(self) -> None:
        """Let the next send take effect and its answers get lost."""
        ...

    def queued_message(self) -> str:
        """Put a person's message on the queued shelf; return its id."""
        ...

    def released(self) -> Sequence[str]:
        """Return the ids of released messages."""
        ...


def message(text: str = "hello", message_id: str = "m-1") -> OutboundMessage:
    """Return a final message."""
    return OutboundMessage(CHAT, text, message_id, metadata=FINAL)


def approval(identifier: str = "hermes-00112233445566778899", **more: object) -> dict[str, Any]:
    """Return the body of an approval request."""
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


def key_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a request's body that names it."""
    return {name: body[name] for name in ("interactionKind", "conversationId", "approvalId")}


class CanonApiContract(Contract[CanonApiDriver]):
    """The suite."""

    @on_a_loop
    async def test_the_environment_proves_itself(self, world: CanonApiDriver) -> None:
        await world.api.verify()

    @on_a_loop
    async def test_who_we_are_and_where_we_are_members(self, world: CanonApiDriver) -> None:
        assert (await world.api.identify()).agent_id == world.agent_id
        assert {"conv_direct", "conv_group"} <= {item["id"] for item in await world.api.list_conversations()}

    @on_a_loop
    async def test_field_1_a_stored_message_names_its_id(self, world: CanonApiDriver) -> None:
        assert (await world.api.send(message())).message_id == "m-1"
        assert (await world.api.send(OutboundMessage(CHAT, "no id"))).message_id

    @on_a_loop
    async def test_the_same_message_again_is_stored_once_and_notifies_once(self, world: CanonApiDriver) -> None:
        first = await world.api.send(message())
        second = await world.api.send(message())
        assert first.message_id == second.message_id
        assert world.stored() == [("hello", "turn_complete")]
        assert world.notified() == 1

    @on_a_loop
    async def test_the_same_id_with_another_text_is_a_conflict_that_proves_nothing(self, world: CanonApiDriver) -> None:
        await world.api.send(message())
        with pytest.raises(DeliveryError) as failure:
            await world.api.send(message("other"))
        assert (failure.value.certainty, failure.value.status_code) == ("ambiguous", 409)
        assert world.stored() == [("hello", "turn_complete")]

    @on_a_loop
    async def test_a_text_beyond_4096_bytes_is_refused_definitively(self, world: CanonApiDriver) -> None:
        await world.api.send(message("é" * 2048))
        with pytest.raises(DeliveryError) as failure:
            await world.api.send(message("é" * 2048 + "x", "m-2"))
        assert failure.value.certainty == "definitive"
        assert len(world.stored()) == 1

    @on_a_loop
    async def test_a_refusal_is_definitive_and_stores_nothing(self, world: CanonApiDriver) -> None:
        world.refuse(400)
        with pytest.raises(DeliveryError) as failure:
            await world.api.send(message())
        assert (failure.value.certainty, failure.value.status_code, failure.value.retryable) == (
            "definitive",
            400,
            False,
        )
        assert world.stored() == []

    @on_a_loop
    async def test_a_breakdown_is_ambiguous(self, world: CanonApiDriver) -> None:
        world.break_down()
        with pytest.raises(DeliveryError) as failure:
            await world.api.send(message())
        assert (failure.value.certainty, failure.value.status_code) == ("ambiguous", 500)

    @on_a_loop
    async def test_field_6_a_lost_answer_is_ambiguous_and_its_replay_settles_without_a_second_copy(
        self, world: CanonApiDriver
    ) -> None:
        world.lose_answer()
        with pytest.raises(DeliveryError) as failure:
            await world.api.send(message())
        assert failure.value.certainty == "ambiguous"
        assert (await world.api.send(message())).message_id == "m-1"
        assert world.stored() == [("hello", "turn_complete")]

    @on_a_loop
    async def test_node_writes_merge_and_unsent_blocks_stay(self, world: CanonApiDriver) -> None:
        await world.api.write_node(NodeWrite(CHAT, "t1", "one", blocks=[{"id": "b"}]))
        await world.api.write_node(NodeWrite(CHAT, "t1", "one two"))
        assert world.node() == ("one two", [{"id": "b"}])
        await world.api.write_node(NodeWrite(CHAT, "t1", "", "thinking", []))
        assert world.node() == ("", [])

    @on_a_loop
    async def test_a_blanked_node_is_cleared_without_a_trace(self, world: CanonApiDriver) -> None:
        await world.api.write_node(NodeWrite(CHAT, "t1", "", "thinking", []))
        await world.api.clear_node(CHAT)
        await world.api.clear_node(CHAT)
        assert world.node() is None
        assert world.stored() == []

    @on_a_loop
    async def test_a_full_node_without_a_final_is_salvaged_as_progress(self, world: CanonApiDriver) -> None:
        await world.api.write_node(NodeWrite(CHAT, "t1", "half an answer"))
        await world.api.clear_node(CHAT)
        assert world.stored() == [("half an answer", "progress")]
        assert world.notified() == 0

    @on_a_loop
    async def test_a_full_node_with_a_final_is_not_salvaged(self, world: CanonApiDriver) -> None:
        await world.api.write_node(NodeWrite(CHAT, "hermes-1", "hello"))
        await world.api.send(message())
        await world.api.clear_node(CHAT)
        assert world.stored() == [("hello", "turn_complete")]

    @on_a_loop
    async def test_a_signal_is_consumed_once(self, world: CanonApiDriver) -> None:
        world.signal("interrupt", "user_dana")
        assert await world.api.consume_signal(CHAT) == RuntimeSignal("interrupt", "user_dana")
        assert await world.api.consume_signal(CHAT) is None

    @on_a_loop
    async def test_typing_reading_and_releasing_are_idempotent(self, world: CanonApiDriver) -> None:
        queued = world.queued_message()
        for _ in range(2):
            await world.api.set_typing(CHAT, typing=False)
            await world.api.mark_read(CHAT)
            await world.api.release_message(CHAT, queued)
        assert set(world.released()) == {queued}

    @on_a_loop
    async def test_an_upload_gives_an_attachment_that_can_be_sent(self, world: CanonApiDriver) -> None:
        attachment = await world.api.upload(Upload(CHAT, b"\x89PNG\r\n\x1a\n", "image/png", "a.png"))
        assert (attachment["kind"], attachment["mimeType"]) == ("image", "image/png")
        await world.api.send(OutboundMessage(CHAT, "", "m-3", content_type="image", attachments=[attachment]))
        assert world.stored() == [("", None)]

    @on_a_loop
    async def test_ten_mebibytes_is_the_limit_of_an_upload(self, world: CanonApiDriver) -> None:
        with pytest.raises(CanonError):
            await world.api.upload(Upload(CHAT, bytes(10_485_761), "image/png"))

    @on_a_loop
    async def test_silence_is_acknowledged(self, world: CanonApiDriver) -> None:
        value = await world.api.call_verb("no_reply", envelope={"conversationId": CHAT}, value={"reason": "given"})
        assert value["status"] == "acknowledged"

    @on_a_loop
    async def test_an_interaction_echoes_the_effective_responder_and_expiry_and_is_pending(
        self, world: CanonApiDriver
    ) -> None:
        created = await world.api.create_interaction(approval(responseUserId="user_dana"))
        assert (created["responseUserId"], created["expiresAt"]) == ("user_dana", 4_000_000_000_000)
        assert (await world.api.consume_interaction(key_of(approval())))["status"] == "pending"

    @on_a_loop
    async def test_an_interaction_id_can_never_be_used_again(self, world: CanonApiDriver) -> None:
        await world.api.create_interaction(approval())
        with pytest.raises(CanonApiError) as failure:
            await world.api.create_interaction(approval())
        assert failure.value.status_code == 409

    @on_a_loop
    async def test_a_cancelled_interaction_is_over_and_an_unknown_one_is_404(self, world: CanonApiDriver) -> None:
        await world.api.create_interaction(approval())
        await world.api.consume_interaction({**key_of(approval()), "cancel": True})
        with pytest.raises(CanonApiError) as failure:
            await world.api.consume_interaction(key_of(approval("hermes-unknown")))
        assert failure.value.status_code == 404

    @on_a_loop
    async def test_closing_twice_is_harmless(self, world: CanonApiDriver) -> None:
        await world.api.close()
        await world.api.close()
