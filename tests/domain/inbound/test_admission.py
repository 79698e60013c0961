"""The admission pipeline, step by step (turns §1.2, §13 invariants 1 to 6, H16, H18)."""

from __future__ import annotations

from typing import Any

import pytest
from canon_hermes_plugin.domain.inbound.admission import (
    CONTROL_TYPES,
    Admit,
    Drop,
    DropReason,
    Receipt,
    Screened,
    Suppress,
    decide,
    screen,
)
from hypothesis import given
from hypothesis import strategies as st

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["approval_reply", "me", "human"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def payload(**message: Any) -> dict[str, Any]:
    return {"conversationId": "c", "message": {"id": "m", "senderType": "human", "text": "hi", **message}}


@pytest.mark.parametrize("body", [None, [], "x", {}, {"message": None}, {"message": ["x"]}])
def test_step_1_no_message_object(body: object) -> None:
    assert screen(body, "me") == Drop(DropReason.MALFORMED)


def test_step_2_own_messages_are_dropped_before_anything_else() -> None:
    assert screen(payload(senderId="me", metadata={"type": "approval_reply", "approvalId": "a"}), "me") == Drop(
        DropReason.OWN
    )
    assert isinstance(screen(payload(senderId="me"), None), Screened)


def test_step_3_a_reply_with_an_approval_id_is_offered_as_a_receipt() -> None:
    assert screen(payload(metadata={"type": "approval_reply", "approvalId": " a1 "}), "me") == Receipt("a1")


@pytest.mark.parametrize("kind", sorted(CONTROL_TYPES))
def test_step_4_control_messages_are_never_chat(kind: str) -> None:
    assert screen(payload(metadata={"type": kind}), "me") == Drop(DropReason.CONTROL)


@pytest.mark.parametrize("conversation", [None, "", "  ", [], {}, True])
def test_field_22_and_step_6_no_conversation_id(conversation: object) -> None:
    assert screen({**payload(), "conversationId": conversation}, "me") == Drop(DropReason.NO_CONVERSATION)


def test_field_26_ids_have_one_spelling() -> None:
    screened = screen({**payload(id=" m1 "), "conversationId": " c1 "}, "me")
    assert isinstance(screened, Screened)
    assert (screened.conversation_id, screened.message_id) == ("c1", "m1")
    numeric = screen({**payload(id=17), "conversationId": 5}, "me")
    assert isinstance(numeric, Screened)
    assert (numeric.conversation_id, numeric.message_id) == ("5", "17")


@pytest.mark.parametrize("metadata", [{"type": ["x"]}, {"type": {"a": 1}}, ["type"], "approval_reply", {"type": True}])
def test_h16_metadata_of_the_wrong_type_is_absent(metadata: object) -> None:
    screened = screen(payload(metadata=metadata), "me")
    assert isinstance(screened, Screened)
    assert isinstance(decide(screened), Admit)


def test_step_9_to_11() -> None:
    def outcome(**message: Any) -> Drop | Suppress | Admit:
        screened = screen(payload(**message), "me")
        assert isinstance(screened, Screened)
        return decide(screened)

    assert outcome(text=" ") == Drop(DropReason.EMPTY)
    suppressed = outcome(senderType="ai_agent", senderName="Otto")
    assert isinstance(suppressed, Suppress)
    assert suppressed.overheard.entry().render() == "[Otto [agent]] hi"
    admitted = outcome()
    assert isinstance(admitted, Admit)
    assert admitted.text == "hi"


@given(json_values, json_values, json_values)
def test_h16_no_payload_makes_admission_raise(metadata: object, message: object, body: object) -> None:
    for candidate in (
        body,
        {"conversationId": "c", "message": message},
        {"conversationId": "c", "message": {"text": "x", "metadata": metadata}},
        {"conversationId": body, "message": {"text": body, "attachments": message, "metadata": metadata}},
    ):
        screened = screen(candidate, "me")
        if isinstance(screened, Screened):
            assert isinstance(decide(screened), Drop | Suppress | Admit)
