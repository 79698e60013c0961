"""People decide through the real gateway: approvals, questions, cards, silence, reaching out (issue scenarios)."""

from __future__ import annotations

import json
from itertools import count

import pytest
from canon_hermes_plugin.infrastructure.sandbox.model import ToolCall
from canon_hermes_plugin.infrastructure.sandbox.records import Person
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon

pytestmark = pytest.mark.gateway

DANGEROUS = "rm -rf ./never-there"
SUDO = '"sudo" rm -rf ./never-there'
CARD = {
    "schema": "canon.card.v1",
    "cardId": "berth_42",
    "title": "Berth",
    "fallbackText": "Release berth 42?",
    "blocks": [{"kind": "actions", "actions": [{"id": "release", "label": "Release"}]}],
}
_words = count(1)


@pytest.fixture(scope="module")
def gateway_options():
    return {"streaming": False}


def word() -> str:
    return f"case{next(_words)}x"


def tool_results(model, text):
    """Return what the tools told the model after the user's ``text``, newest request first."""
    rounds = [request for request in model.requests if text in request.user_text and request.streaming]
    # The host may append a remark of its own behind the JSON.
    return [json.JSONDecoder().raw_decode(result)[0] for result in rounds[-1].tool_results]


def runtime(**arguments):
    return ToolCall("canon_runtime_control", arguments, call_id=f"call_{next(_words)}")


def ask_for(chat, conversation, text, user_id="user_dana"):
    """Say ``text`` and return the interaction the agent then opens."""
    before = len(chat.canon.interactions.all())
    chat.canon.say(conversation, user_id, text)

    def opened(canon):
        made = canon.interactions.all()[before:]
        return made[0] if made else None

    return chat.wait(opened, 60, "nothing was asked")


def finish(chat, conversation, after=0):
    messages = chat.answer(conversation, after=after)
    chat.settled(conversation)
    return messages[-1].text


# --- exec approvals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("decision", "fact"), [("allow", "exit_code"), ("deny", "BLOCKED")])
def test_d1_an_exec_approval_is_shown_and_its_decision_reaches_the_host(chat, model, decision, fact):
    text = word()
    model.script(text, [ToolCall("terminal", {"command": DANGEROUS})], [f"done {text}"])
    conversation = chat.direct()
    asked = ask_for(chat, conversation, text)
    assert asked.body["responseUserId"] == "user_dana"
    assert asked.body["allowSessionRule"] is False
    assert asked.body["native"]["method"] == "exec_approval"
    assert DANGEROUS in json.dumps(asked.body["details"])
    states = [turn["state"] for turn in chat.canon.logs.turns if turn["conversationId"] == conversation]
    assert "waiting_input" in states or chat.wait(
        lambda canon: any(
            turn["state"] == "waiting_input" for turn in canon.logs.turns if turn["conversationId"] == conversation
        ),
        10,
        "the wait was not shown",
    )
    chat.canon.interactions.answer(asked.id, decision=decision)
    assert finish(chat, conversation) == f"done {text}"
    assert fact in json.dumps(tool_results(model, text))
    states = [turn["state"] for turn in chat.canon.logs.turns if turn["conversationId"] == conversation]
    assert "interrupted" not in states


def test_an_expired_exec_approval_is_a_denial_and_the_turn_goes_on(chat, model):
    text = word()
    model.script(text, [ToolCall("terminal", {"command": DANGEROUS})], [f"done {text}"])
    conversation = chat.direct()
    asked = ask_for(chat, conversation, text)
    chat.canon.interactions.expire(asked.id)
    assert finish(chat, conversation) == f"done {text}"
    assert "BLOCKED" in json.dumps(tool_results(model, text))


