"""What a turn costs over real HTTP: its live side never delays its answer, and nothing of it waits without need."""

from __future__ import annotations

import asyncio
import time

import pytest
from canon_hermes_plugin.domain.chunker import split
from canon_hermes_plugin.domain.turns.preview import PREVIEW_BYTES
from canon_hermes_plugin.ports.canon import NodeWrite, OutboundMessage, TurnPublication

pytestmark = pytest.mark.bench

DELAYS = (0.0, 0.2, 0.5, 1.0)
TOKENS = 6
BEAT = 0.1


async def model(tokens):
    """Put one token every :data:`BEAT` seconds, whatever the reader does; return when the last one was out."""
    for number in range(TOKENS):
        await asyncio.sleep(BEAT)
        last = time.monotonic()
        tokens.put_nowait(f"Word {number}.")
    return last


def slow_live_side(rig, delay):
    rig.canon.clear_faults()
    for route in ("streaming", "turn"):
        rig.canon.fault(route, kind="delay", delay=delay, times=None)


async def wait_after_the_last_token(rig, conversation, bridge):
    """Return the seconds from the model's last token to the arrival of the first durable part."""
    tokens = asyncio.Queue()
    producing = asyncio.ensure_future(model(tokens))
    await bridge(rig, conversation, tokens)
    sends = rig.arrivals(conversation, "send")
    assert len(sends) == 1
    return sends[0].at_ms / 1000 - await producing


async def ours(rig, conversation, tokens):
    turn = await rig.open(conversation)
    text, bubble = "", None
    for _ in range(TOKENS):
        text += await tokens.get()
        bubble = await rig.show(turn, bubble, text)
    await rig.finalize(turn, bubble, text)
    await rig.turns.complete(turn, "success")


async def naive(rig, conversation, tokens):
    """A bridge that awaits every preview before it looks at the next token."""
    text = ""
    for _ in range(TOKENS):
        text += await tokens.get()
        await rig.api.write_node(NodeWrite(conversation, "hermes-naive", text))
    await rig.api.send(OutboundMessage(conversation, text, message_id=f"naive-{conversation}"))


async def test_slow_live_writes_leave_the_time_to_the_first_durable_part_unchanged(rig, record_property):
    best = dict.fromkeys(DELAYS, float("inf"))
    for turn in range(3):
        for delay in DELAYS[turn:] + DELAYS[:turn]:
            slow_live_side(rig, delay)
            best[delay] = min(best[delay], await wait_after_the_last_token(rig, rig.conversation(), ours))
    slow_live_side(rig, 0.5)
    lost = await wait_after_the_last_token(rig, rig.conversation(), naive) - best[0.0]
    record_property("seconds", {**best, "naive at 0.5": lost})
    assert lost > 2.0, "the measure does not see a bridge that awaits its previews"
    assert all(best[delay] - best[0.0] <= 0.05 for delay in DELAYS)


async def test_2000_deltas_in_ten_seconds_make_few_live_writes_and_publications(rig, record_property):
    turn = await rig.open()
    bubble, text, start = None, "", time.monotonic()
    for number in range(2000):
        text += f"w{number} "
        bubble = await rig.show(turn, bubble, text)
        await asyncio.sleep(max(0.0, start + (number + 1) * 0.005 - time.monotonic()))
    elapsed = time.monotonic() - start
    await rig.finalize(turn, bubble, text)
    await rig.turns.complete(turn, "success")
    await rig.settle()
    writes = len(rig.arrivals(turn.conversation_id, "streaming"))
    publications = len(rig.arrivals(turn.conversation_id, "turn"))
    record_property("counts", {"writes": writes, "publications": publications, "seconds": elapsed})
    # A machine that takes longer than ten seconds is allowed four writes for each further second.
    assert 20 <= writes <= 45 + 4 * (elapsed - 10)
    assert 3 <= publications <= 7 + (elapsed - 10) / 5
    assert "".join(message.text for message in rig.canon.messages(turn.conversation_id)).startswith("w0 w1 ")


async def round_trip(rig, conversation):
    start = time.monotonic()
    await rig.api.publish_turn(TurnPublication(conversation, "thinking", 0, 0, {}))
    return time.monotonic() - start


