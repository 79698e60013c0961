"""What people wrote while the gateway was busy, stopping, dead or starting: all of it is answered, nothing twice."""

import json
import os
import signal
import time

import pytest
from canon_hermes_plugin.infrastructure.sandbox.model import Gate, ScriptedModel, ToolCall

pytestmark = pytest.mark.gateway


@pytest.fixture
def own_model():
    """A model of this test alone: it also reads the host's notes about restarts, and must not answer for others."""
    with ScriptedModel() as running:
        yield running


@pytest.fixture
def chat(new_gateway, own_canon, own_model):
    chat = new_gateway(canon=own_canon, model_url=own_model.url)
    yield chat
    chat.gateway.close()


def checkpoint(chat):
    """The file in which the gateway keeps its place on the stream."""
    (found,) = (chat.gateway.canon_home / "streams").glob("*.json")
    return found


def saved(chat, message_id):
    """Wait until the gateway noted that a message began."""
    deadline = time.monotonic() + 20
    while message_id not in json.loads(checkpoint(chat).read_bytes())["done"]:
        assert time.monotonic() < deadline, "the place on the stream was not saved"
        time.sleep(0.02)


def answers(canon, conversation):
    """The model's answers; the host greets a conversation that it restored, too (hermes-host §4.7)."""
    return [message.text for message in canon.finals(conversation) if message.text.startswith("Answer")]


def ask(chat, conversation, words):
    """Say ``words`` and wait for their answer and the end of its turn."""
    before = answers(chat.canon, conversation)
    chat.canon.say(conversation, "user_dana", words)
    chat.wait(lambda canon: answers(canon, conversation) != before or None, 60, f"{words!r} is not answered")
    chat.settled(conversation)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_waited_and_what_was_written_meanwhile_is_answered_once_after_a_restart(chat, own_canon, own_model, end):
    conversation, other = chat.direct(), chat.direct("user_erin")
    gate = Gate()
    own_model.script("first", ["Half of an ans", gate, "wer."])
    for words in ("second", "third", "fourth", "elsewhere"):
        own_model.script(words, [f"Answer {words}."])
    first = own_canon.say(conversation, "user_dana", "first")
    gate.wait_reached()
    saved(chat, first)
    waited = [own_canon.say(conversation, "user_dana", words) for words in ("second", "third")]
    chat.wait(lambda c: any(turn.get("queueDepth") == 2 for turn in c.logs.turns) or None, 20, "nothing waits")
    getattr(chat.gateway, end)()
    gate.open()
    own_canon.say(conversation, "user_dana", "fourth")
    own_canon.say(other, "user_erin", "elsewhere")
    chat.gateway.restart()
    chat.wait(lambda c: "Answer fourth." in answers(c, conversation) or None, 90, "not all is answered")
    chat.wait(lambda c: answers(c, other) or None, 30, "another conversation is not answered")
    chat.settled(conversation)
    assert answers(own_canon, conversation) == ["Answer second.", "Answer third.", "Answer fourth."]
    assert answers(own_canon, other) == ["Answer elsewhere."]
    replied = [message.fields.get("replyTo") for message in own_canon.finals(conversation)]
    assert [item for item in replied if item in waited] == waited


def test_a_message_whose_turn_was_opened_and_never_reached_the_model_is_answered_after_the_restart(
    chat, own_canon, own_model
):
    conversation = chat.direct()
    own_model.script("at once", ["Answer at once."])
    own_canon.say(conversation, "user_dana", "at once")
    chat.wait(
        lambda c: [turn for turn in c.logs.turns if turn["conversationId"] == conversation] or None, 30, "no turn"
    )
    chat.gateway.kill()
    assert answers(own_canon, conversation) == []
    chat.gateway.restart()
    chat.wait(lambda c: answers(c, conversation) or None, 60, "the message is lost")
    chat.settled(conversation)
    assert answers(own_canon, conversation) == ["Answer at once."]


def test_a_message_that_joined_a_run_which_died_is_answered_after_the_restart(chat, own_canon, own_model):
    conversation = chat.direct()
    gate = Gate()
    own_model.script("first", ["Half of an ans", gate, "wer."])
    own_model.script("joined", ["Answer joined."])
    own_canon.say(conversation, "user_dana", "first")
    gate.wait_reached()
    joined = own_canon.say(conversation, "user_dana", "joined", metadata={"deliveryIntent": "interleave"})
    chat.wait(lambda c: c.requests("read") or None, 20, "the message is not taken")
    time.sleep(1)
    chat.gateway.kill()
    gate.open()
    assert joined not in json.loads(checkpoint(chat).read_bytes())["done"]
    chat.gateway.restart()
    chat.wait(lambda c: "Answer joined." in answers(c, conversation) or None, 60, "the message is lost")


def test_chatter_elsewhere_pushes_nobody_out_of_the_queue(chat, own_canon, own_model):
    conversation, group = chat.direct(), chat.group()
    gate = Gate()
    own_model.script("first", ["Half of an ans", gate, "wer."])
    own_model.script("second", ["Answer second."])
    own_canon.say(conversation, "user_dana", "first")
    gate.wait_reached()
    own_canon.say(conversation, "user_dana", "second")
    for number in range(1100):
        own_canon.say(group, "user_dana", f"chatter {number}", metadata={"replyBehavior": "suppress_auto_reply"})
    own_model.script("elsewhere", ["Answer elsewhere."])
    ask(chat, chat.direct(), "elsewhere")
    chat.gateway.kill()
    gate.open()
    chat.gateway.restart()
    chat.wait(lambda c: answers(c, conversation) or None, 60, "the waiting message is lost")


