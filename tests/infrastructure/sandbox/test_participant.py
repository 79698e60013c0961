"""A person's view: when an exchange is over, how typed words answer, what the transcript shows."""

import json
import threading

import pytest
from canon_hermes_plugin.domain.cards.validate import validate_card
from canon_hermes_plugin.infrastructure.sandbox import demos
from canon_hermes_plugin.infrastructure.sandbox.gateway import GatewayError
from canon_hermes_plugin.infrastructure.sandbox.participant import Participant
from canon_hermes_plugin.infrastructure.sandbox.server import DIRECT, LoopbackCanon
from canon_hermes_plugin.infrastructure.sandbox.session import Chat, LateError
from canon_hermes_plugin.infrastructure.sandbox.transcript import Transcript

FINAL = {"turnSemantics": "turn_complete", "turnComplete": True}
FAR = 10**14


class Gateway:
    running = True

    def log(self, lines=40):
        return "the log"


class Agent:
    """Acts as the plugin would, on the store, whenever a person's message or answer arrives."""

    def __init__(self, canon):
        self.canon = canon

    def turn(self, state):
        with self.canon.state.lock:
            self.canon.logs.turns.append({"conversationId": DIRECT, "state": state, "turnId": "t"})
            self.canon.wake()

    def post(self, text, **metadata):
        with self.canon.state.lock:
            body = {"conversationId": DIRECT, "text": text, "metadata": {**FINAL, **metadata}}
            self.canon.state.store_outbound(body)
            self.canon.wake()

    def ask(self, kind, **fields):
        body = {"interactionKind": kind, "conversationId": DIRECT, "expiresAt": FAR, "kind": "clarify"}
        self.canon.interactions.create({**body, **fields})


@pytest.fixture
def canon():
    return LoopbackCanon()


@pytest.fixture
def agent(canon):
    return Agent(canon)


@pytest.fixture
def person(canon):
    return Participant(Chat(canon, Gateway()), DIRECT, timeout=5)


def after_message(canon, act):
    """Run ``act`` as soon as a person has said something."""
    thread = threading.Thread(target=lambda: (canon.wait_for(lambda c: c.messages(own=False), 5), act()))
    thread.start()
    return thread


def test_an_exchange_is_over_when_its_turn_is_closed_with_an_answer(canon, agent, person):
    def act():
        agent.turn("thinking")
        agent.post("hi")
        agent.turn("completed")

    thread = after_message(canon, act)
    assert person.say("hello") == "answered"
    thread.join()


def test_chosen_silence_is_an_end_and_an_unexplained_one_is_a_failure(canon, agent, person):
    agent.turn("thinking")
    canon.logs.verbs.append({"verb": "no_reply"})
    agent.turn("completed")
    assert person.follow() == "silent"
    quick = Participant(Chat(canon, Gateway()), DIRECT, timeout=0.1)
    agent.turn("thinking")
    agent.turn("completed")
    with pytest.raises(LateError, match="no complete answer") as caught:
        quick.follow()
    assert caught.value.limit == 0.1
    assert caught.value.log == "the log"


def test_a_dead_gateway_ends_the_wait(canon, person):
    person._chat.gateway.running = False
    with pytest.raises(GatewayError, match="ended on its own"):
        person.say("hello")


def test_a_blocking_question_pauses_the_exchange_and_its_answer_resumes_it(canon, agent, person):
    agent.turn("thinking")
    agent.ask("input", inputId="i", prompt="Which?", choices=[{"label": "tea", "value": "t"}])
    assert person.follow() == "asked"
    (asked,) = person.waiting()
    assert not person.answer("/nonsense", asked)
    assert person.answer("1", asked)
    assert asked.result["choice"] == {"label": "tea", "value": "t"}
    agent.post("tea then")
    agent.turn("completed")
    assert person.follow() == "answered"


def test_a_detached_approval_is_followed_until_the_agent_was_woken_by_the_decision(canon, agent, person):
    agent.turn("thinking")
    native = {"method": "detached_approval"}
    agent.ask("approval", approvalId="a", toolName="File", toolSummary="File it?", native=native)
    agent.post("I asked")
    agent.turn("completed")
    assert person.follow() == "asked"
    assert person.answer("allow", person.waiting()[0])
    thread = threading.Timer(0.1, lambda: (agent.post("going ahead"), agent.turn("completed")))
    thread.start()
    assert person.follow() == "answered"
    assert [message.text for message in canon.finals(DIRECT)] == ["I asked", "going ahead"]


@pytest.mark.parametrize(("typed", "result"), [("/file", "file"), ("file", "file"), ("other", None)])
def test_a_card_is_answered_by_an_actions_id(agent, person, typed, result):
    agent.ask("card", cardId="c", card=demos._card())
    asked = person.waiting()[0]
    assert person.answer(typed, asked) == (result is not None)
    assert asked.result.get("actionId") == result


