"""What of a message reaches the model: its words, its files, the room's posture. And what must not."""

import json
import struct
import zlib

import pytest

pytestmark = pytest.mark.gateway


def png(width=8, height=8):
    """A small valid picture."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\x00" + b"\xc0\x20\x20" * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture(scope="module", params=["model", "trusted-only"])
def delivery(request):
    return request.param


@pytest.fixture(scope="module")
def gateway_options(delivery):
    return {
        "env": {"CANON_INBOUND_IMAGE_DELIVERY": delivery},
    }


@pytest.fixture
def looked_at(model):
    """Make the model keep what it is shown for a message; returns the list of whole requests."""

    def watch(words):
        seen = []

        def look(request):
            seen.append(request.body)
            return ["Seen."]

        model.script_with(words, look)
        return seen

    return watch


def shown(body):
    """All the model was given, as text."""
    return json.dumps(body["messages"], ensure_ascii=False)


def asked(body):
    """What the model was given as the newest message of a person, as text."""
    newest = next(message for message in reversed(body["messages"]) if message["role"] == "user")
    return json.dumps(newest["content"], ensure_ascii=False)


def test_pictures_reach_the_model_or_are_withheld_from_it(chat, canon, looked_at, delivery):
    conversation = chat.direct()
    seen = looked_at("look at this")
    attachment = canon.host_file(png(), "image/png", "red.png")
    canon.say(conversation, "user_dana", "look at this", attachments=[attachment], contentType="image")
    assert chat.answer(conversation)
    text = asked(seen[-1])
    assert attachment["url"] not in shown(seen[-1])
    assert "look at this" in text
    if delivery == "model":
        assert ".png" in text
        assert "trusted Canon tools" not in text
    else:
        assert "1 image attachment is available to trusted Canon tools only" in text
        assert ".png" not in shown(seen[-1])


def test_field_84_a_picture_with_another_ones_name_costs_nobody_the_turn(chat, canon, looked_at):
    conversation = chat.direct()
    seen = looked_at("odd picture")
    attachment = canon.host_file(png(), "image/webp", "odd.webp")
    canon.say(
        conversation, "user_dana", "odd picture", attachments=[attachment, {"kind": "image", "url": "not an address"}]
    )
    assert chat.answer(conversation)
    assert "odd picture" in shown(seen[-1])


def test_documents_reach_the_model_in_both_modes(chat, canon, looked_at):
    conversation = chat.direct()
    seen = looked_at("read this")
    attachment = canon.host_file(b"the code word is heron", "text/plain", "note.txt")
    canon.say(conversation, "user_dana", "read this", attachments=[attachment])
    assert chat.answer(conversation)
    assert "heron" in asked(seen[-1])


def test_a_group_message_carries_the_posture_and_a_direct_one_does_not(chat, canon, looked_at):
    group, direct = chat.group("user_dana", "user_eli"), chat.direct()
    seen = looked_at("posture check")
    chat.ask(group, "posture check")
    canon.say(group, "user_dana", "posture check two", mentions=[canon.identity.agent_id])
    chat.answer(group, after=1)
    chat.ask(direct, "posture check three")
    plain, named, alone = map(shown, seen)
    assert "does not name you" in plain
    assert "names you" in named
    assert "no_reply" in plain
    assert "group chat" not in alone


def test_h16_no_member_can_stop_the_others_with_malformed_messages(chat, canon, looked_at):
    conversation = chat.direct()
    seen = looked_at("still there")
    for metadata in (
        {"type": ["x"]},
        ["list"],
        {"turnSemantics": {}},
        {"deliveryIntent": ["stop"]},
        {"messageChunk": 5},
    ):
        data = {
            "conversationId": "other",
            "message": {"text": "x \ud83d", "metadata": metadata, "attachments": [metadata]},
        }
        canon.emit("message.created", data)
    canon.emit("message.created", "not an object")
    canon.emit("conversation.updated", {"id": ["x"], "changes": 5})
    chat.ask(conversation, "still there?")
    assert seen


def test_a_contact_card_and_a_name_become_words_without_addresses(chat, canon, looked_at):
    conversation = chat.direct()
    seen = looked_at("[Contact card]")
    card = {"displayName": "Ada", "userType": "human", "userId": "user_ada"}
    canon.say(conversation, "user_dana", "", contentType="contact_card", contactCard=card)
    assert chat.answer(conversation)
    assert '[Contact card] \\"Ada\\" - human; userId: user_ada' in shown(seen[-1])


@pytest.mark.parametrize("way", ["interrupt", "stop_and_drop", "/stop"])
def test_h29_a_stop_reaches_the_message_whose_files_still_arrive(chat, canon, looked_at, way):
    conversation = chat.direct()
    seen = looked_at("stop check")
    canon.fault("media", kind="delay", delay=8.0)
    attachment = canon.host_file(b"late", "text/plain", "late.txt")
    queued = {"inboundDisposition": "queued"}
    message_id = canon.say(conversation, "user_dana", "stop check one", attachments=[attachment], metadata=queued)
    file = attachment["url"].removeprefix(canon.base_url)
    chat.wait(lambda c: any(item.path == file for item in c.requests("media")), 20, "the file was not asked for")
    if way.startswith("/"):
        canon.say(conversation, "user_dana", way)
        chat.answer(conversation)
    else:
        canon.signal(conversation, way, "user_dana")
    chat.wait(lambda c: any(message_id in item.path for item in c.requests("disposition")), 6, "it was not released")
    before = len(canon.messages(conversation))
    canon.say(conversation, "user_dana", "stop check two")
    assert chat.answer(conversation, after=before)
    assert "stop check one" not in shown(seen[0])
    assert len(seen) == 1
