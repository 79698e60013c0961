"""The public state of a turn, as a table (turns §2.2).

Decides which state follows which event. Refuses to know why an event happened and how a state is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from canon_hermes_plugin.domain.turns.model import Outcome
from canon_hermes_plugin.ports.canon import TurnState


class TurnEvent(Enum):
    """What can happen to the public state of a turn."""

    PREVIEWED = "text shown"
    ASKED = "a human is asked"
    ANSWERED = "answered, denied or timed out"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN_STATES: tuple[TurnState, ...] = ("thinking", "streaming", "tool", "waiting_input")
CLOSED_STATES: tuple[TurnState, ...] = ("completed", "interrupted")
ALL_STATES: tuple[TurnState, ...] = OPEN_STATES + CLOSED_STATES
INITIAL_STATE: TurnState = "thinking"

TRANSITIONS: Mapping[tuple[TurnState, TurnEvent], TurnState] = MappingProxyType(
    {
        ("thinking", TurnEvent.PREVIEWED): "streaming",
        ("thinking", TurnEvent.ASKED): "waiting_input",
        ("thinking", TurnEvent.SUCCEEDED): "completed",
        ("thinking", TurnEvent.FAILED): "completed",
        ("thinking", TurnEvent.CANCELLED): "interrupted",
        ("streaming", TurnEvent.PREVIEWED): "streaming",
        ("streaming", TurnEvent.ASKED): "waiting_input",
        ("streaming", TurnEvent.SUCCEEDED): "completed",
        ("streaming", TurnEvent.FAILED): "completed",
        ("streaming", TurnEvent.CANCELLED): "interrupted",
        ("tool", TurnEvent.PREVIEWED): "streaming",
        ("tool", TurnEvent.ASKED): "waiting_input",
        ("tool", TurnEvent.SUCCEEDED): "completed",
        ("tool", TurnEvent.FAILED): "completed",
        ("tool", TurnEvent.CANCELLED): "interrupted",
        # A late frame of the stream does not hide that somebody is being asked.
        ("waiting_input", TurnEvent.PREVIEWED): "waiting_input",
        ("waiting_input", TurnEvent.ASKED): "waiting_input",
        # A denial or a deadline returns to work like an approval: only the lifecycle closes a turn (H7).
        ("waiting_input", TurnEvent.ANSWERED): "tool",
        ("waiting_input", TurnEvent.SUCCEEDED): "completed",
        ("waiting_input", TurnEvent.FAILED): "completed",
        ("waiting_input", TurnEvent.CANCELLED): "interrupted",
    }
)
"""Every transition that exists. A pair that is missing leaves the state as it is."""

OUTCOME_EVENTS: Mapping[Outcome, TurnEvent] = MappingProxyType(
    {
        "success": TurnEvent.SUCCEEDED,
        "failure": TurnEvent.FAILED,
        "cancelled": TurnEvent.CANCELLED,
    }
)


def advance(state: TurnState, event: TurnEvent) -> TurnState:
    """Return the state after ``event``; an event without a transition changes nothing."""
    return TRANSITIONS.get((state, event), state)


def is_closed(state: TurnState) -> bool:
    """Return whether the turn is over in ``state``."""
    return state in CLOSED_STATES


def diagram() -> str:
    """Return the table as a Mermaid state diagram, the source of ``docs/turn-states.md``."""
    lines = ["stateDiagram-v2", f"    [*] --> {INITIAL_STATE}"]
    for (state, event), after in TRANSITIONS.items():
        if after != state:
            lines.append(f"    {state} --> {after}: {event.value}")
    lines += [f"    {state} --> [*]" for state in CLOSED_STATES]
    return "\n".join(lines)
