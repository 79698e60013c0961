"""The posture of group messages (turns §1.7)."""

from __future__ import annotations

from typing import Any

import pytest
from canon_hermes_plugin.domain.inbound.prompt import PromptFacts, agent_turn_limit, group_prompt, is_mentioned


def test_one_fact_per_line_in_order() -> None:
    lines = group_prompt(PromptFacts(True, "Otto\nthe agent", 3, 4)).split("\n")
    assert len(lines) == 3
    assert "(Otto the agent)" in lines[0]
    assert "meant for you" in lines[0]
    assert "3 members" in lines[1]
    assert "no_reply" in lines[1]
    assert "canon_runtime_control" in lines[1]
    assert "4 consecutive agent messages" in lines[2]


def test_singular_unknown_and_unmentioned() -> None:
    prompt = group_prompt(PromptFacts(False, None, 1, 1))
    assert "does not name you." in prompt
    assert "with 1 member." in prompt
    assert "1 consecutive agent message until" in prompt
    assert "with" not in group_prompt(PromptFacts(False)).split("\n")[1].split(".")[0]
    assert len(group_prompt(PromptFacts(False)).split("\n")) == 2


def test_when_to_answer_is_said_once() -> None:
    for mentioned in (True, False):
        assert group_prompt(PromptFacts(mentioned, "O", 2, 2)).lower().count("answer only") == 1


@pytest.mark.parametrize(
    ("payload", "message", "mentioned"),
    [
        ({"provenance": {"mentionedAgent": True}}, {}, True),
        ({"provenance": {}}, {"provenance": {"mentionedAgent": True}}, False),
        ({"provenance": "x"}, {"provenance": {"mentionedAgent": 1}}, True),
        ({}, {"mentions": ["me"]}, True),
        ({"mentions": ["me"]}, {"mentions": []}, True),
        ({"mentions": ["me"]}, {"mentions": ["other"]}, False),
        ({"mentions": "me"}, {}, False),
        ({"mentions": [["me"], None]}, {}, False),
    ],
)
def test_mentions(payload: dict[str, Any], message: dict[str, Any], mentioned: bool) -> None:
    assert is_mentioned(payload, message, "me") is mentioned


@pytest.mark.parametrize(("value", "limit"), [(4, 4), (True, None), ("4", None), (None, None), (4.0, None)])
def test_limit_is_an_integer(value: object, limit: int | None) -> None:
    assert agent_turn_limit({"behavior": {"participation": {"maxConsecutiveAgentTurns": value}}}) == limit
    assert agent_turn_limit({"behavior": [value]}) is None
