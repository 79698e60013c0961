"""The registration's state machine as a table (canon-wire §2.2, interactions §13). It knows no time and no network.

The order save, mark, acknowledge, switch, clear makes a crash at any point resumable: the key is on disk before Canon
forgets it, and the record of the request is the last thing to go.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Step(Enum):
    """What is being done. The last six are ends; only :attr:`DONE` is a success."""

    STARTING = "starting"
    SUBMITTING = "submitting the request"
    RECORDING = "recording the request"
    WAITING = "waiting for approval"
    POLLING = "asking for the decision"
    SAVING = "saving the profile"
    MARKING = "recording that the key is stored"
    ACKNOWLEDGING = "acknowledging the key"
    SWITCHING = "switching Hermes to the profile"
    CLEARING = "removing the record of the request"
    DROPPING_REJECTED = "removing the rejected request"
    DROPPING_UNKNOWN = "removing the forgotten request"
    DONE = "connected"
    REJECTED = "rejected"
    FORGOTTEN = "Canon no longer knows the request"
    TIMED_OUT = "no decision in time"
    INCOMPLETE = "approved without key or agent id"
    FAILED = "failed"


class Event(Enum):
    """What happened."""

    FRESH = "no request was submitted before"
    RESUMED = "a request was submitted before"
    STORED = "the key of an earlier run is already stored"
    OK = "the step succeeded"
    ERROR = "the step failed for good"
    PASSING = "the step failed and may succeed later"
    TIME_OVER = "the deadline passed"
    PENDING = "nobody has decided yet"
    REJECTED = "the owner said no"
    APPROVED = "the owner said yes, with key and agent id"
    HOLLOW = "the owner said yes, but key or agent id is missing"
    UNKNOWN = "Canon does not know the request"


TRANSITIONS: Final[dict[tuple[Step, Event], Step]] = {
    (Step.STARTING, Event.FRESH): Step.SUBMITTING,
    (Step.STARTING, Event.RESUMED): Step.WAITING,
    (Step.STARTING, Event.STORED): Step.ACKNOWLEDGING,
    (Step.SUBMITTING, Event.OK): Step.RECORDING,
    (Step.SUBMITTING, Event.PASSING): Step.SUBMITTING,
    (Step.SUBMITTING, Event.ERROR): Step.FAILED,
    (Step.RECORDING, Event.OK): Step.WAITING,
    (Step.RECORDING, Event.ERROR): Step.FAILED,
    (Step.WAITING, Event.OK): Step.POLLING,
    (Step.WAITING, Event.TIME_OVER): Step.TIMED_OUT,
    (Step.POLLING, Event.PENDING): Step.WAITING,
    (Step.POLLING, Event.PASSING): Step.WAITING,
    (Step.POLLING, Event.ERROR): Step.FAILED,
    (Step.POLLING, Event.UNKNOWN): Step.DROPPING_UNKNOWN,
    (Step.POLLING, Event.REJECTED): Step.DROPPING_REJECTED,
    (Step.POLLING, Event.HOLLOW): Step.INCOMPLETE,
    (Step.POLLING, Event.APPROVED): Step.SAVING,
    (Step.DROPPING_UNKNOWN, Event.OK): Step.FORGOTTEN,
    (Step.DROPPING_UNKNOWN, Event.ERROR): Step.FORGOTTEN,
    (Step.DROPPING_REJECTED, Event.OK): Step.REJECTED,
    (Step.DROPPING_REJECTED, Event.ERROR): Step.REJECTED,
    (Step.SAVING, Event.OK): Step.MARKING,
    (Step.SAVING, Event.ERROR): Step.FAILED,
    (Step.MARKING, Event.OK): Step.ACKNOWLEDGING,
    (Step.MARKING, Event.ERROR): Step.FAILED,
    (Step.ACKNOWLEDGING, Event.OK): Step.SWITCHING,
    (Step.ACKNOWLEDGING, Event.PASSING): Step.SWITCHING,
    (Step.ACKNOWLEDGING, Event.ERROR): Step.SWITCHING,
    (Step.SWITCHING, Event.OK): Step.CLEARING,
    (Step.SWITCHING, Event.ERROR): Step.FAILED,
    (Step.CLEARING, Event.OK): Step.DONE,
    (Step.CLEARING, Event.ERROR): Step.DONE,
}
"""Every allowed change. A pair that is not here is a programming error."""

ENDS: Final = frozenset({Step.DONE, Step.REJECTED, Step.FORGOTTEN, Step.TIMED_OUT, Step.INCOMPLETE, Step.FAILED})


def next_step(step: Step, event: Event) -> Step:
    """Return the step that follows. Raises ``KeyError`` for an event that cannot happen in ``step``."""
    return TRANSITIONS[step, event]
