"""The bodies and answers of every call (canon-wire §1), and what a failure tells."""

from __future__ import annotations

import base64
import json
import logging
import traceback

import httpx
import pytest
from canon_hermes_plugin.infrastructure.canon.client import short_lived
from canon_hermes_plugin.ports.canon import NodeWrite, OutboundMessage, RuntimeSignal, TurnPublication, Upload
from canon_hermes_plugin.ports.errors import (
    AuthenticationError,
    CanonApiError,
    CanonError,
    CanonTransportError,
    CredentialsError,
    DeliveryError,
    MalformedResponseError,
)

MESSAGE = OutboundMessage(
    "conv_a1",
    "Done ✓",
    "hermes-final-1",
    "msg_104",
    {"turnSemantics": "turn_complete", "turnComplete": True, "turnId": "hermes-1"},
)


async def test_a_durable_message_goes_out_with_its_id_reply_target_and_metadata(canon, key):
    client, script = canon((201, {"messageId": "hermes-final-1", "extra": 1}))
    stored = await client.send(MESSAGE)
    assert (stored.message_id, stored.raw["extra"]) == ("hermes-final-1", 1)
    (request,) = script.requests
    assert (request.method, str(request.url)) == ("POST", "https://api.canon.example/v1/messages/send")
    assert request.headers["authorization"] == f"Bearer {key}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept"] == "*/*"
    assert script.bodies() == [
        {
            "conversationId": "conv_a1",
            "text": "Done ✓",
            "messageId": "hermes-final-1",
            "replyTo": "msg_104",
            "metadata": {"turnSemantics": "turn_complete", "turnComplete": True, "turnId": "hermes-1"},
        }
    ]


async def test_absent_fields_of_a_message_are_not_sent_and_inline_data_never_is(canon):
    client, script = canon((200, {"id": "m1"}))
    await client.send(OutboundMessage("c", "x"))
    await client.send(
        OutboundMessage("c", "", content_type="image", attachments=[{"kind": "image", "url": "u", "data": "AAAA"}])
    )
    plain, picture = script.bodies()
    assert plain == {"conversationId": "c", "text": "x"}
    assert picture == {
        "conversationId": "c",
        "text": "",
        "contentType": "image",
        "attachments": [{"kind": "image", "url": "u"}],
    }


async def test_field_90_every_attempt_sends_the_identical_bytes_under_the_same_id(canon):
    client, script = canon(500, httpx.ReadTimeout, (200, {"messageId": "hermes-final-1"}))
    assert (await client.send(MESSAGE)).message_id == "hermes-final-1"
    assert len({request.content for request in script.requests}) == 1
    assert len(script.requests) == 3


async def test_field_88_without_an_id_a_lost_answer_is_reported_unknown_and_not_repeated(canon):
    client, script = canon(httpx.ReadTimeout)
    with pytest.raises(DeliveryError) as failure:
        await client.send(OutboundMessage("c", "x"))
    assert (failure.value.certainty, failure.value.retryable) == ("ambiguous", False)
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    ("answers", "certainty", "retryable", "status", "sent"),
    [
        ([400], "definitive", False, 400, 1),
        ([403], "definitive", False, 403, 1),
        ([409], "ambiguous", True, 409, 1),
        ([500, 500, 429], "ambiguous", True, 429, 3),
        ([429, 503, 429], "definitive", True, 429, 3),
        ([httpx.ConnectError] * 3, "definitive", True, None, 3),
        ([503, httpx.ReadError, 400], "ambiguous", True, 400, 3),
        ([httpx.PoolTimeout, 503, httpx.ConnectTimeout], "ambiguous", True, 503, 3),
        ([(200, b"<html>")], "ambiguous", True, None, 1),
        ([(302, b"", {"location": "https://elsewhere.example/"})], "ambiguous", True, 302, 1),
    ],
)
async def test_the_verdict_covers_all_attempts(canon, answers, certainty, retryable, status, sent):
    client, script = canon(*answers)
    with pytest.raises(DeliveryError) as failure:
        await client.send(MESSAGE)
    error = failure.value
    assert (error.certainty, error.retryable, error.status_code) == (certainty, retryable, status)
    assert len(script.requests) == sent


