"""The guarded byte stream: line ends, chunk borders, byte order mark, size of one event."""

from __future__ import annotations

import json

import pytest
from canon_hermes_plugin.infrastructure.canon.sse import EventGuard, event_source
from hypothesis import given, settings
from hypothesis import strategies as st


async def decode(chunks, max_event_bytes=1 << 20):
    """Return what the decoder makes of the chunks: (event, data, id) of every event with data."""

    async def body():
        for chunk in chunks:
            yield chunk

    guard, stamps = EventGuard(max_event_bytes), []
    source = event_source(body(), guard, lambda: stamps.append(1))
    found = [(event.event, event.data, event.id) async for event in source.aiter_sse() if event.data or event.id]
    assert len(stamps) == len(chunks)
    return found


FRAMES = (
    b'id: e1\nevent: message.created\ndata: {"a":1}\n\n: heartbeat\n\nevent: typing\ndata: one\ndata: two\n\n'
    b"id: e3\n\nid: e4\nevent: x\ndata:y\n\n"
)
EXPECTED = [
    ("message.created", '{"a":1}', "e1"),
    ("typing", "one\ntwo", ""),
    ("message", "", "e3"),
    ("x", "y", "e4"),
]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
async def test_defect_5_all_three_line_ends_decode_at_every_chunk_size(newline, size):
    raw = FRAMES.replace(b"\n", newline)
    assert await decode([raw[at : at + size] for at in range(0, len(raw), size)]) == EXPECTED


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
async def test_defect_5_every_single_cut_of_the_stream_gives_the_same_events(newline):
    raw = FRAMES.replace(b"\n", newline)
    for cut in range(len(raw)):
        assert await decode([raw[:cut], raw[cut:]]) == EXPECTED


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
async def test_an_event_is_decoded_as_soon_as_its_blank_line_is_there(newline):
    guard = EventGuard()
    assert b"data: 1" in guard.feed(b"event: x" + newline + b"data: 1" + newline + newline)


async def test_field_76_unicode_line_separators_inside_json_do_not_split_the_event():
    payload = json.dumps({"text": "a\u2028b\u2029c\u0085d\x0be\x0cf"}, ensure_ascii=False)
    raw = f"event: m\ndata: {payload}\n\n".encode()
    for size in (1, 5, 1000):
        assert await decode([raw[at : at + size] for at in range(0, len(raw), size)]) == [("m", payload, "")]


@pytest.mark.parametrize("size", [1, 2, 3, 50])
async def test_a_leading_byte_order_mark_is_dropped_and_a_later_one_is_data(size):
    raw = "\ufeffevent: m\ndata: \ufeffx\n\n".encode()
    assert await decode([raw[at : at + size] for at in range(0, len(raw), size)]) == [("m", "\ufeffx", "")]


async def test_a_stream_that_starts_like_a_byte_order_mark_loses_nothing():
    raw = b"\xef\xbbevent: m\ndata: x\n\nevent: n\ndata: y\n\n"
    assert (await decode([raw[:1], raw[1:2], raw[2:]]))[-1] == ("n", "y", "")


async def test_bytes_that_are_not_utf_8_harm_only_their_own_text():
    found = await decode([b"event: m\ndata: a\xffb\n\nevent: n\ndata: y\n\n"])
    assert found == [("m", "a\ufffdb", ""), ("n", "y", "")]


async def test_only_one_leading_blank_of_a_value_is_stripped():
    assert await decode([b"event:m\ndata:  two \n\n"]) == [("m", " two ", "")]


async def test_an_unterminated_event_at_the_end_is_dropped():
    assert await decode([b"event: m\ndata: x\n\nevent: n\ndata: y\n"]) == [("m", "x", "")]


async def test_field_65_an_event_without_an_id_is_told_from_one_that_repeats_the_id_before_it():
    raw = b"id: e1\nevent: a\ndata: 1\n\nevent: b\ndata: 2\n\nid: e1\nevent: a\ndata: 1\n\n"
    assert [event_id for _, _, event_id in await decode([raw])] == ["e1", "", "e1"]


BIG = b"id: big\nevent: m\ndata: " + b"x" * 5000 + b"\n\n"


@pytest.mark.parametrize("size", [1, 100, 777, 100_000])
async def test_an_oversized_event_is_skipped_and_harms_neither_neighbour(size):
    raw = b"id: e1\nevent: m\ndata: 1\n\n" + BIG + b"id: e3\nevent: m\ndata: 3\n\n"
    found = await decode([raw[at : at + size] for at in range(0, len(raw), size)], max_event_bytes=1000)
    assert found == [("m", "1", "e1"), ("message", "", "big"), ("m", "3", "e3")], "its id still moves the cursor"


async def test_an_oversized_event_in_many_lines_is_skipped_too():
    raw = b"event: m\n" + b"data: y\n" * 1000 + b"\nevent: n\ndata: 3\n\n"
    for size in (1, 10, 100_000):
        found = await decode([raw[at : at + size] for at in range(0, len(raw), size)], max_event_bytes=1000)
        assert found == [("n", "3", "")]


async def test_two_oversized_events_in_a_row_are_both_skipped():
    found = await decode([BIG, BIG, b"event: n\ndata: 3\n\n"], max_event_bytes=1000)
    assert found == [("message", "", "big"), ("message", "", "big"), ("n", "3", "")]


async def test_an_event_up_to_the_bound_passes_even_in_small_pieces():
    raw = b"event: m\ndata: " + b"x" * 900 + b"\n\n"
    found = await decode([raw[at : at + 9] for at in range(0, len(raw), 9)], max_event_bytes=1000)
    assert found == [("m", "x" * 900, "")]


def test_memory_stays_bounded_while_an_endless_event_is_skipped():
    guard = EventGuard(10_000)
    for _ in range(1000):
        assert guard.feed(b"x" * 1000) == b""
        assert sum(map(len, guard._pending)) <= 11_000
    assert guard.skipped == 1


LINES = st.lists(
    st.sampled_from(
        [
            b"data: x",
            b"data: {}",
            b"event: m",
            b"id: 7",
            b": note",
            b"",
            b"",
            b"data",
            b"id",
            b"nonsense: 1",
            b"retry: 5",
        ]
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.integers(1, 9), min_size=1, max_size=8))
async def test_chunk_borders_never_matter(lines, newline, sizes):
    raw, chunks, at, turn = newline.join([*lines, b""]), [], 0, 0
    whole = await decode([raw]) if raw else []
    while at < len(raw):
        size = sizes[turn % len(sizes)]
        chunks.append(raw[at : at + size])
        at, turn = at + size, turn + 1
    assert await decode(chunks) == whole
    assert whole == reference(raw)


def reference(raw):
    """The same by a plain reading of the whole text."""
    text = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode()
    found, event, data, event_id = [], "", [], ""
    *lines, _ = text.split("\n")
    for line in lines:
        if not line:
            if (data and "".join(data)) or len(data) > 1 or event_id:
                found.append((event or "message", "\n".join(data), event_id))
            event, data, event_id = "", [], ""
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            event = value
        elif name == "data":
            data.append(value)
        elif name == "id":
            event_id = value
    return found
