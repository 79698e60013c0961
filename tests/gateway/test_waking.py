"""Which messages wake a turn, and that each wakes at most one, whatever the stream does."""

import re

import pytest
from canon_hermes_plugin.infrastructure.sandbox.records import Person

pytestmark = pytest.mark.gateway

SUPPRESS = "suppress_auto_reply"
GATE = [
    # sender kind, turnSemantics, replyBehavior, wakes without a verdict
    ("human", None, None, True),
    ("human", "progress", None, True),
    ("human", "turn_complete", "allow_auto_reply", True),
    ("human", None, SUPPRESS, False),
    ("ai_agent", None, None, False),
    ("ai_agent", "progress", None, False),
    ("ai_agent", "turn_complete", None, True),
    ("ai_agent", "control", None, True),
    ("ai_agent", "turn_complete", SUPPRESS, False),
    (None, "turn_complete", None, True),
    (None, None, None, False),
]


@pytest.fixture(scope="module")
def people(canon):
    for kind in ("human", "ai_agent", None):
        canon.add_person(Person(f"sender_{kind}", f"Sender {kind}", kind))
    return lambda kind: f"sender_{kind}"


def asked(model, conversation):
    return [text for text in model.user_texts() if re.search(rf"{conversation}\b", text)]


@pytest.mark.parametrize("verdict", [None, "run_turn", "record_only"])
def test_the_gate_decides_who_wakes_a_turn(chat, canon, model, people, verdict):
    expected = {}
    for kind, semantics, behavior, wakes in GATE:
        conversation = chat.group("user_dana", people(kind))
        expected[conversation] = verdict == "run_turn" if verdict is not None else wakes
        metadata = {"turnSemantics": semantics, "replyBehavior": behavior}
        canon.say(
            conversation,
            people(kind),
            f"first in {conversation}",
            metadata={name: value for name, value in metadata.items() if value},
            payload={"turnDispatch": {"kind": verdict} if verdict else None},
        )
    for conversation, wakes in expected.items():
        if wakes:
            assert chat.answer(conversation)
            chat.settled(conversation)
        canon.say(conversation, "user_dana", f"second in {conversation}")
    for conversation, wakes in expected.items():
        # Messages of one conversation are handled in order: the second answer proves that the first was decided.
        assert chat.answer(conversation, after=1 if wakes else 0)
        chat.settled(conversation)
        runs = [text for text in asked(model, conversation) if "first in" in text.split("[New message]")[-1]]
        assert len(runs) == (1 if wakes else 0), conversation
        assert len(canon.finals(conversation)) == (2 if wakes else 1), conversation


def test_an_agent_that_completed_wakes_a_turn_without_becoming_the_responsible_human(chat, canon, model, people):
    conversation = chat.group("user_dana", people("ai_agent"))
    model.script("from the agent", ["To the agent."])
    canon.say(conversation, people("ai_agent"), "from the agent", metadata={"turnSemantics": "turn_complete"})
    (final,) = chat.answer(conversation)
    assert final.text == "To the agent."


def test_field_65_a_repeated_event_answers_once(chat, canon, model):
    conversation = chat.direct()
    model.script("repeat me", ["Once."])
    chat.ask(conversation, "repeat me")
    chat.settled(conversation)
    canon.repeat_events(6)
    model.script("afterwards", ["Afterwards."])
    chat.ask(conversation, "afterwards")
    chat.settled(conversation)
    assert [message.text for message in canon.finals(conversation)] == ["Once.", "Afterwards."]


@pytest.mark.parametrize("clean", [True, False])
def test_a_cut_stream_is_resumed_without_loss_or_repetition(chat, canon, model, clean):
    conversation = chat.direct()
    model.script("before the cut", ["Before."])
    model.script("during the cut", ["During."])
    chat.ask(conversation, "before the cut")
    chat.settled(conversation)
    assert canon.cut_stream(clean=clean) == 1
    answer = chat.ask(conversation, "during the cut")
    assert answer.text == "During."
    chat.settled(conversation)
    assert [message.text for message in canon.finals(conversation)] == ["Before.", "During."]


def test_what_was_said_without_waking_reaches_the_model_as_background(chat, canon, model, people):
    conversation = chat.group("user_dana", people("ai_agent"))
    canon.say(conversation, people("ai_agent"), "the build is green", payload={"turnDispatch": {"kind": "record_only"}})
    seen = []

    def look(request):
        seen.append(next(str(m["content"]) for m in reversed(request.body["messages"]) if m["role"] == "user"))
        return ["Seen."]

    model.script_with("what happened", look)
    chat.ask(conversation, "what happened?")
    assert "the build is green" in seen[0]
