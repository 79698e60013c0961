"""Every kind of turn in every setting: exactly one answer where one is due, none where not, the right words in it."""

import time

import pytest
from canon_hermes_plugin.infrastructure.sandbox.model import Gate, ToolCall

pytestmark = pytest.mark.gateway


@pytest.fixture(
    scope="module",
    params=[(streaming, verbosity) for streaming in (True, False) for verbosity in ("verbose", "quiet")],
    ids=lambda value: f"{'streaming' if value[0] else 'whole'}-{value[1]}",
)
def setting(request):
    return request.param


@pytest.fixture(scope="module")
def gateway_options(setting):
    streaming, verbosity = setting
    # The host's chatter is on: none of it may become a message.
    noisy = {"tool_progress": "all", "interim_assistant_messages": True, "long_running_notifications": True}
    return {
        "streaming": streaming,
        "env": {"CANON_TURN_VERBOSITY": verbosity},
        "config": {"display": {"platforms": {"canon": noisy}}},
    }


@pytest.fixture(params=["direct", "group"])
def conversation(request, chat):
    return chat.direct() if request.param == "direct" else chat.group("user_dana", "user_owner")


@pytest.fixture
def word(conversation):
    """A word that names this test's conversation in scripts."""
    return conversation.replace("_", "")


def texts(canon, conversation):
    """Return what the agent posted; what Canon itself kept of an unfinished turn's live text is not posted."""
    return [message.text for message in canon.messages(conversation) if not message.salvaged]


def finals(canon, conversation):
    return [message.text for message in canon.finals(conversation)]


def turn_ids(canon, conversation):
    return [message.metadata["turnId"] for message in canon.finals(conversation)]


def states(canon, conversation):
    """Return the closing state of each turn, in order of opening."""
    last = {}
    for turn in canon.logs.turns:
        if turn["conversationId"] == conversation:
            last[turn["turnId"]] = turn["state"]
    return list(last.values())


def all_settled(chat, canon, conversation, turns):
    closed = {"completed", "interrupted"}
    chat.wait(
        lambda _: (found := states(canon, conversation)) and len(found) == turns and set(found) <= closed,
        60,
        f"not {turns} closed turns: {states(canon, conversation)}",
    )


def looks(setting, canon, conversation):
    """Previews are written for verbose turns of a streaming host, never for quiet ones."""
    streaming, verbosity = setting
    shown = [
        node
        for node in canon.logs.nodes
        if node["conversationId"] == conversation and node.get("text") not in {None, ""}
    ]
    if verbosity == "quiet":
        assert shown == []
    elif streaming:
        assert shown
    for node in shown:
        assert "▉" not in node["text"]


def test_plain(chat, canon, model, setting, conversation, word):
    model.script(f"plain {word}", ["A plain ", "answer of ", "some length, ", "to be seen growing."])
    chat.ask(conversation, f"plain {word}")
    all_settled(chat, canon, conversation, 1)
    answer = ["A plain answer of some length, to be seen growing."]
    assert texts(canon, conversation) == finals(canon, conversation) == answer
    looks(setting, canon, conversation)


def test_field_07_tools_leave_their_commentary_out_of_the_answer(chat, canon, model, setting, conversation, word):
    model.script(
        f"tools {word}",
        ["I will look at the files first.", ToolCall("terminal", {"command": "echo one"})],
        ["Now the second thing.", ToolCall("terminal", {"command": "echo two"}, "call_two")],
        ["The answer is that everything works."],
    )
    answer = chat.ask(conversation, f"tools {word}")
    all_settled(chat, canon, conversation, 1)
    answers = ["The answer is that everything works."]
    assert texts(canon, conversation) == finals(canon, conversation) == answers
    trail = answer.final.metadata.get("turnTrail")
    if setting[1] == "verbose":
        assert [block["title"] for block in trail] == ["terminal", "terminal"]
        assert {block["status"] for block in trail} == {"completed"}
    else:
        assert trail is None


def test_long(chat, canon, model, conversation, word):
    text = " ".join(f"{word}-{number:05d}" for number in range(900))
    model.script(f"long {word}", [text[i : i + 500] for i in range(0, len(text), 500)])
    answer = chat.ask(conversation, f"long {word}")
    all_settled(chat, canon, conversation, 1)
    assert len(finals(canon, conversation)) == 1
    assert len(answer.messages) > 2
    assert " ".join(message.text for message in answer.messages) == text


def test_field_74_silent(chat, canon, model, conversation, word):
    model.script(
        f"silent {word}",
        ["Thinking about it.", ToolCall("canon_runtime_control", {"action": "no_reply", "reason": "nothing to add"})],
        ["I said nothing."],
    )
    canon.say(conversation, "user_dana", f"silent {word}")
    all_settled(chat, canon, conversation, 1)
    assert texts(canon, conversation) == []
    chat.wait(lambda c: c.node(conversation) is None, 30, "the node is still there")
    shown = [str(node.get("text")) for node in canon.logs.nodes if node["conversationId"] == conversation]
    assert not [text for text in shown if "I said nothing" in text], "shown after silence was chosen"