async def test_defect_13_a_redirect_without_a_body_is_a_failure_and_is_not_followed(canon):
    client, script = canon((302, b"", {"location": "https://elsewhere.example/"}))
    with pytest.raises(CanonApiError) as failure:
        await client.mark_read("c")
    assert failure.value.status_code == 302
    assert len(script.requests) == 1


@pytest.mark.parametrize("status", [100, 199, 300, 304, 399])
async def test_defect_13_only_2xx_is_success(canon, status):
    client, _ = canon((status, b""))
    with pytest.raises(CanonApiError):
        await client.mark_read("c")


@pytest.mark.parametrize(
    "message",
    [
        OutboundMessage("", "x", "id"),
        OutboundMessage("  ", "x", "id"),
        OutboundMessage("c", "", "id"),
        OutboundMessage("c", "é" * 2049, "id"),
        OutboundMessage("c", "\ud83c", "id"),
        OutboundMessage("c", "x", "i" * 161),
        OutboundMessage("c", "x", "é"),
        OutboundMessage("c", "x", ""),
        OutboundMessage("c", "x", "id", metadata={"k": "😀" * 2046}),
        OutboundMessage("c", "x", "id", metadata={"k": object()}),
        OutboundMessage("c", "x", "id", metadata={"k": float("nan")}),
    ],
)
async def test_what_canon_would_refuse_is_refused_before_any_request(canon, message):
    client, script = canon(200)
    with pytest.raises(DeliveryError) as failure:
        await client.send(message)
    assert (failure.value.certainty, failure.value.retryable) == ("definitive", False)
    assert script.requests == []


async def test_the_limits_themselves_are_allowed(canon):
    client, script = canon((200, {"messageId": "m"}))
    await client.send(OutboundMessage("c", "é" * 2048, "i" * 160, metadata={"k": "😀" * 2044}))
    assert len(script.requests) == 1


async def test_a_success_without_an_id_falls_back_to_ours_and_without_ours_is_unknown(canon):
    client, _ = canon((200, b""))
    assert (await client.send(MESSAGE)).message_id == "hermes-final-1"
    with pytest.raises(DeliveryError) as failure:
        await client.send(OutboundMessage("c", "x"))
    assert failure.value.certainty == "ambiguous"


async def test_defect_15_ids_are_percent_encoded_in_paths(canon):
    client, script = canon(200)
    await client.mark_read("a/../b?x#y z%2F")
    await client.release_message("c/1", "m?é")
    assert [request.url.raw_path for request in script.requests] == [
        b"/v1/conversations/a%2F..%2Fb%3Fx%23y%20z%252F/read",
        b"/v1/conversations/c%2F1/messages/m%3F%C3%A9/disposition",
    ]
    assert script.requests[0].method == "POST"
    assert script.requests[0].content == b""
    assert script.requests[0].headers["content-type"] == "application/json"
    assert script.requests[1].method == "PATCH"
    assert script.bodies() == [{"inboundDisposition": "accepted_now"}]


@pytest.mark.parametrize("identifier", ["", " ", ".", "..", "\ud800"])
async def test_defect_15_ids_that_address_something_else_are_refused_locally(canon, identifier):
    client, script = canon(200)
    with pytest.raises(CanonError):
        await client.mark_read(identifier)
    with pytest.raises(CanonError):
        await client.call_verb(identifier, envelope={}, value={})
    assert script.requests == []


