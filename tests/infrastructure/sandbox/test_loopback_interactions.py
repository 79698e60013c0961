"""Interactions, verbs and registration of the stand-in (canon-wire §11.1 rows 13 to 19 and 21)."""

import httpx
import pytest
from canon_hermes_plugin.infrastructure.sandbox.records import Person
from canon_hermes_plugin.infrastructure.sandbox.server import DIRECT, GROUP, LoopbackCanon

NOW = 1_800_000_000_000
HOUR = 3_600_000
CARD = {"schema": "canon.card.v1", "title": "t", "fallbackText": "f", "blocks": []}
ACTIONS = {**CARD, "blocks": [{"kind": "actions", "actions": [{"id": "ok", "label": "OK"}]}]}


@pytest.fixture
def canon():
    with LoopbackCanon(clock=lambda: NOW) as running:
        yield running


def approval(**fields):
    base = {"interactionKind": "approval", "conversationId": DIRECT, "approvalId": "a1", "expiresAt": NOW + HOUR}
    return {**base, "toolName": "File", "toolSummary": "File it?", "allowSessionRule": True, **fields}


def question(**fields):
    base = {"interactionKind": "input", "conversationId": DIRECT, "inputId": "i1", "expiresAt": NOW + HOUR}
    return {**base, "kind": "clarify", "prompt": "Which?", **fields}


def card(**fields):
    base = {"interactionKind": "card", "conversationId": DIRECT, "cardId": "c1", "expiresAt": NOW + HOUR}
    return {**base, "card": ACTIONS, **fields}


def create(client, body):
    return client.post("/runtime-interaction/request", json=body)


def consume(client, body, **extra):
    keep = {key: value for key, value in body.items() if key == "interactionKind" or key.endswith("Id")}
    return client.post("/runtime-interaction/consume", json={**keep, **extra})


def stream_types(canon):
    events = [event for event in canon.state.events.events if event.name == "message.created"]
    return [event.data["message"].get("metadata", {}).get("type") for event in events]


@pytest.mark.parametrize("make", [approval, question, card])
def test_ids_are_unique_for_ever(canon, client, make):
    assert create(client, make()).status_code == 201
    assert create(client, make()).status_code == 409
    consume(client, make(), cancel=True)
    canon.advance(100 * 24 * 3600)
    assert create(client, make(expiresAt=NOW * 2)).status_code == 409


def test_the_owner_answers_what_names_nobody_and_the_effective_values_are_echoed(canon, client):
    canon.interactions.policy.clamp_ms = 60_000
    answer = create(client, approval()).json()
    assert answer["success"] is True
    assert answer["responseUserId"] == canon.identity.owner.id
    assert answer["expiresAt"] == NOW + 60_000
    assert answer["allowSessionRule"] is True
    named = create(client, approval(approvalId="a2", responseUserId="user_dana")).json()
    assert (named["responseUserId"], named["allowSessionRule"]) == ("user_dana", False)
    assert create(client, approval(approvalId="a3", responseUserId="nobody")).status_code == 400


def test_only_the_responder_may_answer_and_only_once(canon, client):
    create(client, approval(responseUserId="user_dana"))
    with pytest.raises(PermissionError):
        canon.interactions.answer("a1", user_id=canon.identity.owner.id, decision="allow")
    canon.interactions.answer("a1", decision="allow")
    with pytest.raises(ValueError, match="answered"):
        canon.interactions.answer("a1", decision="deny")


@pytest.mark.parametrize(
    ("make", "result"),
    [(question, {"value": "yes"}), (card, {"actionId": "ok", "values": {"a": 1}})],
)
def test_an_input_or_card_answer_can_be_taken_once(canon, client, make, result):
    create(client, make(responseUserId="user_dana"))
    assert consume(client, make()).json() == {"status": "pending", "expiresAt": NOW + HOUR}
    canon.interactions.answer(**result)
    taken = consume(client, make()).json()
    assert taken["status"] == "submitted"
    assert taken["respondedBy"] == "user_dana"
    assert taken.items() >= result.items()
    assert consume(client, make()).status_code == 404


