"""A stop whose way through Canon is slow or broken ends what it was meant for, and nothing that was sent after it."""

import pytest
from canon_hermes_plugin.infrastructure.sandbox.model import Gate

pytestmark = pytest.mark.gateway


@pytest.fixture
def chat(new_gateway, own_canon):
    chat = new_gateway(canon=own_canon)
    yield chat
    chat.gateway.close()


def answers(canon, conversation):
    return [message.text for message in canon.finals(conversation) if message.text.startswith("Answer")]


def test_a_message_sent_after_a_stop_and_clear_is_answered_though_canon_answers_the_request_late(
    chat, own_canon, model
):
    conversation, gate = chat.direct(), Gate()
    model.script("first", ["Half ", gate, "Answer first."])
    model.script("second", ["Answer second."])
    own_canon.say(conversation, "user_dana", "first")
    gate.wait_reached()
    own_canon.fault("signal", times=1, after=True, kind="delay", delay=7)
    asked = len(own_canon.requests("signal"))
    own_canon.signal(conversation, "stop_and_drop", "user_dana")
    chat.wait(lambda c: len(c.requests("signal")) > asked or None, 20, "the signal is not asked for")
    own_canon.say(conversation, "user_dana", "second")
    chat.wait(lambda c: answers(c, conversation) or None, 60, "the message is dropped")
    gate.open()
    chat.settled(conversation)
    assert answers(own_canon, conversation) == ["Answer second."]


def test_a_stop_that_canon_gave_too_late_ends_no_run_that_began_after_it(chat, own_canon, model):
    conversation, first, second = chat.direct(), Gate(), Gate()
    model.script("first", ["Answer ", first, "first."])
    model.script("second", ["Answer ", second, "second."])
    own_canon.say(conversation, "user_dana", "first")
    first.wait_reached()
    own_canon.fault("signal", times=None, status=503)
    own_canon.signal(conversation, "interrupt", "user_dana")
    chat.wait(lambda c: c.requests("signal") or None, 20, "the signal is not asked for")
    first.open()
    chat.wait(lambda c: answers(c, conversation) or None, 30, "the first run does not end")
    own_canon.say(conversation, "user_dana", "second")
    second.wait_reached()
    own_canon.clear_faults("signal")
    chat.wait(lambda _: "runtime signal interrupt" in chat.gateway.full_log() or None, 40, "the signal is not found")
    second.open()
    chat.settled(conversation)
    assert answers(own_canon, conversation) == ["Answer first.", "Answer second."]