async def test_identity_is_read_from_the_first_present_names(canon):
    client, _ = canon(
        (200, {"agentId": None, "id": "", "userId": "u1", "ownerId": 7, "displayName": "", "name": "N"}), (200, [])
    )
    identity = await client.identify()
    assert (identity.agent_id, identity.owner_id, identity.display_name) == ("u1", "7", "N")
    assert (await client.identify()).agent_id is None


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_permanent_and_named(canon, status, key):
    client, _ = canon((status, {"error": f"bad key {key}", "code": "BAD"}))
    with pytest.raises(AuthenticationError) as failure:
        await client.identify()
    assert not failure.value.retryable
    assert failure.value.machine_code == "BAD"


@pytest.mark.parametrize(("status", "retryable"), [(404, False), (500, True), (429, True), (408, True)])
async def test_other_identity_failures_follow_the_transient_rule(canon, status, retryable):
    client, _ = canon(status)
    with pytest.raises(CanonApiError) as failure:
        await client.identify()
    assert not isinstance(failure.value, AuthenticationError)
    assert failure.value.retryable is retryable


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        ({"conversations": [{"id": "a"}, {"conversationId": "b"}, {"name": "none"}, 3, None]}, ["a", "b"]),
        ([{"id": "a"}], ["a"]),
        ({"conversations": "no"}, []),
        ({}, []),
        ("text", []),
    ],
)
async def test_conversations_come_as_a_list_or_inside_an_object(canon, body, ids):
    client, _ = canon((200, body))
    listed = await client.list_conversations()
    assert [item.get("id") or item.get("conversationId") for item in listed] == ids


async def test_the_node_is_written_blanked_and_cleared_as_the_contract_says(canon):
    client, script = canon(200)
    await client.write_node(NodeWrite("c", "t1", "so far"))
    await client.write_node(NodeWrite("c", "t1", "", "thinking", []))
    await client.write_node(NodeWrite("c", "t1", "x", blocks=[{"id": str(n)} for n in range(40)]))
    await client.clear_node("c")
    written, blanked, many, cleared = script.bodies()
    assert written == {
        "conversationId": "c",
        "status": "streaming",
        "text": "so far",
        "messageId": "t1",
        "turnId": "t1",
    }
    assert (blanked["status"], blanked["text"], blanked["blocks"]) == ("thinking", "", [])
    assert len(many["blocks"]) == 30
    assert cleared == {"conversationId": "c", "streaming": False}
    assert {request.url.path for request in script.requests} == {"/v1/streaming"}


async def test_a_preview_with_a_lone_surrogate_is_still_sendable(canon):
    client, script = canon(200)
    await client.write_node(NodeWrite("c", "t1", "half \ud83c"))
    assert script.bodies()[0]["text"] == "half ?"


async def test_typing_turns_and_status(canon):
    client, script = canon(200)
    await client.set_typing("c", typing=True)
    await client.set_typing("c", typing=True, status="typing")
    await client.set_typing("c", typing=False, status="typing")
    await client.publish_turn(
        TurnPublication("c", "thinking", -3, 1234, {"supportsQueue": True}, "hermes-1", ("m1",), 1200)
    )
    await client.publish_turn(TurnPublication("c", "completed", 2, 1300, {}, opened_at=1200))
    await client.publish_status({"coreControls": []})
    await client.publish_status({})
    assert script.bodies() == [
        {"conversationId": "c", "typing": True, "status": "thinking"},
        {"conversationId": "c", "typing": True, "status": "typing"},
        {"conversationId": "c", "typing": False},
        {
            "conversationId": "c",
            "state": "thinking",
            "queueDepth": 0,
            "capabilities": {"supportsQueue": True},
            "turnUpdatedAt": 1234,
            "turnId": "hermes-1",
            "openedAt": 1200,
            "activeMessageIds": ["m1"],
        },
        {"conversationId": "c", "state": "completed", "queueDepth": 2, "capabilities": {}, "turnUpdatedAt": 1300},
        {"runtime": "hermes", "hostMode": True, "runtimeDescriptor": {"coreControls": []}},
        {"runtime": "hermes", "hostMode": True},
    ]


