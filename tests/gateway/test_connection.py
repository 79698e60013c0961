"""Connecting, losing and regaining Canon, and refusing what cannot work, with the real gateway."""

import time
from contextlib import suppress

import pytest
from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewayError, GatewaySettings
from canon_hermes_plugin.infrastructure.sandbox.model import Gate
from canon_hermes_plugin.infrastructure.sandbox.session import Chat

pytestmark = pytest.mark.gateway


@pytest.fixture
def start(own_canon, model):
    """Start a gateway that may fail; every one is closed at the end."""
    gateways = []

    def begin(*, ready=True, **options):
        settings = GatewaySettings(**{"canon": own_canon.environment(), "model_url": model.url, **options})
        gateway = Gateway(settings)
        gateways.append(gateway)
        if ready:
            gateway.start()
        return gateway

    yield begin
    for gateway in gateways:
        gateway.close()


def logged(gateway, words, seconds=45.0):
    deadline = time.monotonic() + seconds
    while words not in gateway.full_log():
        assert time.monotonic() < deadline, f"{words!r} was not logged:\n{gateway.log(60)}"
        time.sleep(0.1)


def ended(gateway, seconds=45.0):
    deadline = time.monotonic() + seconds
    while gateway.running:
        assert time.monotonic() < deadline, f"the gateway goes on:\n{gateway.log(60)}"
        time.sleep(0.1)
    return gateway.kill()


def test_field_100_a_canon_that_is_down_at_the_start_is_connected_when_it_comes_up(own_canon, model, start):
    own_canon.fault("healthz", status=502, times=None)
    gateway = start()
    logged(gateway, "Canon is not reachable")
    own_canon.clear_faults()
    chat = Chat(own_canon, gateway)
    chat.wait_connected()
    model.script("late start", ["Here I am."])
    assert chat.ask(chat.direct(), "late start").text == "Here I am."


def test_a_refused_key_is_permanent_and_told_in_one_line(own_canon, start):
    gateway = start(ready=False, env={"CANON_API_KEY": "agk_live_wrong"})
    with pytest.raises(GatewayError, match="exit code 78"):
        gateway.start()
    assert "Canon is not connected: Canon answered with HTTP status 401" in gateway.full_log()
    assert "agk_live_wrong" not in gateway.full_log()


def test_another_environment_is_refused_for_good(own_canon, start):
    gateway = start(ready=False, env={"CANON_ENVIRONMENT_ID": "canon-prod-v1", "CANON_RTDB_URL": "http://localhost:9"})
    with pytest.raises(GatewayError, match="exit code 78"):
        gateway.start()
    assert not own_canon.requests("me"), "the key was sent to an unproven address"


def test_a_key_revoked_at_run_time_stops_the_platform(own_canon, start):
    gateway = start()
    chat = Chat(own_canon, gateway)
    chat.wait_connected()
    own_canon.policy.forbidden = True
    own_canon.cut_stream()
    logged(gateway, "Canon refuses this agent")
    ended(gateway)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"env": {"CANON_TURN_VERBOSITY": "loud"}}, "CANON_TURN_VERBOSITY"),
        ({"env": {"CANON_INBOUND_IMAGE_DELIVERY": "never"}}, "CANON_INBOUND_IMAGE_DELIVERY"),
        ({"config": {"gateway": {"multiplex_profiles": True}}}, "gateway.multiplex_profiles is on"),
    ],
)
def test_field_25_what_cannot_work_is_refused_in_one_clear_line(own_canon, start, options, words):
    gateway = start(ready=False, **options)
    with suppress(GatewayError):  # with its only platform refused the host may end
        gateway.start()
    logged(gateway, words)
    assert not own_canon.requests(), "Canon was contacted"


def test_without_credentials_nothing_is_contacted(own_canon, start):
    gateway = start(ready=False, env={"CANON_API_KEY": ""})
    with pytest.raises(GatewayError, match="exit code 78"):
        gateway.start()
    logged(gateway, "no Canon credentials")
    assert not own_canon.requests()


def test_a_killed_gateway_comes_back_and_answers_what_comes_then(own_canon, model, start):
    gateway = start()
    chat = Chat(own_canon, gateway)
    chat.wait_connected()
    conversation = chat.direct()
    model.script("before the crash", ["Before."])
    chat.ask(conversation, "before the crash")
    chat.settled(conversation)
    gate = Gate()
    model.script("during the crash", ["Half of an ans", gate, "wer."])
    own_canon.say(conversation, "user_dana", "during the crash")
    gate.wait_reached()
    gateway.kill()
    gate.open()
    gateway.restart()
    chat.wait_connected()
    model.script("after the crash", ["After."])
    own_canon.say(conversation, "user_dana", "after the crash")
    chat.wait(lambda c: "After." in [m.text for m in c.finals(conversation)], 60, "no answer after the crash")
    ids = [message.id for message in own_canon.messages(conversation)]
    assert len(ids) == len(set(ids))
    assert [m.text for m in own_canon.finals(conversation)].count("Before.") == 1


