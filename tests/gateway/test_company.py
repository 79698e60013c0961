"""Several people and several voices at once: nothing crosses, nothing is swallowed, nothing ends up in an answer."""

import asyncio
import json

import pytest
from canon_hermes_plugin.infrastructure.sandbox.model import Gate, ToolCall

pytestmark = pytest.mark.gateway


@pytest.fixture(scope="module", params=[True, False], ids=["streaming", "whole"])
def gateway_options(request):
    return {"streaming": request.param}


def finals(canon, conversation):
    return [message.text for message in canon.finals(conversation)]


def asides(canon, conversation):
    """Return what was posted beside the answers, and check that it wakes nobody."""
    found = [
        m for m in canon.messages(conversation) if not m.final and not m.salvaged and "messageChunk" not in m.metadata
    ]
    for message in found:
        assert message.metadata["turnSemantics"] == "progress"
        assert message.metadata["replyBehavior"] == "suppress_auto_reply"
        assert "turnId" not in message.metadata
    return [message.text for message in found]


def posted(canon, conversation):
    """Return everything that was posted; a command's reply may come while its run still ends, or just after."""
    return [message.text for message in canon.messages(conversation) if not message.salvaged]


def closed(canon, conversation):
    states = {}
    for turn in canon.logs.turns:
        if turn["conversationId"] == conversation:
            states[turn["turnId"]] = turn["state"]
    return [state for state in states.values() if state in {"completed", "interrupted"}]


@pytest.fixture
def held(chat, canon, model):
    """Start a turn in a conversation and hold it; returns the gate and the question's id."""

    def hold(conversation, word, *, user_id="user_dana", answer=("Held ", "answer.")):
        gate = Gate()
        model.script(word, [answer[0], gate, *answer[1:]])
        asked = canon.say(conversation, user_id, word)
        gate.wait_reached()
        return gate, asked

    return hold


def test_h39_two_people_with_open_turns_in_one_group_keep_their_own_answers(chat, canon, held):
    conversation = chat.group("user_dana", "user_bob")
    alice, first = held(conversation, "question of dana", answer=("For Dana, ", "really."))
    bob, second = held(conversation, "question of bob", user_id="user_bob", answer=("For Bob, ", "really."))
    bob.open()
    chat.wait(lambda c: len(c.finals(conversation)) == 1, 60, "no answer for Bob")
    alice.open()
    chat.wait(lambda c: len(c.finals(conversation)) == 2, 60, "no answer for Dana")
    by_question = {message.fields["replyTo"]: message for message in canon.finals(conversation)}
    assert by_question[first].text == "For Dana, really."
    assert by_question[second].text == "For Bob, really."
    assert len({message.metadata["turnId"] for message in by_question.values()}) == 2


def test_h06_silence_in_one_turn_of_a_group_leaves_the_younger_one_alone(chat, canon, model, held):
    conversation = chat.group("user_dana", "user_bob")
    gate = Gate()
    silence = ToolCall("canon_runtime_control", {"action": "no_reply"})
    model.script("dana wonders", ["Hm. ", gate, silence], ["Never said."])
    canon.say(conversation, "user_dana", "dana wonders")
    gate.wait_reached()
    bob, asked = held(conversation, "bob wonders", user_id="user_bob", answer=("For Bob, ", "really."))
    gate.open()
    chat.wait(lambda c: closed(c, conversation) == ["completed"], 60, "the silent turn did not close")
    bob.open()
    chat.wait(lambda c: closed(c, conversation) == ["completed", "completed"], 60, "Bob's turn did not close")
    (answer,) = canon.finals(conversation)
    assert (answer.text, answer.fields["replyTo"]) == ("For Bob, really.", asked)
    assert asides(canon, conversation) == []


def test_h09_a_command_during_a_turn_is_answered_beside_it(chat, canon, held):
    conversation = chat.direct()
    gate, _ = held(conversation, "hold for a command", answer=("Real ", "answer."))
    canon.say(conversation, "user_dana", "/status")
    chat.wait(lambda c: c.messages(conversation), 30, "the command was not answered")
    gate.open()
    chat.wait(lambda c: c.finals(conversation), 60, "no answer")
    assert finals(canon, conversation) == ["Real answer."]
    (reply,) = asides(canon, conversation)
    assert "Hermes" in reply


def test_h09_the_stop_command_confirms_and_ends_the_turn_as_interrupted(chat, canon, held):
    conversation = chat.direct()
    gate, _ = held(conversation, "hold for a stop", answer=("Partial ", "answer."))
    canon.say(conversation, "user_dana", "/stop")
    chat.wait(lambda c: closed(c, conversation) == ["interrupted"], 30, "the turn did not close")
    gate.open()
    (reply,) = chat.wait(lambda c: posted(c, conversation), 30, "not confirmed")
    assert "answer" not in reply
    assert chat.ask(conversation, "are you there?").text, "the session is free again"


def test_the_interrupt_signal_stops_the_turn(chat, canon, held):
    conversation = chat.direct()
    gate, _ = held(conversation, "hold for a signal")
    canon.signal(conversation, "interrupt", "user_dana")
    chat.wait(lambda c: closed(c, conversation) == ["interrupted"], 30, "the turn did not close")
    gate.open()
    assert finals(canon, conversation) == []


def test_h29_a_signal_of_somebody_else_reaches_the_open_turn_of_a_group(chat, canon, held):
    conversation = chat.group("user_dana", "user_bob")
    gate, _ = held(conversation, "hold for bob's signal")
    canon.signal(conversation, "interrupt", "user_bob")
    chat.wait(lambda c: closed(c, conversation) == ["interrupted"], 30, "the turn did not close")
    gate.open()
    assert finals(canon, conversation) == []


