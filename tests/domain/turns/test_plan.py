"""The messages of one operation: ids, parts, metadata (turns §4.3, §5.3, §5.4)."""

import json

import pytest
from canon_hermes_plugin.domain.chunker import utf8_len
from canon_hermes_plugin.domain.message_limits import objection
from canon_hermes_plugin.domain.turns.plan import (
    COMPLETE,
    PROGRESS,
    Answer,
    MediaItem,
    metadata_units,
    operation_id,
    part_id,
    plan,
    real_message_id,
)
from hypothesis import assume, given
from hypothesis import strategies as st

TURN = "hermes-0123456789abcdef0123"
anything = st.text(max_size=40)


def planned(text="", **facts):
    return plan(Answer(text, **facts), "conv", "hermes-final-base")


@given(anything, st.text(min_size=1, max_size=40), st.integers(1, 10**6))
def test_invariant_33_ids_are_short_opaque_and_deterministic(conversation, turn, ordinal):
    made = operation_id(conversation, turn, ordinal)
    assert made == operation_id(conversation, turn, ordinal)
    assert made.isascii()
    assert len(made) == 45
    for secret in (conversation, turn):
        if len(secret) > 5:
            assert secret not in made


@given(
    st.tuples(anything, st.text(min_size=1), st.integers(1, 99)),
    st.tuples(anything, st.text(min_size=1), st.integers(1, 99)),
)
def test_invariant_33_different_operations_have_different_ids(one, other):
    assume(one != other)
    assert operation_id(*one) != operation_id(*other)


def test_components_do_not_run_into_each_other():
    assert operation_id("ab", "c", 1) != operation_id("a", "bc", 1)
    assert operation_id("a", "b1", 1) != operation_id("a", "b", 11)


@pytest.mark.parametrize("ordinal", [0, -1, True, 1.0, "1", None])
def test_an_ordinal_is_a_positive_integer(ordinal):
    with pytest.raises(ValueError, match="ordinal"):
        operation_id("conv", TURN, ordinal)


def test_without_a_turn_there_is_no_id():
    with pytest.raises(ValueError, match="turn id"):
        operation_id("conv", "", 1)


def test_a_surrogate_in_an_id_is_hashable():
    assert operation_id("conv\ud800", TURN, 1) != operation_id("conv", TURN, 1)


def test_a_part_id_never_exceeds_160_characters():
    assert len(part_id("x" * 200, "-part-12")) == 160
    assert part_id("x" * 200, "-part-12").endswith("-part-12")


@pytest.mark.parametrize(
    ("value", "real"),
    [
        ("msg_77", "msg_77"),
        (None, None),
        ("", None),
        ("canon-control:interrupt:1", None),
        ("canon-detached-approval:abc", None),
        (TURN, None),
        (f"{TURN}.2", None),
        (f"{TURN}.media-1", None),
        ("hermes-final-0f3c", "hermes-final-0f3c"),
    ],
)
def test_only_real_canon_ids_are_replied_to(value, real):
    assert real_message_id(value) == real


def test_a_single_part_has_neither_chunk_nor_part_id():
    (only,) = planned("hello", turn_id=TURN)
    assert only.message_id == "hermes-final-base"
    assert only.metadata == {**COMPLETE, "turnId": TURN}


@given(st.integers(2, 6), st.dictionaries(st.sampled_from(["turnTrail", "replyBehavior", "mine"]), anything))
def test_invariant_32_only_the_last_part_completes_the_turn(count, metadata):
    block = {"id": "tool:1", "turnId": TURN, "kind": "tool", "status": "completed", "sequence": 1}
    parts = planned(
        "\n\n".join("x" * 3700 for _ in range(count)),
        turn_id=TURN,
        reply_to="msg_1",
        metadata=metadata,
        trail=(block,),
        options={"contentType": "image", "attachments": [{"url": "u"}], "text": "ignored"},
    )
    *leading, last = parts
    assert len(parts) == count
    assert [p.metadata["messageChunk"]["index"] for p in parts] == list(range(1, count + 1))
    assert {p.metadata["messageChunk"]["count"] for p in parts} == {count}
    assert {p.metadata["messageChunk"]["groupId"] for p in parts} == {"hermes-final-base"}
    assert {p.reply_to for p in parts} == {"msg_1"}
    assert [p.message_id for p in parts] == [f"hermes-final-base-part-{i}" for i in range(1, count + 1)]
    for part in leading:
        assert {key: part.metadata[key] for key in PROGRESS} == PROGRESS
        assert not {"turnComplete", "turnTrail"} & set(part.metadata)
        assert part.metadata["turnId"] == TURN
        assert (part.content_type, tuple(part.attachments)) == (None, ())
    assert {key: last.metadata[key] for key in COMPLETE} == COMPLETE
    assert "replyBehavior" not in last.metadata
    assert last.metadata["turnTrail"] == [block]
    assert last.content_type == "image"
    assert list(last.attachments) == [{"url": "u"}]