def test_an_approvals_decision_is_replayed_for_72_hours_and_then_unknown(canon, client):
    create(client, approval(expiresAt=NOW + 72 * HOUR))
    canon.interactions.answer(decision="deny")
    first = consume(client, approval()).json()
    assert (first["status"], first["respondedBy"]) == ("deny", canon.identity.owner.id)
    canon.advance(72 * 3600)
    assert consume(client, approval()).json() == first
    canon.advance(1)
    assert consume(client, approval()).status_code == 404


def test_another_conversation_cannot_consume(canon, client):
    create(client, approval())
    canon.interactions.answer(decision="allow")
    assert consume(client, approval(conversationId=GROUP)).status_code == 404


@pytest.mark.parametrize("make", [approval, question, card])
def test_expiry_is_a_timeout_and_nobody_answers_afterwards(canon, client, make):
    create(client, make())
    canon.advance(3600)
    with pytest.raises(ValueError, match="expired"):
        canon.interactions.answer(decision="allow")
    assert consume(client, make()).json()["status"] == "timeout"
    assert consume(client, make()).status_code == 404


def test_a_cancel_ends_a_pending_request_but_returns_an_answer_that_was_faster(canon, client):
    create(client, question())
    assert consume(client, question(), cancel=True).json()["status"] == "cancelled"
    create(client, question(inputId="i2"))
    canon.interactions.answer("i2", value="just in time")
    assert consume(client, question(inputId="i2"), cancel=True).json()["value"] == "just in time"