def test_d19_sudo_is_the_owners_and_offers_nothing_to_others(chat, model):
    text = word()
    model.script(text, [ToolCall("terminal", {"command": SUDO})], [f"done {text}"])
    conversation = chat.group()
    asked = ask_for(chat, conversation, text)
    assert "responseUserId" not in asked.body
    assert asked.responder == chat.canon.identity.owner.id
    with pytest.raises(PermissionError):
        chat.canon.interactions.answer(asked.id, user_id="user_dana", decision="allow")
    chat.canon.interactions.answer(asked.id, decision="deny")
    assert finish(chat, conversation) == f"done {text}"


@pytest.mark.parametrize(("typed", "fact"), [("/approve", "exit_code"), ("no", "BLOCKED")])
def test_field_32_a_typed_decision_settles_it_and_takes_the_request_back(chat, model, typed, fact):
    text = word()
    model.script(text, [ToolCall("terminal", {"command": DANGEROUS})], [f"done {text}"])
    conversation = chat.direct()
    asked = ask_for(chat, conversation, text)
    chat.canon.say(conversation, "user_dana", typed)
    chat.wait(lambda _: asked.status == "cancelled" or None, 30, "the request stayed open")
    chat.wait(
        lambda canon: [made for made in canon.messages(conversation) if made.text == f"done {text}"] or None,
        60,
        "the turn did not go on",
    )
    assert fact in json.dumps(tool_results(model, text))
    assert typed not in [request.user_text for request in model.requests]


# --- clarify, inputs, cards -----------------------------------------------------------------------------------------


def test_clarify_brings_the_persons_words_to_the_model(chat, model):
    text = word()
    question = {"question": "Which berth?", "choices": ["North", "South"]}
    model.script(text, [ToolCall("clarify", question)], [f"done {text}"])
    conversation = chat.direct()
    asked = ask_for(chat, conversation, text)
    assert asked.body["kind"] == "clarify"
    assert [choice["label"] for choice in asked.body["choices"]] == ["North", "South"]
    chat.canon.interactions.answer(asked.id, choice={"label": "South", "value": "South"})
    assert finish(chat, conversation) == f"done {text}"
    assert "South" in json.dumps(tool_results(model, text))


def test_a_typed_answer_to_clarify_takes_the_question_back(chat, model):
    text = word()
    model.script(text, [ToolCall("clarify", {"question": "Which berth?"})], [f"done {text}"])
    conversation = chat.direct()
    asked = ask_for(chat, conversation, text)
    chat.canon.say(conversation, "user_dana", "the north one")
    assert finish(chat, conversation) == f"done {text}"
    assert "the north one" in json.dumps(tool_results(model, text))
    chat.wait(lambda _: asked.status == "cancelled" or None, 30, "the question stayed open")


def test_an_input_is_asked_of_the_person_and_a_secret_of_the_owner(chat, model):
    text = word()
    call = runtime(action="request_input", inputId=f"in_{text}", prompt="Name?", responseUserId="user_evil")
    secret = runtime(action="request_input", inputId=f"secret_{text}", prompt="Key?", kind="secret")
    model.script(text, [call], [secret], [f"done {text}"])
    conversation = chat.group()
    asked = ask_for(chat, conversation, text)
    assert asked.responder == "user_dana"
    chat.canon.interactions.answer(asked.id, value="Aurora")
    second = chat.wait(lambda canon: canon.interactions.waiting(conversation) or None, 30, "no second question")[0]
    assert second.responder == chat.canon.identity.owner.id
    chat.canon.interactions.answer(second.id, value="k")
    assert finish(chat, conversation) == f"done {text}"
    first = tool_results(model, text)[0]
    assert (first["success"], first["value"], first["conversationId"]) == (True, "Aurora", conversation)


