"""Demonstrations that ask a person or choose silence, on the real gateway."""

import pytest
from canon_hermes_plugin.infrastructure.sandbox.demos import install_demos
from canon_hermes_plugin.infrastructure.sandbox.participant import Participant

pytestmark = pytest.mark.gateway


@pytest.fixture(scope="module")
def model(model):
    install_demos(model)
    return model


@pytest.fixture
def conversation(chat):
    return chat.direct()


@pytest.fixture
def person(chat, conversation):
    return Participant(chat, conversation, timeout=60)


def texts(canon, conversation):
    return [message.text for message in canon.messages(conversation)]


def test_silence_posts_nothing(canon, person, conversation):
    assert person.say("demo silence") == "silent"
    canon.wait_for(lambda c: c.node(conversation) is None, 10)
    assert texts(canon, conversation) == []


def test_a_card_waits_for_the_choice(canon, person, conversation):
    assert person.say("demo card") == "asked"
    person.answer("later", person.waiting()[0])
    assert person.follow() == "answered"
    assert texts(canon, conversation) == ['You picked "later" on the card.']


def test_a_question_waits_for_the_choice(canon, person, conversation):
    assert person.say("demo question") == "asked"
    person.answer("2", person.waiting()[0])
    assert person.follow() == "answered"
    assert "coffee" in texts(canon, conversation)[-1]


@pytest.mark.parametrize(("typed", "words"), [("allow", "You allowed"), ("deny", "You did not allow")])
def test_a_command_runs_only_when_allowed(canon, person, conversation, typed, words):
    assert person.say("demo command") == "asked"
    (asked,) = person.waiting()
    assert asked.kind == "approval"
    person.answer(typed, asked)
    assert person.follow() == "answered"
    assert texts(canon, conversation)[-1].startswith(words)


@pytest.mark.parametrize(("typed", "words"), [("allow", "Thank you"), ("deny", "Understood")])
def test_an_approval_does_not_hold_the_turn_and_its_decision_wakes_the_agent(canon, person, conversation, typed, words):
    assert person.say("demo approval") == "asked"
    assert len(canon.finals(conversation)) == 1
    person.answer(typed, person.waiting()[0])
    assert person.follow() == "answered"
    first, second = texts(canon, conversation)
    assert first.startswith("I asked for your approval")
    assert second.startswith(words)