def test_what_is_written_while_the_gateway_stops_is_answered_once_by_the_next(new_gateway, own_canon, own_model):
    chat = new_gateway(canon=own_canon, model_url=own_model.url, config={"agent": {"restart_drain_timeout": 30}})
    conversation, other = chat.direct(), chat.direct("user_erin")
    gate = Gate()
    own_model.script("first", ["Answer ", gate, "first."])
    for words in ("second", "elsewhere"):
        own_model.script(words, [f"Answer {words}."])
    try:
        own_canon.say(conversation, "user_dana", "first")
        gate.wait_reached()
        os.kill(chat.gateway.pid, signal.SIGINT)
        chat.wait(lambda _: "Stopping gateway" in chat.gateway.full_log() or None, 20, "it does not stop")
        own_canon.say(conversation, "user_dana", "second")
        own_canon.say(other, "user_erin", "elsewhere")
        chat.wait(lambda _: len(json.loads(checkpoint(chat).read_bytes())["done"]) == 1 or None, 20, "not noted")
        time.sleep(1)  # nothing to wait for: what is refused would be refused now
        gate.open()
        chat.wait(lambda _: not chat.gateway.running or None, 40, "it does not end")
        assert "Answer second." not in answers(own_canon, conversation)
        assert answers(own_canon, other) == []
        chat.gateway.restart()
        chat.wait(lambda c: "Answer second." in answers(c, conversation) or None, 90, "not answered")
        chat.wait(lambda c: answers(c, other) or None, 30, "another conversation is not answered")
        chat.settled(conversation)
        assert sorted(answers(own_canon, conversation)) == ["Answer first.", "Answer second."]
        assert answers(own_canon, other) == ["Answer elsewhere."]
        assert not [m.text for c in (conversation, other) for m in own_canon.messages(c) if "not accepting" in m.text]
    finally:
        chat.gateway.close()


def test_field_65_what_was_answered_is_not_answered_again_after_a_restart(chat, own_canon, own_model):
    conversation = chat.direct()
    for words in ("hello", "again"):
        own_model.script(words, [f"Answer {words}."])
    ask(chat, conversation, "hello")
    for _ in range(2):
        chat.gateway.kill()
        chat.gateway.restart()
        chat.wait_connected()
    ask(chat, conversation, "again")
    assert answers(own_canon, conversation) == ["Answer hello.", "Answer again."]


def test_field_67_what_is_older_than_an_hour_is_told_and_not_answered(chat, own_canon, own_model):
    conversation = chat.direct()
    for words in ("hello", "long ago", "today"):
        own_model.script(words, [f"Answer {words}."])
    ask(chat, conversation, "hello")
    chat.gateway.stop()
    own_canon.say(conversation, "user_dana", "long ago")
    file = checkpoint(chat)
    document = json.loads(file.read_bytes())
    file.write_text(json.dumps({**document, "heardAt": document["heardAt"] - 3_700_000}), encoding="utf-8")
    chat.gateway.restart()
    chat.wait_connected()
    ask(chat, conversation, "today")
    assert answers(own_canon, conversation) == ["Answer hello.", "Answer today."]
    assert "what was written meanwhile is not answered" in chat.gateway.full_log()


def test_a_place_that_cannot_be_read_costs_only_what_was_missed(chat, own_canon, own_model):
    conversation = chat.direct()
    for words in ("hello", "still"):
        own_model.script(words, [f"Answer {words}."])
    ask(chat, conversation, "hello")
    chat.gateway.kill()
    checkpoint(chat).write_bytes(b'{"cursor": ')
    chat.gateway.restart()
    chat.wait_connected()
    ask(chat, conversation, "still")
    assert answers(own_canon, conversation) == ["Answer hello.", "Answer still."]
    assert "is not usable" in chat.gateway.full_log()


@pytest.mark.parametrize("failing", [0, 2], ids=["blank writes arrive", "blank writes fail at first"])
def test_h6_words_that_showed_at_the_death_are_not_said_when_the_resumed_turn_chooses_silence(
    chat, own_canon, own_model, failing
):
    conversation, gate, silent = chat.direct(), Gate(), []
    silence = ToolCall("canon_runtime_control", {"action": "no_reply"})

    def answer(request):
        if request.round:
            return ("Nothing to add.",)
        if not gate.reached.is_set():
            return ("Thinking aloud. ", gate, silence)
        silent.append(request)
        return (silence,)

    own_model.script_with(lambda _: True, answer)
    own_canon.say(conversation, "user_dana", "keep quiet")
    gate.wait_reached(60)
    chat.wait(lambda canon: (canon.node(conversation) or {}).get("text") or None, 30, "nothing shows")
    chat.gateway.kill()
    gate.open()
    if failing:
        own_canon.fault("streaming", times=failing, matching=lambda r: not (r.body or {}).get("text"), status=503)
    chat.gateway.restart()
    chat.wait_connected()
    chat.wait(lambda _: silent or None, 60, "the host resumed nothing")
    chat.wait(lambda canon: canon.node(conversation) is None or None, 60, "the words still show")
    chat.settled(conversation)
    assert own_canon.messages(conversation) == []