@pytest.mark.parametrize(
    ("answer", "signal"),
    [
        (
            {"status": "signal", "signal": "interrupt", "updatedBy": "user_own1"},
            RuntimeSignal("interrupt", "user_own1"),
        ),
        ({"status": "signal", "signal": "stop_and_drop"}, RuntimeSignal("stop_and_drop")),
        ({"status": "signal", "signal": "new_session", "updatedBy": ""}, RuntimeSignal("new_session")),
        ({"status": "signal", "signal": "reboot"}, None),
        ({"status": "signal", "signal": ["interrupt"]}, None),
        ({"status": "none", "signal": "interrupt"}, None),
        ({}, None),
        ([], None),
    ],
)
async def test_only_known_signals_count(canon, answer, signal):
    client, _ = canon((200, answer))
    assert await client.consume_signal("c") == signal


async def test_an_upload_is_base64_and_its_attachment_is_used_as_it_comes(canon):
    client, script = canon((200, {"attachment": {"kind": "image", "url": "https://m/1"}, "url": "https://m/2"}))
    attachment = await client.upload(Upload("c", b"\x89PNG", "image/png", "chart.png"))
    assert attachment == {"kind": "image", "url": "https://m/1"}
    (body,) = script.bodies()
    assert base64.b64decode(body.pop("data")) == b"\x89PNG"
    assert body == {"conversationId": "c", "mimeType": "image/png", "fileName": "chart.png"}


async def test_a_missing_attachment_object_is_synthesised_and_a_missing_address_is_malformed(canon):
    client, _ = canon((200, {"attachment": {}, "url": "https://m/2"}), (200, {}))
    attachment = await client.upload(Upload("c", b"abc", "application/pdf"))
    assert attachment == {"kind": "file", "url": "https://m/2", "mimeType": "application/pdf", "sizeBytes": 3}
    with pytest.raises(MalformedResponseError):
        await client.upload(Upload("c", b"abc", "application/pdf"))


async def test_an_upload_beyond_ten_mebibytes_never_leaves(canon):
    client, script = canon(200)
    with pytest.raises(DeliveryError) as failure:
        await client.upload(Upload("c", bytes(10_485_761), "image/png"))
    assert failure.value.certainty == "definitive"
    assert script.requests == []


def verb_answer(**changes):
    answer = {
        "wire": "canon.verb-wire.v1",
        "verb": "send_to",
        "result": {"encoding": "json", "value": {"status": "messaged"}},
    }
    return {**answer, **changes}


async def test_a_verb_puts_routing_in_the_envelope_and_content_in_the_body(canon):
    client, script = canon((200, verb_answer()))
    value = await client.call_verb("send_to", envelope={"targetUserId": "u"}, value={"text": "hi"})
    assert value == {"status": "messaged"}
    assert script.requests[0].url.path == "/v1/agent/verbs/send_to"
    assert script.bodies() == [
        {
            "wire": "canon.verb-wire.v1",
            "verb": "send_to",
            "envelope": {"targetUserId": "u"},
            "body": {"encoding": "json", "value": {"text": "hi"}},
        }
    ]


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        verb_answer(wire="canon.verb-wire.v2"),
        verb_answer(verb="no_reply"),
        verb_answer(result=None),
        verb_answer(result={"encoding": "text", "value": {}}),
        verb_answer(result={"encoding": "json", "value": []}),
        verb_answer(result={"encoding": "json"}),
    ],
)
async def test_a_deviating_verb_envelope_is_malformed_and_never_done(canon, answer):
    client, script = canon((200, answer))
    with pytest.raises(MalformedResponseError):
        await client.call_verb("send_to", envelope={}, value={})
    assert len(script.requests) == 1