@pytest.mark.parametrize("typed", ["/laterr", "/fiel", "/FILE now", "/allow", "/deny"])
def test_what_resembles_an_answer_while_a_card_waits_was_meant_as_one(agent, person, typed):
    agent.ask("card", cardId="c", card=demos._card())
    assert not person.answer(typed, person.waiting()[0])
    assert person.mistyped(typed) == "no such answer; choose /file or /later"


@pytest.mark.parametrize("typed", ["/stop", "/steer later", "/new", "/status", "laterr", "allow", ""])
def test_messages_and_commands_of_the_host_are_no_mistyped_answers(agent, person, typed):
    assert person.mistyped(typed) is None
    agent.ask("card", cardId="c", card=demos._card())
    assert person.mistyped(typed) is None


def test_a_mistyped_answer_to_a_question_or_an_approval_names_the_right_ones(agent, person):
    agent.ask("input", inputId="i", prompt="Which?", choices=[{"label": "tea", "value": "t"}, {"label": "milk"}])
    assert person.mistyped("/2") == "no such answer; choose 1 or 2"
    agent.ask("approval", approvalId="a", toolName="File", toolSummary="File it?")
    assert person.mistyped("/alow") == "no such answer; choose 1 or 2 or /allow or /deny"


def test_a_question_that_takes_any_text_names_no_answers(agent, person):
    agent.ask("input", inputId="i", prompt="Which?")
    assert person.mistyped("/allow") == "no such answer; write one without a slash"


@pytest.mark.parametrize("typed", ["/allow", "/deny"])
def test_a_decision_with_nothing_to_decide_is_no_message(person, typed):
    assert person.mistyped(typed) == "nothing is waiting for an answer"


def test_the_transcript_shows_each_thing_once_and_in_order(canon, agent):
    transcript = Transcript(canon, DIRECT)
    canon.say(DIRECT, "user_dana", "hello")
    agent.turn("thinking")
    agent.turn("thinking")
    agent.ask("card", cardId="c", card=demos._card())
    agent.post("hi", turnTrail=[{"kind": "tool", "title": "terminal", "status": "completed"}])
    assert transcript.pending()
    lines = [(line.kind, line.who, line.text.split("\n")[0]) for line in transcript.news()]
    assert lines == [
        ("person", "Dana", "hello"),
        ("note", "Hermes", "is thinking"),
        ("ask", "Hermes", "shows a card: Invoice 12345"),
        ("note", "trail", "terminal completed"),
        ("agent", "Hermes", "hi"),
        ("done", "Hermes", "has finished (turn_complete)"),
    ]
    assert transcript.news() == []
    assert not transcript.pending()
    canon.interactions.answer("c", actionId="later")
    assert transcript.pending()
    assert [(line.kind, line.text) for line in transcript.news()] == [("note", "card: later")]
    assert not transcript.pending()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"output":"Mon 20:15\\n UTC","exit_code":0,"error":null}', ": output Mon 20:15 UTC, exit_code 0"),
        ('{"status":"pending","note":"Do not wait for...', ": status pending, note Do not wait for..."),
        ('{"values":{"a":1},"list":["x"]}', ": a 1"),
        ("[1, 2]", ": [1, 2]"),
        ("{", ": {"),
        ("x" * 300, ": " + "x" * 97 + "..."),
        ("", ""),
    ],
)
def test_a_step_of_the_trail_is_one_readable_line(canon, agent, text, shown):
    block = {"kind": "tool", "title": "terminal", "status": "completed", "text": text, "summary": "61 ms"}
    transcript = Transcript(canon, DIRECT)
    agent.post("hi", turnTrail=[block])
    assert transcript.news()[0].text == "terminal completed in 61 ms" + shown


def test_the_raw_transcript_shows_what_canon_keeps(canon, agent):
    block = {"kind": "tool", "title": "terminal", "status": "completed", "text": '{"a":1}'}
    transcript = Transcript(canon, DIRECT, raw=True)
    agent.post("hi", turnTrail=[block])
    trail, answer, metadata, done = transcript.news()
    assert json.loads(trail.text) == block
    assert json.loads(metadata.text)["turnSemantics"] == "turn_complete"
    assert "turnTrail" not in metadata.text
    assert (answer.text, done.text) == ("hi", "turn_complete")


def test_no_state_of_a_turn_is_shown_behind_the_message_that_ended_it(canon, agent):
    transcript = Transcript(canon, DIRECT)
    agent.turn("thinking")
    agent.post("hi", turnId="t")
    assert [line.text for line in transcript.news()] == ["is thinking", "hi", "has finished (turn_complete)"]
    agent.turn("streaming")
    assert transcript.news() == []
    agent.post("hi again", turnId="another")
    agent.turn("streaming")
    canon.logs.turns[-1]["turnId"] = "a third"
    assert [line.text for line in transcript.news()] == ["is writing", "hi again", "has finished (turn_complete)"]


def test_the_demonstrated_card_is_valid():
    assert validate_card(demos._card()) == {"ok": True, "errors": []}


def test_the_demonstrated_picture_is_a_png():
    assert demos.picture().startswith(b"\x89PNG\r\n\x1a\n")
    assert demos.picture().endswith(b"IEND\xaeB`\x82")
