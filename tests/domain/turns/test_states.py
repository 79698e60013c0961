"""The public states of a turn: every state meets every event (turns §2.2)."""

import itertools
from pathlib import Path

import pytest
from canon_hermes_plugin.domain.turns.diagrams import page
from canon_hermes_plugin.domain.turns.states import (
    ALL_STATES,
    CLOSED_STATES,
    OPEN_STATES,
    OUTCOME_EVENTS,
    TRANSITIONS,
    TurnEvent,
    advance,
    is_closed,
)

ENDS = {TurnEvent.SUCCEEDED: "completed", TurnEvent.FAILED: "completed", TurnEvent.CANCELLED: "interrupted"}
PAGE = Path(__file__).parents[3] / "docs" / "turn-states.md"


def expected(state, event):
    if state in CLOSED_STATES:
        return state
    if event in ENDS:
        return ENDS[event]
    if event is TurnEvent.ASKED:
        return "waiting_input"
    if event is TurnEvent.ANSWERED:
        return "tool" if state == "waiting_input" else state
    return "waiting_input" if state == "waiting_input" else "streaming"


@pytest.mark.parametrize(("state", "event"), list(itertools.product(ALL_STATES, TurnEvent)))
def test_every_state_meets_every_event(state, event):
    assert advance(state, event) == expected(state, event)


@pytest.mark.parametrize("state", CLOSED_STATES)
def test_a_closed_state_has_no_way_out(state):
    assert not [pair for pair in TRANSITIONS if pair[0] == state]


def test_h7_only_the_end_of_the_lifecycle_closes_a_turn():
    closing = {event for (_, event), after in TRANSITIONS.items() if is_closed(after)}
    assert closing == set(OUTCOME_EVENTS.values())


def test_every_open_state_can_be_left_by_every_outcome():
    for state, event in itertools.product(OPEN_STATES, OUTCOME_EVENTS.values()):
        assert is_closed(advance(state, event))


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of an installed distribution")
def test_the_documented_diagrams_are_the_tables():
    assert PAGE.read_text(encoding="utf-8") == page()
