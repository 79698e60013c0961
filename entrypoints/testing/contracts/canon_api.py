"""Canon's request side: what every :class:`canon_hermes_plugin.ports.canon.CanonApi` promises."""

from __future__ import annotations

import pytest
from canon_hermes_plugin.ports.canon import (
    NodeWrite,
    OutboundMessage,
    RuntimeSignal,
    SignalKind,
    TurnPublication,
    Upload,
)
from canon_hermes_plugin.ports.errors import (
    AuthenticationError,
    CanonApiError,
    CanonError,
    DeliveryError,
    EnvironmentIdentityError,
    EnvironmentUnreachableError,
    MalformedResponseError,
)
from canon_hermes_plugin.testing.contracts.base import Contract, on_a_loop
from canon_hermes_plugin.testing.contracts.canon_api_driver import (
    CHAT,
    FINAL,
    CanonApiDriver,
    approval,
    key_of,
    message,
)


class CanonApiContract(Contract[CanonApiDriver]):
    """The suite."""

    @on_a_loop
    async def test_the_environment_proves_itself(self, world: CanonApiDriver) -> None:
        await world.api.verify()

    @on_a_loop
    async def test_another_environment_is_a_permanent_failure(self, world: CanonApiDriver) -> None:
        world.impersonate()
        with pytest.raises(EnvironmentIdentityError) as failure:
            await world.api.verify()
        assert not failure.value.retryable

    @pytest.mark.parametrize("status", [None, 502])
    @on_a_loop
    async def test_an_environment_nobody_proves_is_a_matter_of_time(
        self, world: CanonApiDriver, status: int | None
    ) -> None:
        world.vanish(status)
        with pytest.raises(EnvironmentUnreachableError) as failure:
            await world.api.verify()
        assert failure.value.retryable

    @pytest.mark.parametrize("status", [401, 403])
    @on_a_loop
    async def test_a_refused_key_is_a_permanent_failure(self, world: CanonApiDriver, status: int) -> None:
        world.revoke(status)
        with pytest.raises(AuthenticationError) as failure:
            await world.api.identify()
        assert (failure.value.status_code, failure.value.retryable) == (status, False)

    @on_a_loop
    async def test_conversations_without_an_id_are_left_out(self, world: CanonApiDriver) -> None:
        before = [item["id"] for item in await world.api.list_conversations()]
        world.list_nameless()
        assert [item["id"] for item in await world.api.list_conversations()] == before

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

    @pytest.mark.parametrize(
        "wrong",
        [
            OutboundMessage(" ", "hello", "m-1"),
            OutboundMessage(CHAT, "", "m-1"),
            OutboundMessage(CHAT, "hello", "m" * 161),
            OutboundMessage(CHAT, "hello", "m-\u00e9"),
            OutboundMessage(CHAT, "hello", "m-1", metadata={"note": "x" * 4096}),
            OutboundMessage(CHAT, "hello", "m-1", metadata={"note": object()}),
            OutboundMessage(CHAT, "lone \ud800", "m-1"),
        ],
        ids=["no conversation", "no text", "long id", "id", "long metadata", "metadata", "text"],
    )
    @on_a_loop
    async def test_what_canon_would_refuse_is_refused_definitively(
        self, world: CanonApiDriver, wrong: OutboundMessage
    ) -> None:
        with pytest.raises(DeliveryError) as failure:
            await world.api.send(wrong)
        assert (failure.value.certainty, failure.value.retryable) == ("definitive", False)
        assert world.stored() == []

    @on_a_loop
    async def test_the_bounds_of_a_message_are_exact(self, world: CanonApiDriver) -> None:
        await world.api.send(OutboundMessage(CHAT, "x" * 4096, "m" * 160, metadata={"n": "x" * (4096 - 8)}))
        assert len(world.stored()) == 1

    @on_a_loop
    async def test_a_message_without_an_id_is_never_repeated_blindly(self, world: CanonApiDriver) -> None:
        world.lose_answer()
        with pytest.raises(DeliveryError) as failure:
            await world.api.send(OutboundMessage(CHAT, "hello", metadata=FINAL))
        assert failure.value.certainty == "ambiguous"
        assert world.stored() == [("hello", "turn_complete")]

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

    @pytest.mark.parametrize("kind", ["interrupt", "stop_and_drop", "new_session"])
    @on_a_loop
    async def test_a_signal_is_consumed_once(self, world: CanonApiDriver, kind: SignalKind) -> None:
        world.signal(kind, "user_dana")
        assert await world.api.consume_signal("conv_group") is None
        assert await world.api.consume_signal(CHAT) == RuntimeSignal(kind, "user_dana")
        assert await world.api.consume_signal(CHAT) is None

    @on_a_loop
    async def test_a_turns_state_is_published_with_what_waits_behind_it(self, world: CanonApiDriver) -> None:
        working = TurnPublication(CHAT, "streaming", 2, 1_900_000_000_000, {"interrupt": True}, "hermes-1", ("msg_1",))
        await world.api.publish_turn(working)
        await world.api.publish_turn(TurnPublication(CHAT, "completed", 0, 1_900_000_000_001, {}))
        assert [(seen["state"], seen["queueDepth"]) for seen in world.published()] == [
            ("streaming", 2),
            ("completed", 0),
        ]
        first, last = world.published()
        assert (first["turnId"], list(first["activeMessageIds"])) == ("hermes-1", ["msg_1"])
        assert (last.get("turnId"), list(last.get("activeMessageIds") or ())) == (None, [])

    @on_a_loop
    async def test_the_runtime_is_described_whole(self, world: CanonApiDriver) -> None:
        descriptor = {"name": "hermes", "commands": [{"name": "/new"}], "deep": {"a": [1, None, "\u2603"]}}
        await world.api.publish_status(descriptor)
        assert [dict(seen) for seen in world.descriptors()] == [descriptor]

    @on_a_loop
    async def test_the_indicator_shows_a_status_only_while_it_is_shown(self, world: CanonApiDriver) -> None:
        assert world.indicator() is None
        await world.api.set_typing(CHAT, typing=True)
        assert world.indicator() == {"typing": True, "status": "thinking"}
        await world.api.set_typing(CHAT, typing=True, status="typing")
        assert world.indicator() == {"typing": True, "status": "typing"}
        await world.api.set_typing(CHAT, typing=False, status="typing")
        assert world.indicator() == {"typing": False}

    @on_a_loop
    async def test_typing_reading_and_releasing_are_idempotent(self, world: CanonApiDriver) -> None:
        queued = world.queued_message()
        for _ in range(2):
            await world.api.set_typing(CHAT, typing=False)
            await world.api.mark_read(CHAT)
            await world.api.release_message(CHAT, queued)
        assert set(world.released()) == {queued}
        assert set(world.read()) == {CHAT}

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
        assert (await world.api.upload(Upload(CHAT, bytes(10_485_760), "image/png")))["url"]

    @on_a_loop
    async def test_silence_is_acknowledged(self, world: CanonApiDriver) -> None:
        value = await world.api.call_verb("no_reply", envelope={"conversationId": CHAT}, value={"reason": "given"})
        assert value["status"] == "acknowledged"
        assert [(verb, dict(sent), dict(given)) for verb, sent, given in world.verbs()] == [
            ("no_reply", {"conversationId": CHAT}, {"reason": "given"})
        ]

    @on_a_loop
    async def test_a_verb_is_called_once_and_never_repeated(self, world: CanonApiDriver) -> None:
        world.break_verb()
        with pytest.raises(CanonApiError) as failure:
            await world.api.call_verb("no_reply", envelope={"conversationId": CHAT}, value={})
        assert failure.value.status_code == 500
        assert list(world.verbs()) == []
        await world.api.call_verb("no_reply", envelope={"conversationId": CHAT}, value={})
        assert len(world.verbs()) == 1

    @on_a_loop
    async def test_an_answer_to_something_else_is_malformed(self, world: CanonApiDriver) -> None:
        world.garble_verb()
        with pytest.raises(MalformedResponseError):
            await world.api.call_verb("no_reply", envelope={"conversationId": CHAT}, value={})

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

    @pytest.mark.parametrize("status", ["allow", "deny"])
    @on_a_loop
    async def test_a_decision_names_who_took_it(self, world: CanonApiDriver, status: str) -> None:
        await world.api.create_interaction(approval(responseUserId="user_dana"))
        world.answer("hermes-00112233445566778899", status)
        told = await world.api.consume_interaction(key_of(approval()))
        assert (told["status"], told["respondedBy"]) == (status, "user_dana")

    @on_a_loop
    async def test_a_cancelled_question_is_over(self, world: CanonApiDriver) -> None:
        question = {"interactionKind": "input", "conversationId": CHAT, "inputId": "cl_1"}
        created = {
            **question,
            "kind": "clarify",
            "title": "Question",
            "prompt": "Which?",
            "expiresAt": 4_000_000_000_000,
        }
        await world.api.create_interaction(created)
        await world.api.consume_interaction({**question, "cancel": True})
        with pytest.raises(CanonApiError) as failure:
            await world.api.consume_interaction(question)
        assert failure.value.status_code == 404

    @on_a_loop
    async def test_a_cancelled_interaction_is_over_and_an_unknown_one_is_404(self, world: CanonApiDriver) -> None:
        await world.api.create_interaction(approval())
        ended = await world.api.consume_interaction({**key_of(approval()), "cancel": True})
        assert ended["status"] != "pending"
        for gone in (approval(), approval("hermes-unknown")):
            with pytest.raises(CanonApiError) as failure:
                await world.api.consume_interaction(key_of(gone))
            assert failure.value.status_code == 404

    @on_a_loop
    async def test_closing_twice_is_harmless(self, world: CanonApiDriver) -> None:
        await world.api.close()
        await world.api.close()