async def from_last_part_to_closed(rig):
    """Return the seconds from the last part's arrival to that of the closing state, and the requests in between."""
    turn = await rig.open()
    await rig.stream(turn, ["One.", "One. Two.", "One. Two. " + "Three. " * 1200])
    await rig.turns.complete(turn, "success")
    conversation = turn.conversation_id

    def closed(canon):
        return [record for record in rig.arrivals(conversation, "turn") if record.body["state"] == "completed"]

    closing = (await rig.canon.until(closed))[0]
    last = rig.arrivals(conversation, "send")[-1]
    between = [r for r in rig.arrivals(conversation) if last.number < r.number < closing.number]
    return (closing.at_ms - last.at_ms) / 1000, len(between)


@pytest.mark.parametrize("latency", [0.02, 0.1])
async def test_the_turn_closes_a_few_round_trips_after_its_last_part(rig, latency, record_property):
    for route in ("send", "turn", "streaming", "typing"):
        rig.canon.fault(route, kind="delay", delay=latency, times=None)
    trips = [await round_trip(rig, rig.conversation()) for _ in range(5)]
    seen = [await from_last_part_to_closed(rig) for _ in range(5)]
    gap, between = min(gap for gap, _ in seen), max(between for _, between in seen)
    record_property("figures", {"gap": gap, "round trip": min(trips), "requests between": between})
    assert gap <= 3 * min(trips)
    assert between <= 3


def megabyte():
    line = "The supplier wrote again, 12 boxes are missing; see invoice A-4711 — übermorgen. 🚚\n"
    return (line * (2**20 // len(line.encode()) + 1)).encode()[: 2**20].decode("utf-8", "ignore").rstrip()


async def first_part_after_a_megabyte(rig, text):
    """Stream a MiB and return the seconds from its last token to the first durable part."""
    turn = await rig.open()
    bubble = None
    for end in range(2**16, len(text), 2**16):
        bubble = await rig.show(turn, bubble, text[:end])
        await asyncio.sleep(0.1)
    last = time.monotonic()
    bubble = await rig.show(turn, bubble, text)
    await rig.finalize(turn, bubble, text)
    await rig.turns.complete(turn, "success")
    sends = rig.arrivals(turn.conversation_id, "send")
    return turn.conversation_id, sends[0].at_ms / 1000 - last


async def test_a_mebibyte_shows_its_first_part_at_once_and_arrives_whole(rig, record_property):
    text = megabyte()
    waits = []
    for _ in range(3):
        conversation, wait = await first_part_after_a_megabyte(rig, text)
        waits.append(wait)
        assert [message.text for message in rig.canon.messages(conversation)] == split(text)
        assert len(rig.canon.finals(conversation)) == 1
    await rig.settle()
    sizes = [len(node.get("text", "").encode()) for node in rig.canon.logs.nodes]
    record_property("figures", {"first part": min(waits), "largest preview": max(sizes), "previews": len(sizes)})
    assert min(waits) <= 0.15
    assert 1000 < max(sizes) <= PREVIEW_BYTES


async def test_a_live_side_that_hangs_in_150_conversations_leaves_room_for_answers(rig, record_property):
    conversations = [rig.conversation() for _ in range(150)]

    async def answer(conversation):
        start = time.monotonic()
        await rig.api.send(OutboundMessage(conversation, "Answer.", message_id=f"m-{conversation}-{start}"))
        return time.monotonic() - start

    alone = min([await answer(conversations[0]) for _ in range(5)])
    rig.canon.fault("streaming", kind="delay", delay=3.0, times=None)
    writes = [asyncio.ensure_future(rig.api.write_node(NodeWrite(name, "hermes-x", "..."))) for name in conversations]
    await asyncio.sleep(0.5)
    beside = max([await answer(name) for name in conversations[:3]])
    hanging = sum(not write.done() for write in writes)
    record_property("seconds", {"alone": alone, "beside": beside, "hanging": hanging})
    assert hanging == len(writes)
    assert beside <= alone + 1.0
    rig.canon.clear_faults()
    await asyncio.gather(*writes)