def test_h28_stop_and_drop_empties_the_queue_and_the_shelf(chat, canon, model, held):
    conversation = chat.direct()
    gate, _ = held(conversation, "hold for a drop")
    queued = {"deliveryIntent": "queue", "inboundDisposition": "queued"}
    ids = [canon.say(conversation, "user_dana", f"dropped {number}", metadata=queued) for number in range(3)]
    chat.wait(
        lambda c: [t for t in c.logs.turns if t["conversationId"] == conversation][-1]["queueDepth"] == 3, 30, "depth"
    )
    canon.signal(conversation, "stop_and_drop", "user_dana")
    chat.wait(lambda c: closed(c, conversation) == ["interrupted"], 30, "the turn did not close")
    gate.open()
    chat.wait(lambda c: {body["messageId"] for body in c.logs.dispositions} >= set(ids), 30, "still on the shelf")
    assert chat.ask(conversation, "after the drop").text
    assert not [text for text in model.user_texts() if text.startswith("dropped")]


def test_a_new_session_forgets_the_conversation(chat, canon, model, held):
    conversation = chat.direct()
    gate, _ = held(conversation, "hold for a new session")
    canon.signal(conversation, "new_session", "user_dana")
    chat.wait(lambda c: closed(c, conversation) == ["interrupted"], 30, "the turn did not close")
    gate.open()
    model.script_with("count me", lambda request: [f"{len(request.body['messages'])} messages"])
    (confirmation,) = chat.wait(lambda c: posted(c, conversation), 30, "no confirmation")
    canon.say(conversation, "user_dana", "count me")
    chat.wait(lambda c: posted(c, conversation) == [confirmation, "2 messages"], 60, "the conversation was kept")


def test_h02_the_hosts_queue_command_makes_turns_of_their_own(chat, canon, model, held):
    conversation = chat.direct()
    gate, first = held(conversation, "hold for a queue")
    for number in ("one", "two"):
        model.script(f"queued {number}", [f"Answer {number}."])
        canon.say(conversation, "user_dana", f"/queue queued {number}")
        chat.wait(lambda c, n=number: len(asides(c, conversation)) == (1 if n == "one" else 2), 30, "not confirmed")
    gate.open()
    chat.wait(lambda c: len(c.finals(conversation)) == 3, 60, "not three answers")
    assert finals(canon, conversation) == ["Held answer.", "Answer one.", "Answer two."]
    ids = [message.metadata["turnId"] for message in canon.finals(conversation)]
    assert len(set(ids)) == 3
    assert canon.finals(conversation)[0].fields["replyTo"] == first


def test_h08_a_notification_during_a_turn_is_delivered_and_leaves_the_answer_alone(chat, canon, held, gateway):
    conversation = chat.direct()
    gate, _ = held(conversation, "hold for a job")
    result = standalone(gateway, canon, conversation, "The nightly job is done.")
    assert result["success"]
    gate.open()
    chat.wait(lambda c: len(c.finals(conversation)) == 2, 60, "not both delivered")
    assert finals(canon, conversation) == ["The nightly job is done.", "Held answer."]


def test_h08_h25_a_job_run_inside_a_turn_delivers_its_text_beside_the_answer(chat, canon, model):
    """The host runs the job on the agent's thread and delivers from an event loop of its own."""
    conversation = chat.direct()

    def ask(request):
        if request.round == 0:
            job = {"name": "nightly", "prompt": "write the report", "schedule": "every 2h", "deliver": "origin"}
            return [ToolCall("cronjob", {"action": "create", **job})]
        if request.round == 1:
            job_id = json.loads(request.tool_results[-1])["job_id"]
            return [ToolCall("cronjob", {"action": "run", "job_id": job_id}, "call_2")]
        return ["It ran."]

    model.script_with("run the nightly job", ask)
    canon.say(conversation, "user_dana", "run the nightly job")
    chat.wait(lambda c: len(c.finals(conversation)) == 2, 60, "not both delivered")
    chat.settled(conversation)
    job, answer = canon.messages(conversation)
    assert "nightly" in job.text
    assert "turnId" not in job.metadata
    assert answer.text == "It ran."
    assert answer.metadata["turnId"]


def standalone(gateway, canon, conversation, text, **options):
    """Call the registered standalone sender like the host does, outside the gateway's process."""
    from types import SimpleNamespace

    from canon_hermes_plugin.plugin import send_standalone

    with pytest.MonkeyPatch.context() as patch:
        for name, value in canon.environment().items():
            patch.setenv(name, value)
        config = SimpleNamespace(extra={}, api_key=None, token=None, home_channel=None)
        return asyncio.run(send_standalone(config, conversation, text, **options))


def test_h24_a_long_standalone_text_goes_whole_through_one_identity_for_each_call(chat, canon, gateway):
    conversation = chat.direct()
    text = " ".join(f"line{number:04d}" for number in range(1200))
    for _ in range(2):
        assert standalone(gateway, canon, conversation, text)["success"]
    messages = canon.messages(conversation)
    assert len(canon.finals(conversation)) == 2
    assert " ".join(message.text for message in messages) == f"{text} {text}"
    groups = [message.metadata["messageChunk"]["groupId"] for message in messages]
    assert len(set(groups)) == 2
    assert len({message.id for message in messages}) == len(messages)