def test_the_hosts_own_silence_marker(chat, canon, model, conversation, word):
    model.script(f"marker {word}", ["NO_REPLY"])
    canon.say(conversation, "user_dana", f"marker {word}")
    all_settled(chat, canon, conversation, 1)
    assert texts(canon, conversation) == []


def test_field_04_interrupted(chat, canon, model, conversation, word):
    gate = Gate()
    model.script(f"slow {word}", ["Partial answer that was inter", gate, "rupted."])
    model.script(f"newer {word}", ["New answer after the interrupt."])
    canon.say(conversation, "user_dana", f"slow {word}")
    gate.wait_reached()
    canon.say(conversation, "user_dana", f"newer {word}", metadata={"deliveryIntent": "interrupt"})
    chat.answer(conversation)
    gate.open()
    all_settled(chat, canon, conversation, 2)
    assert texts(canon, conversation) == finals(canon, conversation) == ["New answer after the interrupt."]
    assert states(canon, conversation) == ["interrupted", "completed"]


def test_field_68_queued_follow_ups_are_turns_of_their_own(chat, canon, model, conversation, word):
    gate = Gate()
    model.script(f"one {word}", ["First ", gate, "answer."])
    for number in ("two", "three", "four"):
        model.script(f"{number} {word}", [f"Answer {number}."])
    ids = [canon.say(conversation, "user_dana", f"one {word}")]
    gate.wait_reached()
    for number in ("two", "three", "four"):
        queued = {"deliveryIntent": "queue", "inboundDisposition": "queued"}
        ids.append(canon.say(conversation, "user_dana", f"{number} {word}", metadata=queued))
    released = lambda: [body["messageId"] for body in canon.logs.dispositions if body["messageId"] in ids]  # noqa: E731
    time.sleep(0.3)  # anything released too early would be seen by now
    assert released() == []
    gate.open()
    all_settled(chat, canon, conversation, 4)
    answers = ["First answer.", "Answer two.", "Answer three.", "Answer four."]
    assert texts(canon, conversation) == finals(canon, conversation) == answers
    assert len(set(turn_ids(canon, conversation))) == 4
    assert [message.fields["replyTo"] for message in canon.finals(conversation)] == ids
    canon.wait_for(lambda _: released() == ids[1:])


def test_steered(chat, canon, model, conversation, word):
    gate = Gate()
    model.script_with(
        f"steer {word}",
        lambda request: (
            ["Let me see.", gate, ToolCall("terminal", {"command": "echo steered"})]
            if request.round == 0
            else [f"Heard: {'also this' in ' '.join(request.tool_results)}."]
        ),
    )
    canon.say(conversation, "user_dana", f"steer {word}")
    gate.wait_reached()
    steered = {"deliveryIntent": "interleave", "inboundDisposition": "queued"}
    message_id = canon.say(conversation, "user_dana", "also this", metadata=steered)
    canon.wait_for(lambda c: any(body["messageId"] == message_id for body in c.logs.dispositions))
    gate.open()
    all_settled(chat, canon, conversation, 1)
    assert texts(canon, conversation) == finals(canon, conversation) == ["Heard: True."]


def test_a_message_steered_in_too_late_gets_its_own_answer(chat, canon, model, conversation, word):
    gate = Gate()
    model.script(f"late {word}", ["Almost ", gate, "done."])
    model.script(f"and {word}", ["The late one."])
    canon.say(conversation, "user_dana", f"late {word}")
    gate.wait_reached()
    steered = {"deliveryIntent": "interleave", "inboundDisposition": "queued"}
    message_id = canon.say(conversation, "user_dana", f"and {word}", metadata=steered)
    canon.wait_for(lambda c: any(body["messageId"] == message_id for body in c.logs.dispositions))
    gate.open()
    all_settled(chat, canon, conversation, 2)
    assert texts(canon, conversation) == finals(canon, conversation) == ["Almost done.", "The late one."]
    assert len(set(turn_ids(canon, conversation))) == 2


def test_our_log_tells_ids_and_outcomes_but_nothing_that_was_said(chat, canon, model, conversation, word):
    answer = f"whispered-{word}"
    model.script(f"secret-{word}", [ToolCall("terminal", {"command": f"echo typed-{word}"})], [answer])
    chat.ask(conversation, f"secret-{word}")
    all_settled(chat, canon, conversation, 1)
    silent = [ToolCall("canon_runtime_control", {"action": "no_reply", "reason": f"because-{word}"})]
    model.script(f"quiet-{word}", silent, ["nothing"])
    canon.say(conversation, "user_dana", f"quiet-{word}")
    all_settled(chat, canon, conversation, 2)
    ours = "\n".join(line for line in chat.gateway.full_log().splitlines() if "canon_hermes_plugin" in line)
    assert f"silence chosen conversation={conversation}" in ours
    for said in ("secret", "whispered", "typed", "because", "quiet"):
        assert f"{said}-{word}" not in ours
