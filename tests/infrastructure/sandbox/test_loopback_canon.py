"""The stand-in behaves as canon-wire §11.1 demands (rows 1 to 12, 20, 22)."""

import base64
import json
from contextlib import contextmanager

import httpx
import pytest
from canon_hermes_plugin.infrastructure.sandbox.events import Framing
from canon_hermes_plugin.infrastructure.sandbox.records import Person
from canon_hermes_plugin.infrastructure.sandbox.server import DIRECT, GROUP, LoopbackCanon

FINAL = {"turnSemantics": "turn_complete", "turnComplete": True, "turnId": "hermes-1"}


@pytest.fixture
def canon():
    with LoopbackCanon(heartbeat=0.1) as running:
        yield running


def send(client, **fields):
    return client.post("/messages/send", json={"conversationId": DIRECT, "text": "hi", **fields})


@contextmanager
def open_stream(client, cursor=None):
    headers = {} if cursor is None else {"Last-Event-ID": cursor}
    with client.stream("GET", "/agents/stream", headers=headers) as response:
        yield Frames(response)


class Frames:
    """Reads whole frames off a response, comments apart."""

    def __init__(self, response):
        self.response, self._bytes, self._buffer = response, response.iter_raw(), b""

    def block(self):
        while b"\n\n" not in self._buffer:
            self._buffer = (self._buffer + next(self._bytes)).replace(b"\r\n", b"\n")
        block, self._buffer = self._buffer.split(b"\n\n", 1)
        return block.decode()

    def next(self):
        while True:
            block = self.block()
            if not block.startswith(":"):
                fields = dict(line.split(": ", 1) for line in block.split("\n"))
                return fields.get("event"), json.loads(fields["data"]), fields.get("id")


def test_only_loopback_addresses_are_served():
    with pytest.raises(ValueError, match="loopback"):
        LoopbackCanon(host="0.0.0.0")


def test_what_was_never_entered_has_no_address():
    idle = LoopbackCanon(port=1)
    for use in (lambda: idle.base_url, idle.environment, lambda: idle.host_file(b"x", "text/plain")):
        with pytest.raises(RuntimeError, match="with LoopbackCanon"):
            use()
    with LoopbackCanon() as entered:
        pass
    assert entered.base_url.startswith("http://127.0.0.1:")


def test_nobody_speaks_who_is_not_known_and_nowhere_else(canon):
    before = len(canon.messages(own=None))
    with pytest.raises(ValueError, match=r"unknown person 'nobody'; known: .*user_dana.*add_person"):
        canon.say(DIRECT, "nobody", "hi")
    with pytest.raises(ValueError, match=rf"unknown conversation 'conv_x'; known: {DIRECT}, .*add_conversation"):
        canon.say("conv_x", "user_dana", "hi")
    assert len(canon.messages(own=None)) == before
    canon.add_conversation("conv_x", "user_eli")
    canon.add_person(Person("nobody", "Somebody"))
    for who in ("user_eli", "nobody"):
        canon.say("conv_x", who, "hi")
    assert [message.sender_id for message in canon.messages(own=False)] == ["user_eli", "nobody"]


@pytest.mark.parametrize(
    ("data", "mime", "error", "complaint"),
    [
        ("text", "text/plain", TypeError, "bytes, not str"),
        (5, "text/plain", TypeError, "bytes, not int"),
        (b"x", "x", ValueError, "'x' is no MIME type"),
        (b"x", "", ValueError, "no MIME type"),
    ],
)
def test_a_hosted_file_is_bytes_with_a_type(canon, data, mime, error, complaint):
    with pytest.raises(error, match=complaint):
        canon.host_file(data, mime)
    assert canon.media.files == {}


def test_a_fault_that_is_none_names_the_known_ones(canon):
    with pytest.raises(ValueError, match="unknown kind of fault 'bogus'; known: delay, status, drop, reset"):
        canon.fault("send", kind="bogus")
    with pytest.raises(ValueError, match="unknown route 'no-such-route'; known: conversations, "):
        canon.fault("no-such-route")
    with pytest.raises(TypeError, match="bogus"):
        canon.fault("send", bogus=1)
    assert httpx.post(f"{canon.base_url}/messages/send", json={}).status_code == 401, "nothing was queued"


