"""One message, one answer: the whole way through the real gateway, host streaming on and off."""

import random
import re

import pytest

pytestmark = pytest.mark.gateway

BUDGET = 3800


@pytest.fixture(scope="module", params=[True, False], ids=["streaming", "whole"])
def gateway_options(request):
    return {"streaming": request.param}


def parts_in_order(messages):
    """Check the shape of a split answer and return its parts."""
    *leading, final = messages
    assert final.final
    assert "replyBehavior" not in final.metadata
    total = len(messages)
    for index, message in enumerate(messages, 1):
        assert 0 < len(message.text.encode()) <= BUDGET
        if total > 1:
            chunk = message.metadata["messageChunk"]
            assert (chunk["type"], chunk["index"], chunk["count"]) == ("text", index, total)
    for message in leading:
        assert message.metadata["turnSemantics"] == "progress"
        assert message.metadata["replyBehavior"] == "suppress_auto_reply"
        assert "turnTrail" not in message.metadata
    assert len({message.metadata["messageChunk"]["groupId"] for message in messages if total > 1}) <= 1
    return [message.text for message in messages]


def rebuilt(parts, text):
    """Whether the parts give the text back, up to one separator consumed at each cut."""
    rest = text
    for index, part in enumerate(parts):
        assert rest.startswith(part), f"part {index + 1} is not the next piece of the text"
        rest = rest[len(part) :]
        for separator in ("\n\n", "\n", " "):
            if index < len(parts) - 1 and rest.startswith(separator):
                rest = rest[len(separator) :]
                break
    assert rest == ""


def test_field_11_one_message_becomes_one_answer_that_replies_to_it(chat, model, canon):
    model.script("weather", ["It is ", "sunny."])
    conversation = chat.direct()
    answer = chat.ask(conversation, "How is the weather?")
    assert answer.text == "It is sunny."
    assert answer.final.fields["replyTo"] == answer.asked
    assert re.fullmatch(r"hermes-[0-9a-f]{20}", answer.final.metadata["turnId"])
    assert chat.settled(conversation) == "completed"
    assert len(canon.messages(conversation)) == 1


def test_the_turn_is_published_from_thinking_to_completed_under_one_id(chat, model, canon):
    model.script("state", ["All states."])
    conversation = chat.direct()
    answer = chat.ask(conversation, "state?")
    chat.settled(conversation)
    turns = [turn for turn in canon.logs.turns if turn["conversationId"] == conversation]
    assert turns[0]["state"] == "thinking"
    assert turns[0]["activeMessageIds"] == [answer.asked]
    assert turns[-1]["state"] == "completed"
    assert {turn["turnId"] for turn in turns} == {answer.final.metadata["turnId"]}
    canon.wait_for(lambda c: c.node(conversation) is None)


def test_a_plain_turn_makes_at_most_ten_requests(chat, model, canon):
    model.script("cheap", ["Cheap."])
    conversation = chat.direct()
    chat.ask(conversation, "warm up")
    chat.settled(conversation)
    before = len(canon.requests())
    chat.ask(conversation, "cheap?")
    chat.settled(conversation)
    made = [record.route for record in canon.requests()[before:] if record.route not in {"status", "signal"}]
    assert len(made) <= 10, made


@pytest.mark.parametrize(
    "unit",
    ["The quick brown fox. ", "שלום לכולם, מה נשמע היום? ", "👩‍👩‍👧‍👦🇮🇱👍🏽 "],
    ids=["ascii", "hebrew", "emoji"],
)
def test_12_kib_arrive_whole_in_ordered_parts_with_one_turn_complete(chat, model, canon, unit):
    text = (unit * (12 * 1024 // len(unit.encode()) + 1)).strip()
    model.script(unit[:8], [text[i : i + 200] for i in range(0, len(text), 200)])
    conversation = chat.direct()
    answer = chat.ask(conversation, f"say {unit[:8]}")
    rebuilt(parts_in_order(answer.messages), text)
    chat.settled(conversation)
    assert len(canon.finals(conversation)) == 1


def test_h30_72_000_characters_in_a_burst_arrive_whole(chat, model, canon):
    words = random.Random(7)
    text = " ".join(f"w{words.randrange(10**6):06d}" for _ in range(9000))
    model.script("burst", [text])
    conversation = chat.direct()
    answer = chat.ask(conversation, "burst please")
    rebuilt(parts_in_order(answer.messages), text)
    chat.settled(conversation)
    assert len(canon.finals(conversation)) == 1


def test_field_88_a_lost_response_is_settled_under_the_same_id(chat, model, canon):
    model.script("lossy", ["Stored once."])
    conversation = chat.direct()
    before = len(canon.requests("send"))
    canon.fault("send", kind="drop", after=True)
    answer = chat.ask(conversation, "lossy?")
    chat.settled(conversation)
    canon.wait_for(lambda c: len(c.requests("send")) >= before + 2)
    sent = canon.requests("send")[before:]
    assert len({record.body["messageId"] for record in sent}) == 1
    assert len({str(record.body) for record in sent}) == 1, "a replay is the identical request"
    assert [message.text for message in canon.messages(conversation)] == ["Stored once."]
    assert answer.text == "Stored once."


def test_a_500_is_tried_again_and_answers_once(chat, model, canon):
    model.script("flaky", ["After all."])
    conversation = chat.direct()
    canon.fault("send", status=500)
    answer = chat.ask(conversation, "flaky?")
    chat.settled(conversation)
    assert answer.text == "After all."
    assert len(canon.messages(conversation)) == 1


def test_two_turns_in_a_row_keep_the_memory_and_have_ids_of_their_own(chat, model):
    seen = []
    model.script_with("second", lambda request: [f"I know {len(request.body['messages'])} messages."])
    model.script("first", ["One."])
    conversation = chat.direct()
    first = chat.ask(conversation, "first")
    chat.settled(conversation)
    second = chat.ask(conversation, "second")
    seen = [first.final.metadata["turnId"], second.final.metadata["turnId"]]
    assert len(set(seen)) == 2
    assert second.text == "I know 4 messages."


def test_a_model_failure_is_told_once(chat, model, canon):
    from canon_hermes_plugin.infrastructure.sandbox.model import Fail

    model.script("broken", [Fail(400, "scripted refusal")])
    conversation = chat.direct()
    answer = chat.ask(conversation, "broken?")
    chat.settled(conversation)
    assert "model provider failed" in answer.text
    assert len(canon.messages(conversation)) == 1
