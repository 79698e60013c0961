"""Every demonstration of the sandbox plays on the real gateway and ends the way its menu line promises."""

import pytest
from canon_hermes_plugin.infrastructure.sandbox.demos import DEMOS, install_demos, long_answer, picture
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


def test_the_menu_names_every_demonstration(canon, person, conversation):
    assert person.say("demo") == "answered"
    (text,) = texts(canon, conversation)
    assert all(f"demo {demo.name}:" in text for demo in DEMOS)


def test_long_comes_in_parts_that_lose_nothing(canon, person, conversation):
    assert person.say("demo long") == "answered"
    parts = texts(canon, conversation)
    assert len(parts) > 1
    assert "".join("".join(parts).split()) == "".join(long_answer().split())
    assert len(canon.finals(conversation)) == 1


def test_tools_leave_a_trail(canon, person, conversation):
    assert person.say("demo tools") == "answered"
    (final,) = canon.finals(conversation)
    assert [block["title"] for block in final.metadata["turnTrail"]] == ["terminal"]


def test_media_posts_the_picture(canon, person, conversation):
    assert person.say("demo media") == "answered"
    shown = [it for message in canon.messages(conversation) for it in message.fields.get("attachments", [])]
    assert [it["kind"] for it in shown] == ["image"]
    assert canon.media.files[shown[0]["url"].rsplit("/", 1)[1]].data == picture()


def test_a_demonstration_plays_again_in_the_same_session_and_beside_another_of_the_same_tool(
    canon, model, person, conversation
):
    before = len(model.requests)
    assert [person.say(f"demo {name}") for name in ("silence", "silence")] == ["silent", "silent"]
    assert [person.say(f"demo {name}") for name in ("tools", "media", "tools")] == ["answered"] * 3
    played = [request for request in model.requests[before:] if request.streaming]
    assert len(played) <= 10, "each of the five needs one call of the tool and one round after it"
    assert len(canon.finals(conversation)) == 3


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