def test_an_interactive_card_is_answered_and_a_broken_one_never_leaves(chat, model):
    text = word()
    card = {**CARD, "cardId": f"card_{text}"}
    broken = runtime(action="request_card", card={"schema": "canon.card.v1"})
    model.script(text, [broken], [runtime(action="request_card", card=card)], [f"done {text}"])
    conversation = chat.direct()
    asked = ask_for(chat, conversation, text)
    assert asked.id == card["cardId"]
    chat.canon.interactions.answer(asked.id, actionId="release", values={"note": "ok"})
    assert finish(chat, conversation) == f"done {text}"
    refused, answered = tool_results(model, text)
    assert refused["success"] is False
    assert (answered["status"], answered["actionId"], answered["respondedBy"]) == ("submitted", "release", "user_dana")


# --- detached approvals ---------------------------------------------------------------------------------------------


def request(text):
    return runtime(action="request_approval", title="Berth", question=f"Release {text}?", context={"Ship": "Aurora"})


def wakes(chat, model, approval_id):
    line = f"Canon approval {approval_id} resolved"
    return [made for made in model.requests if line in made.user_text and made.streaming and made.round == 0]


def ledger(chat):
    return json.loads((chat.gateway.canon_home / "detached-approvals.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_a_detached_approval_wakes_the_model_with_its_decision(chat, model, decision):
    text = word()
    model.script(text, [request(text)], [f"asked {text}"])
    conversation = chat.direct()
    asked = ask_for(chat, conversation, text)
    assert finish(chat, conversation) == f"asked {text}"
    pending = tool_results(model, text)[0]
    assert (pending["status"], pending["approvalId"], pending["responseUserId"]) == ("pending", asked.id, "user_dana")
    model.script(f"{asked.id} resolved: {decision}", [f"woken {text}"])
    chat.canon.interactions.answer(asked.id, decision=decision)
    assert finish(chat, conversation, after=1) == f"woken {text}"
    assert len(wakes(chat, model, asked.id)) == 1
    entry = ledger(chat)[asked.id]
    assert (entry["decision"], entry["respondedBy"], entry["wakeStatus"]) == (decision, "user_dana", "delivered")


def test_an_expired_detached_approval_is_told_as_expired_and_wakes_nobody(chat, model):
    text = word()
    model.script(text, [request(text)], [f"asked {text}"])
    conversation = chat.direct()
    asked = ask_for(chat, conversation, text)
    finish(chat, conversation)
    chat.canon.interactions.expire(asked.id)
    check = word()
    model.script(check, [runtime(action="check_approval", approvalId=asked.id)], [f"checked {check}"])
    chat.ask(conversation, check)
    assert tool_results(model, check)[0]["status"] == "expired"
    assert wakes(chat, model, asked.id) == []


def test_d22_another_conversation_may_not_check_it(chat, model):
    text, check = word(), word()
    model.script(text, [request(text)], [f"asked {text}"])
    here, elsewhere = chat.direct(), chat.direct()
    asked = ask_for(chat, here, text)
    finish(chat, here)
    before = ledger(chat)[asked.id]
    model.script(check, [runtime(action="check_approval", approvalId=asked.id)], [f"checked {check}"])
    chat.ask(elsewhere, check)
    assert tool_results(model, check)[0]["success"] is False
    assert ledger(chat)[asked.id] == before


def test_two_approvals_of_one_turn_are_answered_out_of_order(chat, model):
    text = word()
    model.script(text, [request(f"first {text}"), request(f"second {text}")], [f"asked {text}"])
    conversation = chat.direct()
    ask_for(chat, conversation, text)
    finish(chat, conversation)
    first, second = [made for made in chat.canon.interactions.all("approval") if made.conversation_id == conversation]
    for made, decision in ((second, "deny"), (first, "allow")):
        seen = len(chat.canon.messages(conversation))
        model.script(f"{made.id} resolved: {decision}", [f"woken {made.id}"])
        chat.canon.interactions.answer(made.id, decision=decision)
        assert finish(chat, conversation, after=seen) == f"woken {made.id}"
    stored = ledger(chat)
    assert (stored[first.id]["decision"], stored[second.id]["decision"]) == ("allow", "deny")


def test_field_28_31_an_answer_while_the_gateway_is_dead_wakes_once_after_the_restart(new_gateway, model):
    text = word()
    with LoopbackCanon() as canon:
        chat = new_gateway(canon=canon, streaming=False)
        model.script(text, [request(text)], [f"asked {text}"])
        conversation = chat.direct()
        asked = ask_for(chat, conversation, text)
        finish(chat, conversation)
        chat.gateway.kill()
        canon.interactions.answer(asked.id, decision="allow")
        model.script(f"{asked.id} resolved: allow", [f"woken {text}"])
        chat.gateway.start()

        def woken(canon):
            # The host may greet the restored session as well.
            return [made for made in canon.messages(conversation) if made.text == f"woken {text}"]

        chat.wait(lambda canon: woken(canon) or None, 60, "the decision did not wake the model")
        chat.settled(conversation)
        chat.gateway.restart()
        chat.wait(lambda canon: len(canon.requests("status")) > 2 or None, 60, "no status after the restart")
        assert len(wakes(chat, model, asked.id)) == len(woken(canon)) == 1
        entry = ledger(chat)[asked.id]
        assert (entry["decision"], entry["wakeStatus"]) == ("allow", "delivered")
        chat.gateway.close()


# --- silence and reaching out ---------------------------------------------------------------------------------------


def test_no_reply_ends_the_turn_in_silence_and_reports_no_reason_text(chat, model):
    text = word()
    model.script(text, [runtime(action="no_reply", reason="private words")], ["dropped words"])
    conversation = chat.group()
    chat.canon.say(conversation, "user_dana", text)
    chat.settled(conversation)
    report = chat.wait(lambda canon: canon.logs.verbs[-1] if canon.logs.verbs else None, 10, "no report")
    assert report["verb"] == "no_reply"
    assert "private" not in json.dumps(report)
    assert chat.canon.messages(conversation) == []
    assert tool_results(model, text)[0]["status"] == "acknowledged"


REACHED = [
    ("open", {"text": "Hello"}, "messaged"),
    ("open", {}, "opened"),
    ("approval-required", {"text": "Hello"}, "requested"),
    ("owner-only", {"text": "Hello"}, "denied"),
    ("setup-required", {"text": "Hello"}, "setup_required"),
]


@pytest.mark.parametrize(("admission", "arguments", "status"), REACHED, ids=str)
def test_reach_out_tells_the_model_what_came_of_it(chat, model, admission, arguments, status):
    text = word()
    chat.canon.add_person(Person("user_lee", "Lee"))
    chat.canon.verbs.admit("user_lee", admission)
    call = runtime(action="reach_out", targetUserId="user_lee", **arguments)
    model.script(text, [call], [f"done {text}"])
    chat.ask(chat.direct(), text)
    result = tool_results(model, text)[0]
    assert (result["success"], result["status"]) == (True, status)
    if status == "denied":
        assert result["reason"] == "owner-only"


def test_reach_out_to_a_waiting_person_stays_pending_and_the_cap_is_told_in_canons_words(chat, model):
    text = word()
    people = [f"user_cap{number}" for number in range(12)]
    for person in people:
        chat.canon.add_person(Person(person, person))
        chat.canon.verbs.admit(person, "approval-required")
    rounds = [[runtime(action="reach_out", targetUserId=person, text="Hello")] for person in [people[0], *people]]
    model.script(text, *rounds, [f"done {text}"])
    assert chat.ask(chat.direct(), text).text == f"done {text}"
    for request in [item for item in chat.canon.verbs.contacts if item.status == "pending"]:
        chat.canon.verbs.reject(request.id)  # the cap must not reach another test
    results = tool_results(model, text)
    assert [result.get("status") for result in results[:2]] == ["requested", "pending"]
    refused = [result for result in results if not result["success"]]
    assert refused
    assert "10" in refused[0]["error"]
