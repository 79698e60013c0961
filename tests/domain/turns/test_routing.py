"""Where a text goes: the table of turns §4.1 with its hardening (H3, H8, H9, H11, H39)."""

import itertools

import pytest
from canon_hermes_plugin.domain.turns.model import HostText
from canon_hermes_plugin.domain.turns.routing import DRAFT, NOTE, Route, TextFacts, route

TURN = "hermes-0123456789abcdef0123"
UNMARKED, PREVIEW, SEGMENT, MARKED = (
    HostText("c", "t", expect_edits=e, notify=n)
    for e, n in ((False, False), (True, False), (True, True), (False, True))
)


def edit(bubble, finalize):
    return HostText("c", "t", bubble=bubble, finalize=finalize)


@pytest.mark.parametrize("text", [PREVIEW, SEGMENT, MARKED, edit(TURN, False), edit(TURN, True)])
def test_whatever_the_owner_marks_is_staged(text):
    assert route(text, TextFacts(owned=True, beside=True)) is Route.STAGE


def test_unmarked_text_of_a_running_turn_is_chatter():
    assert route(UNMARKED, TextFacts(owned=True, beside=True)) is Route.CHATTER


def test_h3_the_confirmed_answer_is_an_answer_even_unmarked():
    assert route(UNMARKED, TextFacts(owned=True, confirmed=True, beside=True)) is Route.ANSWER


@pytest.mark.parametrize("facts", [TextFacts(), TextFacts(beside=True), TextFacts(late=True)])
def test_h8_unmarked_text_without_a_turn_of_its_own_is_delivered(facts):
    assert route(UNMARKED, facts) is Route.DELIVER


@pytest.mark.parametrize("owned", [True, False])
def test_h8_a_scheduled_text_is_delivered_whatever_runs(owned):
    text = HostText("c", "t", job_id="job")
    assert route(text, TextFacts(owned=owned, silenced=owned, beside=True)) is Route.DELIVER


def test_h8_an_explicit_tool_send_is_delivered_even_inside_its_turn():
    text = HostText("c", "t", foreign_loop=True)
    assert route(text, TextFacts(owned=True, beside=True)) is Route.DELIVER


def test_field_73_a_silent_turn_says_nothing_through_a_tool_either():
    text = HostText("c", "t", foreign_loop=True)
    assert route(text, TextFacts(owned=True, silenced=True, beside=True)) is Route.SILENCED


def test_h9_a_command_reply_beside_a_running_turn_wakes_nobody():
    assert route(MARKED, TextFacts(beside=True)) is Route.ASIDE
    assert route(MARKED, TextFacts()) is Route.DELIVER


def test_h11_a_preview_without_an_owner_is_ignored_and_its_finalize_is_delivered():
    assert route(PREVIEW, TextFacts()) is Route.PREVIEW
    assert route(edit(f"{DRAFT}1", False), TextFacts()) is Route.PREVIEW
    assert route(edit(f"{DRAFT}1", True), TextFacts()) is Route.DELIVER


@pytest.mark.parametrize("text", [PREVIEW, SEGMENT, edit(TURN, False), edit(TURN, True)])
def test_field_4_the_stream_of_a_turn_that_is_over_publishes_nothing(text):
    assert route(text, TextFacts(late=True)) is Route.LATE


def test_field_4_a_finalize_of_an_ended_turn_without_context_publishes_nothing():
    assert route(edit(TURN, True), TextFacts()) is Route.LATE


@pytest.mark.parametrize("facts", [TextFacts(), TextFacts(owned=True), TextFacts(late=True), TextFacts(beside=True)])
@pytest.mark.parametrize("finalize", [True, False])
def test_an_edit_of_acknowledged_chatter_is_chatter_for_ever(facts, finalize):
    assert route(edit(f"{NOTE}1", finalize), facts) is Route.CHATTER


def test_every_combination_has_a_route():
    booleans = (False, True)
    for marks in itertools.product(booleans, booleans, (None, *booleans), (None, "job"), booleans):
        for facts in itertools.product(booleans, repeat=5):
            expect_edits, notify, finalize, job, foreign = marks
            bubble = None if finalize is None else "bubble"
            text = HostText("c", "t", expect_edits, notify, finalize, bubble, None, job, foreign)
            chosen = route(text, TextFacts(*facts))
            if chosen in {Route.STAGE, Route.ANSWER}:
                assert facts[0]
