"""Which messages wake a turn: the table, enumerated (turns §1.3, §13 invariants 1 to 4)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from canon_hermes_plugin.domain.inbound.turn_gate import GateReason, judge
from hypothesis import given
from hypothesis import strategies as st

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
SENDERS = ["human", "ai_agent", "HUMAN", "", None, ["human"], "bot"]
SEMANTICS = [None, "progress", "turn_complete", "control", "other", ["progress"], {"a": 1}, True]
BEHAVIORS = [None, "allow_auto_reply", "suppress_auto_reply", "other", ["suppress_auto_reply"]]
VERDICTS: list[Any] = [None, "x", {}, {"kind": ""}, {"kind": 1}, {"kind": ["run_turn"]}]


def payload(sender: object, semantics: object, behavior: object, dispatch: object = None) -> dict[str, Any]:
    metadata = {"turnSemantics": semantics, "replyBehavior": behavior}
    return {"turnDispatch": dispatch, "message": {"senderType": sender, "metadata": metadata}}


@pytest.mark.parametrize("sender", SENDERS)
def test_fallback_table(sender: object) -> None:
    for semantics, behavior, dispatch in product(SEMANTICS, BEHAVIORS, VERDICTS):
        check_fallback(sender, semantics, behavior, dispatch)


def check_fallback(sender: object, semantics: object, behavior: object, dispatch: object) -> None:
    body = payload(sender, semantics, behavior, dispatch)
    if behavior == "suppress_auto_reply":
        expected = (False, GateReason.SUPPRESSED)
    elif sender == "human":
        expected = (True, GateReason.HUMAN)
    elif semantics in ("turn_complete", "control"):
        expected = (True, GateReason.AGENT_COMPLETED)
    else:
        expected = (False, GateReason.AGENT_PROGRESS)
    verdict = judge(body, body["message"])
    assert (verdict.wakes, verdict.reason) == expected
    known = semantics in ("progress", "turn_complete", "control")
    assert verdict.semantics == (semantics if known else "turn_complete" if sender == "human" else "progress")


@pytest.mark.parametrize("kind", ["run_turn", "record_only", "RUN_TURN", " run_turn", "anything"])
def test_a_verdict_decides_in_both_directions(kind: str) -> None:
    for sender, semantics, behavior in product(SENDERS, SEMANTICS, BEHAVIORS):
        body = payload(sender, semantics, behavior, {"kind": kind})
        assert judge(body, body["message"]).wakes is (kind == "run_turn")


@pytest.mark.parametrize("semantics", ["progress", None])
def test_field_72_progress_of_an_agent_never_wakes_another(semantics: str | None) -> None:
    body = payload("ai_agent", semantics, "allow_auto_reply")
    assert not judge(body, body["message"]).wakes


@given(json_values, json_values, json_values)
def test_h16_no_json_value_makes_the_gate_raise(metadata: object, dispatch: object, sender: object) -> None:
    message = {"senderType": sender, "metadata": metadata}
    verdict = judge({"turnDispatch": dispatch}, message)
    assert isinstance(verdict.wakes, bool)