def test_callers_cannot_overrule_the_marks_of_an_answer():
    (only,) = planned(
        "x", turn_id=TURN, metadata={"turnId": "forged", "turnSemantics": "control", "turnComplete": False}
    )
    assert only.metadata == {**COMPLETE, "turnId": TURN}


@given(st.integers(0, 6000), st.integers(0, 20))
def test_invariant_40_metadata_never_exceeds_what_canon_accepts(caller_size, blocks):
    trail = tuple({"id": f"tool:{i}", "text": "é" * 100} for i in range(blocks))
    for part in planned("x" * 4000, turn_id=TURN, metadata={"mine": "😀" * (caller_size // 2)}, trail=trail):
        assert metadata_units(part.metadata) <= 4096
        assert objection(part) is None


def test_a_trail_that_does_not_fit_is_dropped_and_never_the_message():
    trail = ({"id": "tool:1", "text": "x" * 3000},)
    (only,) = planned("x", metadata={"mine": "y" * 1500}, trail=trail)
    assert only.metadata == {"mine": "y" * 1500, **COMPLETE}


def test_a_trail_that_does_not_fit_is_told_to_the_log_once_in_ids_and_sizes(caplog):
    caplog.set_level("DEBUG", "canon_hermes_plugin.domain.turns.plan")
    trail = ({"id": "tool:1", "title": "zqx", "text": "x" * 4000},)
    media = (item("one"), item("two"), item())
    planned("zqx", turn_id=TURN, trail=trail, media=media)
    planned("zqx", turn_id=TURN, trail=(trail[0] | {"text": ""},))
    (line,) = caplog.messages
    assert TURN in line
    assert "hermes-final-base" in line
    assert "1 blocks" in line
    assert "zqx" not in line


@pytest.mark.parametrize("text", ["", " \n", "\u200b"])
def test_nothing_to_say_is_no_message(text):
    assert planned(text) == ()


def item(caption="", kind="image"):
    return MediaItem({"kind": kind, "url": f"u-{caption}"}, kind, caption)


def test_h10_files_without_a_caption_travel_with_the_last_part():
    *leading, last = planned("x" * 4000, media=(item(), item(kind="audio")))
    assert [message.attachments for message in leading] == [()]
    assert [a["kind"] for a in last.attachments] == ["image", "audio"]
    assert last.content_type == "image"


def test_h10_captioned_files_precede_the_answer_and_complete_nothing():
    first, last = planned("The answer.", media=(item("A chart"),), turn_id=TURN)
    assert (first.text, first.content_type) == ("A chart", "image")
    assert first.metadata == {"turnId": TURN, **PROGRESS}
    assert first.message_id == "hermes-final-base-media-1"
    assert (last.text, last.attachments) == ("The answer.", ())
    assert last.metadata["turnSemantics"] == "turn_complete"


def test_h10_long_captions_are_split_and_the_file_is_in_their_last_part():
    *captions, final = planned("Answer", media=(item("c" * 5000),))
    assert [bool(message.attachments) for message in captions] == [False, True]
    assert all(utf8_len(message.text) <= 3800 for message in captions)
    assert {message.metadata["turnSemantics"] for message in captions} == {"progress"}
    assert final.text == "Answer"


def test_h10_files_without_any_text_are_the_answer():
    (only,) = planned(media=(item(),))
    assert (only.text, len(only.attachments)) == ("", 1)
    assert only.metadata == COMPLETE


def test_h10_captioned_files_without_any_text_are_the_answer():
    first, last = planned(media=(item("one"), item("two")), turn_id=TURN)
    assert [first.metadata["turnSemantics"], last.metadata["turnSemantics"]] == ["progress", "turn_complete"]
    assert [first.text, last.text] == ["one", "two"]
    assert first.message_id != last.message_id


texts = st.text(max_size=9000)


@given(texts, st.lists(st.builds(item, texts), max_size=3))
def test_every_plan_is_acceptable_to_canon_with_distinct_ids_and_one_completion(text, media):
    messages = plan(Answer(text, media=tuple(media), turn_id=TURN), "conv", operation_id("conv", TURN, 1))
    assert [objection(message) for message in messages] == [None] * len(messages)
    assert len({message.message_id for message in messages}) == len(messages)
    semantics = [message.metadata["turnSemantics"] for message in messages]
    assert semantics == ["progress"] * (len(messages) - 1) + ["turn_complete"] * bool(messages)
    json.dumps([dict(message.metadata) for message in messages])