def test_the_thirty_minute_cap_names_the_field(canon, client):
    canon.interactions.policy.short_cap = True
    refused = create(client, approval())
    assert refused.status_code == 400
    assert "expiresAt" in refused.json()["error"]
    assert create(client, approval(expiresAt=NOW + HOUR // 2)).status_code == 201


def test_an_approval_reply_can_overtake_the_answer_of_its_creation(canon, client):
    canon.interactions.policy.on_create = lambda made: canon.interactions.answer(made.id, decision="allow")
    canon.fault("interaction.create", kind="drop", after=True)
    with pytest.raises(httpx.RemoteProtocolError):
        create(client, approval())
    assert stream_types(canon) == ["approval_reply"]
    assert consume(client, approval()).json()["status"] == "allow"


def test_answers_and_outcomes_are_announced_as_control_messages(canon, client):
    create(client, approval())
    canon.interactions.expire("a1")
    create(client, question())
    canon.interactions.answer("i1", value="x")
    create(client, question(inputId="i2"))
    consume(client, question(inputId="i2"), cancel=True)
    assert stream_types(canon) == ["approval_outcome", "runtime_input_reply", "runtime_input_outcome"]


def test_a_card_without_actions_is_display_only(canon, client):
    assert create(client, card(card=CARD)).json()["interactive"] is False
    minted = create(client, {**card(), "cardId": None}).json()
    assert minted["interactive"] is True
    assert minted["cardId"]
    assert [made.id for made in canon.interactions.waiting(DIRECT)] == [minted["cardId"]]


def verb(client, name, envelope, value):
    wire = {"wire": "canon.verb-wire.v1", "verb": name, "envelope": envelope}
    return client.post(f"/agent/verbs/{name}", json={**wire, "body": {"encoding": "json", "value": value}})


def reach(client, text="hello", user="user_dana"):
    return verb(client, "send_to", {"targetUserId": user}, {"text": text} if text else {})


def value_of(response):
    body = response.json()
    assert body["wire"] == "canon.verb-wire.v1"
    assert body["result"]["encoding"] == "json"
    return body["result"]["value"]


def test_send_to_an_open_person_creates_then_reuses_the_conversation(canon, client):
    first, second = value_of(reach(client)), value_of(reach(client, text=None))
    assert (first["status"], first["created"], first["reused"]) == ("messaged", True, False)
    assert (second["created"], second["reused"], "messageId" in second) == (False, True, False)
    assert [message.text for message in canon.messages(first["conversationId"])] == ["hello"]


def test_a_deferred_opener_is_delivered_once_on_approval(canon, client):
    canon.verbs.admit("user_dana", "approval-required")
    requested, again = value_of(reach(client)), value_of(reach(client, text="other"))
    assert (requested["status"], again["status"]) == ("requested", "pending")
    assert requested["requestId"] == again["requestId"]
    assert canon.messages() == []
    canon.verbs.approve(requested["requestId"])
    assert [message.text for message in canon.messages()] == ["hello"]
    with pytest.raises(LookupError):
        canon.verbs.approve(requested["requestId"])


@pytest.mark.parametrize(
    ("admission", "status", "reason"),
    [("owner-only", "blocked", "owner-only"), ("setup-required", "setup_required", "setup-required")],
)
def test_refused_admissions_name_a_reason(canon, client, admission, status, reason):
    canon.verbs.admit("user_dana", admission)
    assert value_of(reach(client)) == {"status": status, "reason": reason}


def test_at_most_ten_contact_requests_are_pending(canon, client):
    for number in range(11):
        canon.add_person(Person(f"user_{number}", "N"))
        canon.verbs.admit(f"user_{number}", "approval-required")
    answers = [reach(client, user=f"user_{number}") for number in range(11)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [400]


def test_the_opener_is_limited_in_bytes(client):
    assert reach(client, text="\u05d0" * 2049).status_code == 400


def test_no_reply_is_acknowledged_and_only_the_presence_of_a_reason_kept(canon, client):
    envelope = {"conversationId": DIRECT, "messageId": "msg_1"}
    assert value_of(verb(client, "no_reply", envelope, {"reason": "given"}))["status"] == "acknowledged"
    assert canon.logs.verbs == [
        {"verb": "no_reply", "conversationId": DIRECT, "messageId": "msg_1", "reasonGiven": True}
    ]
    assert verb(client, "no_reply", envelope, {"reason": "x" * 501}).status_code == 400


def test_a_malformed_or_unknown_verb_is_refused(client):
    assert client.post("/agent/verbs/no_reply", json={"wire": "other"}).status_code == 400
    assert verb(client, "dance", {}, {}).status_code == 404


def register(canon, **fields):
    base = {"name": "Hermes", "description": "d", "ownerPhone": "+491700000", "developerInfo": "i"}
    local = {"clientType": "hermes", "localRegistrationId": "hermes-" + "a" * 32}
    return httpx.post(f"{canon.base_url}/agents/register", json={**base, **local, **fields})


def test_the_same_local_registration_gets_the_same_request(canon):
    first, second = register(canon).json(), register(canon, name="Other").json()
    assert first == second
    assert register(canon, localRegistrationId="hermes-" + "b" * 32).json() != first
    assert register(canon, localRegistrationId="x").status_code == 400


def test_a_key_is_delivered_until_it_is_acknowledged_and_only_with_the_poll_token(canon):
    made = register(canon).json()
    url, headers = f"{canon.base_url}/agents/status/{made['requestId']}", {"x-canon-poll-token": made["pollToken"]}
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, headers=headers).json() == {"status": "pending"}
    canon.registrations.approve()
    for _ in range(2):
        assert httpx.get(url, headers=headers).json()["apiKey"] == canon.identity.api_key
    assert httpx.post(url + "/ack", headers=headers).status_code == 200
    assert "apiKey" not in httpx.get(url, headers=headers).json()


def test_rejected_and_forgotten_registrations(canon):
    canon.registrations.issue_tokens = False
    made = register(canon).json()
    assert "pollToken" not in made
    url = f"{canon.base_url}/agents/status/{made['requestId']}"
    canon.registrations.reject()
    assert httpx.get(url).json() == {"status": "rejected"}
    canon.registrations.forget()
    assert httpx.get(url).status_code == 404