def test_both_health_routes_prove_a_known_environment_without_a_bearer(canon):
    for path in ("/healthz/", "/health"):
        response = httpx.get(canon.base_url + path)
        assert response.headers["x-canon-environment-id"] == "canon-dev-v1"
        assert response.json() == {"environmentId": "canon-dev-v1", "projectId": "canonmail-dev"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/agents/me"),
        ("GET", "/conversations"),
        ("POST", "/messages/send"),
        ("POST", "/typing"),
        ("POST", "/streaming"),
        ("GET", "/agents/stream"),
        ("POST", f"/conversations/{DIRECT}/read"),
    ],
)
def test_a_wrong_bearer_is_401_and_takes_no_effect(canon, method, path):
    response = httpx.request(method, canon.base_url + path, headers={"Authorization": "Bearer no"}, json={})
    assert response.status_code == 401
    assert not canon.requests()[-1].handled


def test_forbidden_switch_answers_403(canon, client):
    canon.policy.forbidden = True
    assert client.get("/agents/me").status_code == 403


def test_text_is_refused_above_4096_utf8_bytes_and_not_characters(canon, client):
    assert send(client, text="\u05d0" * 2048).status_code == 201
    refused = send(client, text="\u05d0" * 2049)
    assert refused.status_code == 400
    assert "error" in refused.json()
    assert len(canon.messages()) == 1


