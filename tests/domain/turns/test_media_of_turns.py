"""Files the host sends inside and outside a turn (turns §4.6, H10)."""

import asyncio

import pytest
from canon_hermes_plugin.domain.turns.model import HostMedia
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import settle


def picture(caption=None, **facts):
    values = {"mime_type": "image/png", "method": "image", "file_name": "chart.png", **facts}
    return HostMedia("conv_81", b"\x89PNG", caption=caption, **values)


async def test_h10_an_answer_with_a_picture_is_one_completion_with_trail_and_ids(bench):
    turn = await bench.open()
    ack = await bench.coordinator.media(turn, picture())
    assert ack.ok
    assert ack.message_id
    assert bench.texts == []
    await bench.say(turn, "Here is the chart.", notify=True)
    await bench.complete(turn)
    (final,) = bench.canon.messages
    assert final.text == "Here is the chart."
    assert [attachment["kind"] for attachment in final.attachments] == ["image"]
    assert final.content_type == "image"
    assert final.metadata["turnSemantics"] == "turn_complete"
    assert final.message_id


async def test_h10_a_captioned_picture_precedes_the_answer_and_completes_nothing(bench):
    turn = await bench.open()
    await bench.say(turn, "The answer.", notify=True)
    await bench.coordinator.media(turn, picture("A chart"))
    await bench.complete(turn)
    assert bench.texts == ["A chart", "The answer."]
    assert bench.finals == ["The answer."]


async def test_h10_files_alone_complete_the_turn(bench):
    turn = await bench.open()
    for method, mime in (("audio", "audio/ogg"), ("file", "application/pdf")):
        await bench.coordinator.media(turn, picture(method=method, mime_type=mime, duration_ms=1200))
    await bench.complete(turn)
    (final,) = bench.canon.messages
    assert [attachment["kind"] for attachment in final.attachments] == ["audio", "file"]
    assert final.attachments[0]["durationMs"] == 1200
    assert final.content_type == "audio"


async def test_h10_a_lost_response_repeats_nothing(bench):
    turn = await bench.open()
    await bench.coordinator.media(turn, picture("A chart"))
    await bench.say(turn, "The answer.", notify=True)
    bench.canon.faults.fail_next("send", Fault.lost_response())
    await bench.complete(turn)
    await bench.clock.advance(3)
    assert bench.texts == ["A chart", "The answer."]
    assert len(bench.canon.uploads) == 1


async def test_the_upload_begins_at_once_and_the_host_does_not_wait_for_it(bench):
    gate = bench.canon.faults.hold_next("upload")
    turn = await bench.open()
    await bench.coordinator.media(turn, picture())
    await settle()
    assert "upload" in bench.canon.operations()
    gate.set()
    await bench.complete(turn)
    assert len(bench.canon.messages) == 1


async def test_a_failed_upload_is_repeated_and_a_lost_file_is_told(bench):
    turn = await bench.open()
    bench.canon.faults.fail_next("upload", Fault.ambiguous(503), times=1)
    await bench.coordinator.media(turn, picture())
    await bench.clock.advance(1)
    bench.canon.faults.fail_next("upload", Fault.definitive(413), times=1)
    await bench.coordinator.media(turn, picture())
    await bench.say(turn, "Two charts.", notify=True)
    await bench.complete(turn)
    (final,) = bench.canon.messages
    assert len(final.attachments) == 1
    assert final.text == "Two charts.\n\nAn attachment could not be delivered."


@pytest.mark.parametrize("fault", [Fault.unreachable(), Fault.definitive(503), Fault.definitive(429)])
async def test_h12_a_file_outlasts_a_short_outage_like_its_answer(bench, fault):
    turn = await bench.open()
    bench.canon.faults.fail_next("upload", fault, times=4)
    await bench.coordinator.media(turn, picture())
    await bench.say(turn, "A chart.", notify=True)
    ending = asyncio.ensure_future(bench.coordinator.complete(turn, "success"))
    await bench.clock.advance(12)
    await ending
    (final,) = bench.canon.messages
    assert (final.text, len(final.attachments)) == ("A chart.", 1)


@pytest.mark.parametrize("outcome", ["failure", "cancelled"])
async def test_files_of_an_unsuccessful_turn_are_not_delivered(bench, outcome):
    turn = await bench.open()
    await bench.coordinator.media(turn, picture("A chart"))
    await bench.complete(turn, outcome)
    assert bench.texts == []


@pytest.mark.parametrize("first", [True, False])
async def test_invariant_42_a_silent_turn_delivers_no_file(bench, first):
    turn = await bench.open()
    if first:
        await bench.coordinator.media(turn, picture())
    bench.coordinator.silence(turn)
    ack = await bench.coordinator.media(turn, picture())
    assert ack.ok
    assert ack.facts["silenced"]
    await bench.complete(turn)
    await bench.clock.advance(1)
    assert bench.texts == []


async def test_a_file_outside_any_turn_is_delivered_at_once_with_an_id(bench):
    ack = await bench.coordinator.media(None, picture("x" * 5000, reply_to="msg_3"))
    assert ack.ok
    first, last = bench.canon.messages
    assert (first.attachments, len(last.attachments)) == ((), 1)
    assert last.metadata["turnSemantics"] == "turn_complete"
    assert last.reply_to == "msg_3"
    assert last.message_id


async def test_a_file_that_cannot_be_uploaded_outside_a_turn_is_a_failure(bench):
    bench.canon.faults.fail_next("upload", Fault.definitive(413))
    ack = await bench.coordinator.media(None, picture())
    assert (ack.ok, ack.retryable) == (False, False)
    assert bench.texts == []


@pytest.mark.parametrize(
    ("mime", "method", "kind"),
    [("video/mp4", "file", "video"), ("image/png", "image", "image"), ("application/zip", "file", "file")],
)
async def test_the_content_type_follows_the_attachment(bench, mime, method, kind):
    await bench.coordinator.media(None, picture(mime_type=mime, method=method))
    (message,) = bench.canon.messages
    assert message.content_type == kind
