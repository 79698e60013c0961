"""The registration's table: every state and event, and the order that makes a crash resumable (interactions §13)."""

import itertools

import pytest
from canon_hermes_plugin.domain.registration.flow import ENDS, TRANSITIONS, Event, Step, next_step


def test_every_step_has_a_way_on_and_ends_have_none():
    sources = {step for step, _ in TRANSITIONS}
    assert sources == set(Step) - ENDS


def test_every_step_is_reachable():
    seen, todo = set(), [Step.STARTING]
    while todo:
        step = todo.pop()
        if step not in seen:
            seen.add(step)
            todo += [after for (before, _), after in TRANSITIONS.items() if before is step]
    assert seen == set(Step)


def test_what_is_not_in_the_table_cannot_happen():
    for step, event in itertools.product(Step, Event):
        if (step, event) not in TRANSITIONS:
            with pytest.raises(KeyError):
                next_step(step, event)


def test_the_only_way_to_done_is_save_mark_acknowledge_switch_clear():
    def before(step):
        return {source for (source, _), target in TRANSITIONS.items() if target is step}

    assert before(Step.DONE) == {Step.CLEARING}
    assert before(Step.CLEARING) == {Step.SWITCHING}
    assert before(Step.SWITCHING) == {Step.ACKNOWLEDGING}
    assert before(Step.ACKNOWLEDGING) == {Step.MARKING, Step.STARTING}
    assert before(Step.MARKING) == {Step.SAVING}
    assert before(Step.SAVING) == {Step.POLLING}


@pytest.mark.parametrize("event", [Event.ERROR, Event.PASSING])
def test_a_failed_acknowledgement_stops_nothing(event):
    assert next_step(Step.ACKNOWLEDGING, event) is Step.SWITCHING