def test_a_stopping_gateway_leaves_no_open_turn_behind(own_canon, model, start):
    gateway = start()
    chat = Chat(own_canon, gateway)
    chat.wait_connected()
    conversation = chat.direct()
    gate = Gate()
    model.script("stopped in the middle", ["Half of an ans", gate, "wer."])
    own_canon.say(conversation, "user_dana", "stopped in the middle")
    gate.wait_reached()
    assert gateway.stop() == 0
    gate.open()
    last = [turn["state"] for turn in own_canon.logs.turns if turn["conversationId"] == conversation][-1]
    assert last in {"completed", "interrupted"}
    before = len(own_canon.finals(conversation))
    gateway.restart()
    # The host goes on with what it interrupted, in a turn without a message of its own (hermes-host §4.7).
    chat.wait(lambda c: len(c.finals(conversation)) > before, 60, "the interrupted turn was not resumed")
    resumed = own_canon.finals(conversation)[-1]
    opening = next(t for t in own_canon.logs.turns if t.get("turnId") == resumed.metadata["turnId"])
    assert "activeMessageIds" not in opening
    assert "replyTo" not in resumed.fields or resumed.fields["replyTo"] is None


def test_two_gateways_with_one_key_do_not_both_answer(own_canon, model, start, tmp_path):
    locks = {"HERMES_GATEWAY_LOCK_DIR": str(tmp_path)}
    chat = Chat(own_canon, start(env=locks))
    chat.wait_connected()
    second = start(ready=False, env=locks)
    with suppress(GatewayError):
        second.start()
    logged(second, "already in use")
    assert own_canon.identity.api_key not in second.full_log()
    conversation = chat.direct()
    model.script("who answers", ["I alone."])
    assert chat.ask(conversation, "who answers").text == "I alone."
    assert own_canon.connected == 1


def test_agents_and_listed_people_wake_a_turn_and_others_do_not(own_canon, model, start):
    from canon_hermes_plugin.infrastructure.sandbox.records import Person

    own_canon.add_person(Person("agent_friend", "Friend", "ai_agent"))
    allowed = "user_dana,agent_friend"
    gateway = start(env={"CANON_ALLOW_ALL_USERS": "", "CANON_ALLOWED_USERS": allowed})
    chat = Chat(own_canon, gateway)
    chat.wait_connected()
    conversation = chat.group("user_dana", "user_eve", "agent_friend")
    own_canon.say(conversation, "user_eve", "let me in")
    own_canon.say(conversation, "agent_friend", "hello from a friend", metadata={"turnSemantics": "turn_complete"})
    chat.wait(lambda c: len(c.finals(conversation)) == 1, 60, "the agent woke nobody")
    own_canon.say(conversation, "user_dana", "hello from dana")
    chat.wait(lambda c: len(c.finals(conversation)) == 2, 60, "Dana woke nobody")
    logged(gateway, "sender not allowed")
    assert len(own_canon.messages(conversation)) == 2


def test_in_a_shared_session_nobodys_message_is_lost_or_merged(own_canon, model, start):
    """The host's own queue merges one sender's messages and drops the third sender's (hermes-host §0 rule 4)."""
    chat = Chat(own_canon, start(config={"group_sessions_per_user": False}))
    chat.wait_connected()
    people = ("user_dana", "user_bob", "user_eli", "user_fay")
    conversation = chat.group(*people)
    gate = Gate()
    model.script("begin together", ["First ", gate, "answer."])
    asked = [own_canon.say(conversation, people[0], "begin together")]
    gate.wait_reached()
    for person in (*people[1:], people[1]):
        number = len(asked)
        model.script(f"shared {number}", [f"Answer {number}."])
        asked.append(own_canon.say(conversation, person, f"shared {number}"))
    chat.wait(lambda c: c.logs.turns[-1]["queueDepth"] == len(asked) - 1, 30, "not all of them wait")
    gate.open()
    chat.wait(lambda c: len(c.finals(conversation)) == len(asked), 60, "not every message was answered")
    answers = own_canon.finals(conversation)
    assert [answer.text for answer in answers] == ["First answer.", *(f"Answer {number}." for number in range(1, 5))]
    assert [answer.fields["replyTo"] for answer in answers] == asked
