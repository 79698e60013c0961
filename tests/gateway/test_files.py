"""Files in and out of a turn through the real gateway."""

import base64
import struct
import zlib

import pytest
from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewaySettings
from canon_hermes_plugin.infrastructure.sandbox.session import Chat

pytestmark = pytest.mark.gateway


@pytest.fixture(scope="module", params=[True, False], ids=["streaming", "whole"])
def gateway_options(request):
    return {"streaming": request.param}


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = zlib.compress(b"\0\xff\0\0")
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def test_h10_an_answer_with_a_picture_and_a_document_is_one_turn_complete(chat, canon, model, gateway):
    picture, document = gateway.home / "picture.png", gateway.home / "report.csv"
    picture.write_bytes(png())
    document.write_bytes(b"a,b\n1,2\n")
    model.script("send files", [f"Here they are.\nMEDIA:{picture}\nMEDIA:{document}"])
    conversation = chat.direct()
    answer = chat.ask(conversation, "send files")
    chat.settled(conversation)
    assert len(canon.finals(conversation)) == 1
    assert answer.final.text.strip() == "Here they are."
    sent = [item for message in answer.messages for item in message.fields.get("attachments") or []]
    assert sorted(item["fileName"] for item in sent) == ["picture.png", "report.csv"]
    uploads = {record.body["fileName"]: record.body for record in canon.requests("upload")}
    assert base64.b64decode(uploads["picture.png"]["data"]) == png()


def test_field_85_a_denied_path_is_not_sent(chat, canon, model):
    before = len(canon.requests("upload"))
    model.script("leak it", ["MEDIA:/etc/passwd"])
    conversation = chat.direct()
    chat.ask(conversation, "leak it")
    chat.settled(conversation)
    assert len(canon.requests("upload")) == before


def test_an_inbound_document_is_downloaded_for_the_model(chat, canon, model, gateway):
    seen = []

    def look(request):
        seen.append(str(request.body["messages"][-1]["content"]))
        return ["Read."]

    model.script_with("look at this", look)
    conversation = chat.direct()
    attachment = canon.host_file(b"%PDF-1.4 test", "application/pdf", "invoice.pdf")
    chat.ask(conversation, "look at this", attachments=[attachment])
    assert "invoice" in seen[0]
    assert str(gateway.home) in seen[0]


def test_an_attachment_the_host_refuses_leaves_one_line_that_names_the_setting(own_canon, model):
    closed = {"security": {"allow_private_urls": False}}
    with Gateway(GatewaySettings(own_canon.environment(), model.url, config=closed)) as gateway:
        chat = Chat(own_canon, gateway)
        chat.wait_connected()
        conversation = chat.direct()
        attachment = own_canon.host_file(b"%PDF-1.4 test", "application/pdf", "taxi.pdf")
        asked = chat.ask(conversation, "look at this", attachments=[attachment]).asked
        log = (gateway.root / "console.log").read_text(encoding="utf-8")
    assert own_canon.requests("media") == []
    (line,) = (line for line in log.splitlines() if "did not arrive" in line)
    assert "WARNING" in line
    assert f"message {asked} of {conversation}: 1 of 1 attachments did not arrive: no. 1 (13 bytes): " in line
    assert "security.allow_private_urls" in line
    assert "/media/" not in line
    assert "taxi" not in line