def test_metadata_is_measured_in_utf16_units_of_compact_json(client):
    room = 4096 - len('{"k":""}')
    assert send(client, metadata={"k": "a" * room}).status_code == 201
    assert send(client, metadata={"k": "a" * (room + 1)}).status_code == 400
    assert send(client, metadata={"k": "\U0001f600" * (room // 2)}).status_code == 201
    assert send(client, metadata={"k": "\U0001f600" * (room // 2 + 1)}).status_code == 400


def test_message_ids_longer_than_160_characters_are_refused(client):
    assert send(client, messageId="m" * 160).status_code == 201
    assert send(client, messageId="m" * 161).status_code == 400


def test_the_same_id_with_the_same_payload_is_replayed_and_stored_once(canon, client):
    first = send(client, messageId="m1", metadata=FINAL)
    again = send(client, messageId="m1", metadata=FINAL)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["messageId"] == again.json()["messageId"] == "m1"
    assert len(canon.messages()) == 1
    assert len(canon.logs.notifications) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"text": "other"},
        {"replyTo": "msg_1"},
        {"metadata": {"x": 1}},
        {"contentType": "image"},
        {"attachments": [{"url": "u"}]},
        {"conversationId": GROUP},
    ],
)
def test_the_same_id_with_another_payload_is_a_conflict(canon, client, change):
    send(client, messageId="m1")
    assert send(client, messageId="m1", **change).status_code == 409
    assert len(canon.messages()) == 1


def test_only_turn_complete_notifies(canon, client):
    send(client, metadata={"turnSemantics": "progress"})
    client.post("/streaming", json={"conversationId": DIRECT, "text": "x", "status": "streaming", "turnId": "t"})
    assert canon.logs.notifications == []
    send(client, metadata=FINAL)
    assert len(canon.logs.notifications) == 1


def test_node_writes_merge_and_blocks_are_cut_at_thirty(canon, client):
    block = {"id": "tool:1", "kind": "tool"}
    write = {"conversationId": DIRECT, "status": "streaming", "text": "a", "turnId": "t", "blocks": [block] * 31}
    client.post("/streaming", json=write)
    client.post("/streaming", json={"conversationId": DIRECT, "text": "ab"})
    node = canon.node(DIRECT)
    assert node["text"] == "ab"
    assert node["turnId"] == "t"
    assert len(node["blocks"]) == 30


def test_deleting_a_non_empty_node_of_an_unfinished_turn_salvages_it(canon, client):
    client.post("/streaming", json={"conversationId": DIRECT, "text": "half", "turnId": "hermes-1"})
    client.post("/streaming", json={"conversationId": DIRECT, "streaming": False})
    assert canon.node(DIRECT) is None
    (salvaged,) = canon.messages(DIRECT)
    assert (salvaged.text, salvaged.salvaged, salvaged.metadata["turnSemantics"]) == ("half", True, "progress")
    assert canon.logs.notifications == []


@pytest.mark.parametrize("finish", [True, False])
def test_a_finished_or_blanked_node_is_not_salvaged(canon, client, finish):
    client.post("/streaming", json={"conversationId": DIRECT, "text": "half", "turnId": "hermes-1"})
    if finish:
        send(client, metadata=FINAL)
    else:
        client.post("/streaming", json={"conversationId": DIRECT, "text": "", "blocks": [], "status": "thinking"})
    client.post("/streaming", json={"conversationId": DIRECT, "streaming": False})
    assert not [message for message in canon.messages() if message.salvaged]


def test_every_frame_has_an_id_and_heartbeats_are_comments(canon, client):
    with open_stream(client) as frames:
        assert frames.next()[0] == "connected"
        canon.say(DIRECT, "user_dana", "yo")
        name, data, frame_id = frames.next()
        assert name == "message.created"
        assert data["message"]["text"] == "yo"
        assert frame_id is not None
        assert frames.block().startswith(": ")


def test_events_after_the_cursor_are_replayed_once_and_in_order(canon, client):
    with open_stream(client) as frames:
        cursor = frames.next()[2]
    for word in ("one", "two", "three"):
        canon.say(DIRECT, "user_dana", word)
    with open_stream(client, cursor) as frames:
        frames.next()
        seen = [frames.next() for _ in range(3)]
    assert [data["message"]["text"] for _, data, _ in seen] == ["one", "two", "three"]
    with open_stream(client, seen[1][2]) as frames:
        frames.next()
        assert frames.next()[1]["message"]["text"] == "three"


@pytest.mark.parametrize("cursor", ["evt_unknown", "evt_00000000"])
def test_an_unknown_or_too_old_cursor_gets_replay_expired(canon, client, cursor):
    newest = [canon.say(DIRECT, "user_dana", "one"), canon.emit("presence", {})][1]
    canon.expire_replay()
    with open_stream(client, cursor) as frames:
        name, data, _ = frames.next()
    assert (name, data) == ("replay.expired", {"lastAvailableId": newest})


def test_waking_messages_are_stamped_and_the_others_not_emitted(canon, client):
    canon.add_person(Person("agent_b", "Bot", "ai_agent"))
    with open_stream(client) as frames:
        frames.next()
        canon.say(DIRECT, "user_dana", "quiet", metadata={"replyBehavior": "suppress_auto_reply"})
        canon.say(DIRECT, "agent_b", "progress", metadata={"turnSemantics": "progress"})
        canon.say(DIRECT, "agent_b", "done", metadata={"turnSemantics": "turn_complete"})
        _, data, _ = frames.next()
        assert data["message"]["text"] == "done"
        assert data["turnDispatch"] == {"kind": "run_turn"}


def test_without_a_verdict_every_message_is_emitted_unstamped(canon, client):
    canon.policy.dispatch = None
    with open_stream(client) as frames:
        frames.next()
        canon.say(DIRECT, "user_dana", "quiet", metadata={"replyBehavior": "suppress_auto_reply"})
        _, data, _ = frames.next()
    assert "turnDispatch" not in data


def test_the_agents_own_messages_come_back_on_the_stream(canon, client):
    with open_stream(client) as frames:
        frames.next()
        send(client)
        _, data, _ = frames.next()
    assert data["message"]["senderId"] == canon.identity.agent_id


def test_a_signal_is_announced_and_consumed_once(canon, client):
    with open_stream(client) as frames:
        frames.next()
        canon.signal(DIRECT, "interrupt", "user_dana")
        name, data, _ = frames.next()
    assert (name, data["kind"], data["conversationId"]) == ("runtime.control", "signal", DIRECT)
    consume = {"conversationId": DIRECT}
    first = client.post("/runtime/signal/consume", json=consume).json()
    assert first == {"status": "signal", "signal": "interrupt", "updatedBy": "user_dana"}
    assert client.post("/runtime/signal/consume", json=consume).json() == {"status": "none"}


def test_disposition_is_idempotent_and_known_messages_only(canon, client):
    message = canon.say(DIRECT, "user_dana", "q", metadata={"inboundDisposition": "queued"})
    body = {"inboundDisposition": "accepted_now"}
    path = f"/conversations/{DIRECT}/messages/{message}/disposition"
    assert [client.patch(path, json=body).status_code for _ in range(2)] == [200, 200]
    assert client.patch(path.replace(message, "msg_99"), json=body).status_code == 404


@pytest.mark.parametrize("redirect", [False, True])
def test_an_upload_is_served_without_a_bearer_also_through_a_redirect(canon, client, redirect):
    canon.media.redirect = redirect
    body = {"conversationId": DIRECT, "data": base64.b64encode(b"PNG").decode(), "mimeType": "image/png"}
    answer = client.post("/media/upload", json=body).json()
    assert answer["attachment"]["kind"] == "image"
    response = httpx.get(answer["url"], follow_redirects=True)
    assert (response.content, response.headers["content-type"], len(response.history)) == (
        b"PNG",
        "image/png",
        redirect,
    )


def test_a_drop_before_handling_stores_nothing_and_one_after_stores_once(canon, client):
    canon.fault("send", kind="drop")
    canon.fault("send", kind="reset", after=True)
    with pytest.raises(httpx.RemoteProtocolError):
        send(client, messageId="m1")
    assert canon.messages() == []
    with pytest.raises(httpx.ReadError):
        send(client, messageId="m1")
    assert len(canon.messages()) == 1
    assert send(client, messageId="m1").status_code == 200


def test_status_faults_carry_retry_after_and_are_used_up(canon, client):
    canon.fault("send", status=429, retry_after=2, times=2)
    answers = [send(client) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [429, 429, 201]
    assert answers[0].headers["retry-after"] == "2"


def test_truncated_garbled_and_redirected_answers(canon, client):
    canon.fault("send", kind="truncate", after=True)
    canon.fault("send", kind="garbage", after=True, content="<html>")
    canon.fault("send", kind="redirect", content="http://127.0.0.1:1/")
    with pytest.raises(httpx.RemoteProtocolError):
        send(client)
    garbled = send(client)
    assert garbled.is_success
    assert garbled.text == "<html>"
    assert send(client).status_code == 302
    assert len(canon.messages()) == 2


def test_a_fault_can_be_limited_to_some_requests(canon, client):
    canon.fault("send", status=500, matching=lambda record: record.body["text"] == "b")
    assert [send(client, text=text).status_code for text in "aba"] == [201, 500, 201]


def test_an_unknown_route_cannot_fail(canon):
    with pytest.raises(ValueError, match="unknown route"):
        canon.fault("nowhere")


def test_the_stream_can_be_cut_cleanly_or_torn(canon, client):
    with open_stream(client) as frames:
        frames.next()
        canon.cut_stream(clean=True)
        with pytest.raises(StopIteration):
            frames.next()
    with open_stream(client) as frames:
        frames.next()
        canon.cut_stream()
        with pytest.raises(httpx.TransportError):
            frames.next()
    canon.wait_for(lambda c: c.connected == 0, 5)


def test_frames_can_be_split_between_cr_and_lf_and_repeated(canon, client):
    canon.set_framing(Framing("\r\n", split=True))
    with open_stream(client) as frames:
        frames.next()
        canon.emit("presence", {"n": 1})
        canon.repeat_events()
        assert frames.next() == frames.next()


def test_a_silent_stream_stays_open_and_says_nothing(canon, client):
    with open_stream(client) as frames:
        frames.next()
        canon.set_silent(True)
        canon.say(DIRECT, "user_dana", "lost on this connection")
        canon.emit_raw(b"event: end\ndata: {}\n\n")
        name = frames.next()[0]
        while name is None:
            name = frames.next()[0]
        assert name == "end"
        assert canon.connected == 1


def test_waiting_in_vain_tells_what_the_server_saw(canon, client):
    client.get("/agents/me")
    with pytest.raises(TimeoutError, match="me=200"):
        canon.wait_for(lambda c: c.finals(), 0.01)


async def test_until_leaves_the_event_loop_free(canon):
    async with httpx.AsyncClient(base_url=canon.base_url) as client:
        await client.get("/health")
    assert await canon.until(lambda c: c.requests("health"), 5)


@pytest.mark.parametrize(
    ("data", "status"),
    [("!!", 400), ("YQ", 400), (base64.b64encode(bytes(10_485_761)).decode(), 413), ("YQ==", 201)],
    ids=["alphabet", "padding", "size", "good"],
)
def test_an_upload_is_standard_base64_of_at_most_ten_mebibytes(client, data, status):
    body = {"conversationId": DIRECT, "data": data, "mimeType": "text/plain"}
    assert client.post("/media/upload", json=body).status_code == status
