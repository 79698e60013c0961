"""A Canon that is slow, refuses, or loses answers: the agent's people still get every answer once (turns §4.3, H12)."""

import time

import pytest
from canon_hermes_plugin.domain.turns.notice import NOTICE
from canon_hermes_plugin.infrastructure.sandbox.model import Gate

pytestmark = pytest.mark.gateway

FRAMES = [f"word{number} " for number in range(40)]
TEXT = "".join(FRAMES).strip()


def posted(canon, conversation):
    return [message.text for message in canon.messages(conversation) if not message.salvaged]


def wait_for_texts(chat, conversation, texts, timeout=60):
    chat.wait(lambda c: posted(c, conversation) == texts or None, timeout, f"not {len(texts)} messages")


def test_field_06_88_a_lost_response_is_settled_without_a_second_copy(chat, canon, model):
    conversation = chat.direct()
    model.script("lost once", ["The one answer."])
    canon.fault("send", kind="drop", after=True)
    chat.ask(conversation, "lost once")
    chat.settled(conversation)
    sent = [record.body for record in canon.requests("send") if record.body["conversationId"] == conversation]
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert posted(canon, conversation) == ["The one answer."]


def test_field_09_a_long_outage_in_the_middle_of_a_split_answer_loses_and_repeats_nothing(chat, canon, model):
    conversation = chat.direct()
    parts = [letter * 3600 for letter in "abc"]
    model.script("outage", ["\n\n".join(parts)])

    def second_part(record):
        return record.body.get("metadata", {}).get("messageChunk", {}).get("index") == 2

    canon.fault("send", status=500, times=4, matching=second_part)
    canon.say(conversation, "user_dana", "outage")
    wait_for_texts(chat, conversation, parts)
    assert len(canon.finals(conversation)) == 1


@pytest.mark.parametrize("how", [{"status": 503}, {"status": 429}], ids=str)
def test_h12_an_answer_outlasts_an_outage_that_provably_stored_nothing(chat, canon, model, how):
    conversation = chat.direct()
    model.script("outlasts", ["The one answer."])
    canon.fault("send", times=4, **how)
    canon.say(conversation, "user_dana", "outlasts")
    wait_for_texts(chat, conversation, ["The one answer."])
    sent = [record.body for record in canon.requests("send") if record.body["conversationId"] == conversation]
    assert len(sent) == 5
    assert all(body == sent[0] for body in sent)


def test_h12_a_refused_answer_is_told_to_the_person(chat, canon, model):
    conversation = chat.direct()
    model.script("refused", ["Unacceptable answer."])
    canon.fault("send", status=400)
    chat.ask(conversation, "refused")
    assert posted(canon, conversation) == [NOTICE]
    model.script("afterwards", ["All is well."])
    chat.ask(conversation, "afterwards")
    assert posted(canon, conversation) == [NOTICE, "All is well."]


@pytest.mark.parametrize("route", ["streaming", "turn", "typing", "read"])
def test_what_is_best_effort_may_fail_without_consequence(chat, canon, model, route):
    conversation = chat.direct()
    model.script(f"broken {route}", FRAMES)
    canon.fault(route, status=503, times=None)
    chat.ask(conversation, f"broken {route}")
    assert posted(canon, conversation) == [TEXT]


def test_a_canon_that_answers_slowly_costs_the_turn_nothing(chat, canon, model):
    quick, slow = chat.direct(), chat.direct()
    model.script("first", ["Warm."])
    chat.ask(quick, "first")

    def seconds(conversation):
        begun = time.monotonic()
        chat.ask(conversation, "measured")
        return time.monotonic() - begun

    model.script("measured", FRAMES)
    usual = seconds(quick)
    for route in ("streaming", "turn", "typing", "read"):
        canon.fault(route, kind="delay", delay=2.0, times=None)
    assert seconds(slow) < usual + 2.0
    assert posted(canon, slow) == [TEXT]


def test_a_stopped_answer_leaves_its_text_without_the_cursor(chat, canon, model):
    conversation = chat.direct()
    gate = Gate()
    model.script("stop me", [*FRAMES, gate, "never said"])
    canon.say(conversation, "user_dana", "stop me")
    gate.wait_reached()
    chat.wait(lambda c: (c.node(conversation) or {}).get("text") or None, 30, "nothing shown")
    canon.signal(conversation, "interrupt", "user_dana")
    assert chat.settled(conversation) == "interrupted"
    gate.open()
    chat.wait(lambda c: c.node(conversation) is None or None, 30, "the node stayed")
    assert canon.finals(conversation) == []
    assert not [m for m in canon.messages(conversation) if "▉" in m.text]


def test_h10_an_answer_with_a_file_is_one_completion(chat, canon, model, tmp_path):
    conversation = chat.direct()
    picture = tmp_path / "chart.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    model.script("draw", ["Here is the chart.\n", f"MEDIA:{picture}"])
    answer = chat.ask(conversation, "draw")
    chat.settled(conversation)
    assert posted(canon, conversation) == ["Here is the chart."]
    (attachment,) = answer.final.fields["attachments"]
    assert attachment["kind"] == "image"
    assert answer.final.metadata["turnSemantics"] == "turn_complete"
