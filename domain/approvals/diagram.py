"""Draws the table of transitions, so that the page in ``docs/`` can never tell another story."""

from __future__ import annotations

from typing import Final

from canon_hermes_plugin.domain.approvals.transitions import STATES, TABLE, Row, State

_INTRO: Final = """# The life of a detached approval

Drawn from the table in `domain/approvals/transitions.py`; a test compares this page with it. Arrows carry the names
of the transitions; an event without an arrow leaves the entry as it is. A lease is freed by time alone, and only its
holder may finish what it began. `resolved` was told to a checker and wakes nobody; `resolved_pending` waits to be
handed to the model.

```mermaid
"""
_WORDS: Final = {
    "T1": "reserve",
    "T2": "activated",
    "T3": "unusable responder",
    "T5": "creation refused",
    "T7": "lease over, asked",
    "T8": "asked",
    "T9": "lease over, asked again",
    "T11": "no answer yet",
    "T12": "decided",
    "T13": "time over",
    "T14": "gone, or not attributable",
    "T16": "wake claimed",
    "T17": "lease over, wake claimed",
    "T18": "handed over",
    "T19": "hand-over failed",
    "T21": "older than 14 days",
}


def page() -> str:
    """Return ``docs/approval-states.md``."""
    arrows = [arrow for row in TABLE if row.name in _WORDS for arrow in _arrows(row)]
    return _INTRO + "stateDiagram-v2\n" + "".join(f"    {arrow}\n" for arrow in arrows) + "```\n"


def _arrows(row: Row) -> list[str]:
    sources = sorted(row.states, key=STATES.index)
    # What a decision leads to depends on who asked for it.
    targets: tuple[State, ...] = ("resolved", "resolved/pending") if row.to is None else (row.to,)
    return [f"{_node(a)} --> {_node(b)}: {row.name} {_WORDS[row.name]}" for a in sources for b in targets]


def _node(state: State) -> str:
    return "[*]" if state == "absent" else state.replace("/", "_")