async def test_interactions_pass_their_bodies_through(canon):
    client, script = canon((201, {"success": True, "expiresAt": 5}), (200, []), (404, {"error": "gone"}))
    body = {"interactionKind": "approval", "approvalId": "a", "conversationId": "c"}
    assert await client.create_interaction(body) == {"success": True, "expiresAt": 5}
    assert await client.consume_interaction({**body, "cancel": True}) == {}
    with pytest.raises(CanonApiError) as failure:
        await client.consume_interaction(body)
    assert (failure.value.status_code, failure.value.detail) == (404, "gone")
    assert [request.url.path for request in script.requests[:2]] == [
        "/v1/runtime-interaction/request",
        "/v1/runtime-interaction/consume",
    ]
    assert script.bodies()[1]["cancel"] is True


async def test_an_interaction_body_that_is_not_json_never_leaves(canon):
    client, script = canon(200)
    with pytest.raises(CanonError):
        await client.create_interaction({"card": object()})
    assert script.requests == []


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe\xfd", b"[" * 200_000, b"nonsense"])
async def test_an_unreadable_success_is_malformed(canon, body):
    client, _ = canon((200, body))
    with pytest.raises(MalformedResponseError):
        await client.create_interaction({})


async def test_the_error_carries_code_sentence_and_body_but_its_text_shows_none_of_them(canon):
    client, _ = canon((422, {"error": "the sentence", "code": "CODE"}, {"retry-after": "9"}))
    with pytest.raises(CanonApiError) as failure:
        await client.create_interaction({})
    error = failure.value
    assert (error.machine_code, error.detail, error.retry_after) == ("CODE", "the sentence", 9.0)
    assert json.loads(error.body)["code"] == "CODE"
    assert "sentence" not in str(error)


@pytest.mark.parametrize("body", [{"error": 5, "code": ["x"]}, {"error": ""}, [], b"<html>gateway</html>", b""])
async def test_an_error_body_of_any_shape_is_tolerated(canon, body):
    client, _ = canon((400, body))
    with pytest.raises(CanonApiError) as failure:
        await client.create_interaction({})
    assert (failure.value.machine_code, failure.value.detail) == (None, None)


@pytest.mark.parametrize(
    "failure_kind", [httpx.ConnectError, httpx.LocalProtocolError, httpx.ReadTimeout, 401, 500, (200, b"<")]
)
async def test_field_55_no_part_of_the_key_is_in_an_error_its_chain_or_a_log(canon, key, caplog, failure_kind):
    client, _ = canon(failure_kind)
    with caplog.at_level(logging.DEBUG), pytest.raises(CanonError) as failure:
        await client.identify()
    error = failure.value
    shown = "".join(traceback.format_exception(error)) + repr(error) + str(vars(error)) + caplog.text
    assert key[9:] not in shown
    assert error.__cause__ is None
    assert error.__context__ is None or isinstance(error.__context__, CanonError)


@pytest.mark.parametrize("broken", ["", "a b", "a\nb", "clé", "a\x00"])
def test_field_55_a_key_that_cannot_cross_the_wire_is_refused_without_being_quoted(connect_to, clock, broken):
    from canon_hermes_plugin.infrastructure.canon.link import CanonLink

    with pytest.raises(CredentialsError) as failure:
        CanonLink(connect_to(key=broken), clock=clock)
    assert not broken or broken not in str(failure.value)


async def test_h25_a_client_refuses_to_work_on_a_foreign_loop(canon):
    import asyncio

    client, _ = canon(200)
    await client.mark_read("c")
    with pytest.raises(RuntimeError, match="another event loop"):
        await asyncio.to_thread(asyncio.run, client.mark_read("c"))


async def test_h25_a_short_lived_client_works_on_its_own_loop_and_closes(connect_to, clock, script):
    import asyncio

    answers = script((200, {"messageId": "hermes-final-1"}))

    async def tool():
        async with short_lived(connect_to(), clock=clock, transport=httpx.MockTransport(answers)) as client:
            return await client.send(MESSAGE)

    stored = await asyncio.to_thread(asyncio.run, tool())
    assert stored.message_id == "hermes-final-1"


async def test_a_transport_failure_of_a_plain_call_says_whether_it_may_have_happened(canon):
    client, _ = canon(httpx.ConnectError, httpx.ReadError)
    with pytest.raises(CanonTransportError) as unsent:
        await client.mark_read("c")
    with pytest.raises(CanonTransportError) as unknown:
        await client.mark_read("c")
    assert (unsent.value.executed, unknown.value.executed) == (False, True)


async def test_an_answer_without_end_is_cut_off(canon, monkeypatch):
    from canon_hermes_plugin.infrastructure.canon import link

    monkeypatch.setattr(link, "MAX_ANSWER_BYTES", 1000)
    client, _ = canon((200, b'"' + b"x" * 2000 + b'"'))
    with pytest.raises(MalformedResponseError):
        await client.create_interaction({})


def test_field_54_a_request_shows_neither_its_body_nor_its_headers():
    from canon_hermes_plugin.infrastructure.canon.link import Answer, Request

    shown = repr(Request("POST", "https://x", b"what the user wrote", {"x-canon-poll-token": "pt_x"}))
    assert "user" not in shown
    assert "pt_x" not in shown
    assert "user" not in repr(Answer(200, {}, b"what the user wrote"))


async def test_a_closed_client_opens_a_new_pool_when_it_is_used_again(canon):
    client, script = canon(200)
    await client.mark_read("c")
    await client.close()
    await client.close()
    await client.mark_read("c")
    assert len(script.requests) == 2


async def test_h25_after_closing_another_loop_may_take_the_client_over(canon):
    import asyncio

    client, script = canon(200)
    await client.mark_read("c")
    await client.close()
    await asyncio.to_thread(asyncio.run, client.mark_read("c"))
    assert len(script.requests) == 2


async def test_defect_10_nothing_is_read_from_the_disk_on_the_loop_to_open_a_client(connect_to, clock, monkeypatch):
    import threading

    from canon_hermes_plugin.infrastructure.canon import link, tls

    made_in, original = [], httpx.create_ssl_context

    def create():
        made_in.append(threading.current_thread())
        return original()

    monkeypatch.setattr(tls, "_made", [])
    monkeypatch.setattr(httpx, "create_ssl_context", create)
    for _ in range(2):
        opened = link.CanonLink(connect_to("http://127.0.0.1:1"), clock=clock)
        with pytest.raises(CanonTransportError) as failure:
            await opened.call(link.Request("GET", "http://127.0.0.1:1/"))
        assert not failure.value.executed
        await opened.close()
    assert len(made_in) == 1
    assert made_in[0] is not threading.main_thread()


async def test_defect_10_base64_and_large_json_are_worked_off_the_loop(canon, monkeypatch):
    import threading

    from canon_hermes_plugin.infrastructure.canon import wire

    worked_in, original = [], wire.upload_content

    def encode(upload):
        worked_in.append(threading.current_thread())
        return original(upload)

    monkeypatch.setattr(wire, "upload_content", encode)
    client, _ = canon((200, {"attachment": {"kind": "file", "note": "x" * 600_000}}))
    attachment = await client.upload(Upload("c", bytes(1000), "image/png"))
    assert len(attachment["note"]) == 600_000
    assert worked_in[0] is not threading.main_thread()


def test_defect_14_nothing_but_the_named_fields_of_a_message_can_cross_the_wire():
    from canon_hermes_plugin.infrastructure.canon import wire

    message = OutboundMessage(
        "conv_a1", "text", "id", "r", {"conversationId": "evil", "text": "evil"}, "file", [{"conversationId": "evil"}]
    )
    body = wire.message_body(message)
    allowed = {"conversationId", "text", "messageId", "replyTo", "metadata", "contentType", "attachments"}
    assert set(body) == allowed
    assert (body["conversationId"], body["text"], body["messageId"], body["replyTo"]) == ("conv_a1", "text", "id", "r")
