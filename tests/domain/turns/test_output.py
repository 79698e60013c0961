"""Which text is the answer (turns §3.3, §3.4; H1, H30, H31, H35)."""

import pytest
from canon_hermes_plugin.domain.turns.output import SEAL_BYTES, Output, sanitize, tidy
from hypothesis import given
from hypothesis import strategies as st

TURN = "hermes-0123456789abcdef0123"


@pytest.fixture
def output():
    return Output(TURN)


def finalized(output, text, *, first="f ▉"):
    bubble = output.open(first, finalized=False)
    output.edit(bubble, text, finalized=True)
    output.edit(bubble, text, finalized=True)
    return bubble


def test_a_double_finalize_is_one_answer(output):
    finalized(output, "The answer.")
    assert output.answer() == "The answer."


def test_an_unfinished_preview_is_no_answer(output):
    output.open("half a sent", finalized=False)
    assert output.answer() is None
    assert output.shown() == "half a sent"


def test_h31_a_preview_with_the_finalized_text_does_not_take_the_answer_back(output):
    bubble = finalized(output, "Done.")
    output.edit(bubble, "Done.", finalized=False)
    assert output.answer() == "Done."


def test_h31_equal_appended_segments_all_count(output):
    for text in ("Done.", "Done.", "More"):
        output.append(text)
    assert output.answer() == "Done.\nDone.\nMore"


def test_field_1_the_streamed_answer_said_again_as_a_plain_send_counts_once(output):
    finalized(output, "The answer.")
    output.append("The answer.")
    assert output.answer() == "The answer."


def test_h1_commentary_closed_by_the_stream_before_its_tool_is_dropped(output):
    finalized(output, "I will look at the files first.")
    output.tool_started("call")
    output.tool_finished("call")
    finalized(output, "\n\nThe answer is that everything works.")
    assert output.answer() == "The answer is that everything works."


def test_h1_commentary_finalized_while_its_tool_runs_is_dropped(output):
    bubble = output.open("I will ▉", finalized=False)
    output.tool_started("call")
    output.edit(bubble, "I will look at the files first.", finalized=True)
    output.tool_finished("call")
    finalized(output, "The answer.")
    assert output.answer() == "The answer."


def test_h1_commentary_finalized_after_its_tool_ended_is_dropped(output):
    bubble = output.open("I will ▉", finalized=False)
    output.tool_started("call")
    output.tool_finished("call")
    output.edit(bubble, "I will look at the files first.", finalized=True)
    finalized(output, "The answer.")
    assert output.answer() == "The answer."


def test_h1_commentary_that_arrives_complete_and_late_is_dropped(output):
    output.tool_started("call")
    output.tool_finished("call")
    output.open("I will look at the files first.", finalized=True)
    finalized(output, "The answer.")
    assert output.answer() == "The answer."


def test_field_7_commentary_alone_is_no_answer(output):
    finalized(output, "I will look at the files first.")
    output.tool_started("call")
    output.tool_finished("call")
    assert output.answer() is None
    assert output.shown() == "I will look at the files first."


def test_h1_text_staged_while_a_tool_runs_is_never_a_candidate(output):
    output.tool_started("call")
    finalized(output, "Still working on it.")
    output.tool_finished("call")
    assert output.answer() is None


def test_text_after_a_tool_whose_end_was_never_told_is_not_lost(output):
    output.tool_started("lost")
    finalized(output, "The answer.")
    assert output.answer() == "The answer."


def test_h1_the_confirmed_text_overrules_everything(output):
    output.tool_started("never ends")
    finalized(output, "Some commentary.")
    finalized(output, "First half of it,")
    finalized(output, " second half of it.")
    output.confirm("First half of it, second half of it.")
    assert output.answer() == "First half of it, second half of it."


def test_the_confirmed_text_knows_the_white_space_between_its_bubbles(output):
    finalized(output, "One paragraph.")
    finalized(output, "Another one.")
    output.confirm("One paragraph.\n\nAnother one.")
    assert output.answer() == "One paragraph.\n\nAnother one."


def test_what_is_appended_to_the_confirmed_answer_stays(output):
    finalized(output, "Comment.")
    finalized(output, "The answer.")
    output.confirm("The answer.")
    output.append("One file could not be attached.")
    assert output.answer() == "The answer.\nOne file could not be attached."


def test_field_1_the_confirmed_answer_said_again_with_a_footer_counts_once(output):
    finalized(output, "The answer.")
    output.confirm("The answer.")
    output.append("The answer.\n\n_took 3 s_")
    assert output.answer() == "The answer.\n\n_took 3 s_"


def test_a_confirmed_text_completes_a_stream_that_broke_off(output):
    output.open("The answer is ▉", finalized=False)
    output.confirm("The answer is 42. MEDIA:/tmp/x.png")
    assert output.answer() == "The answer is 42."


def test_a_confirmed_text_with_media_directives_still_matches_what_was_shown(output):
    finalized(output, "Comment.")
    finalized(output, "Here is the chart.")
    output.confirm("Here is the chart.\nMEDIA:/tmp/chart.png")
    assert output.answer() == "Here is the chart."


def test_a_confirmed_text_alone_is_never_published(output):
    output.confirm("NO_REPLY")
    assert output.answer() is None


def test_a_text_changed_by_the_host_after_its_confirmation_is_kept_as_shown(output):
    finalized(output, "Translated answer")
    output.confirm("Original answer")
    assert output.answer() == "Translated answer"


def test_h30_overflowed_bubbles_are_joined_without_an_added_character(output):
    head, tail = "w" * SEAL_BYTES, "x tail."
    finalized(output, head)
    finalized(output, tail)
    assert output.answer() == head + tail


def test_h30_unfinished_overflowed_bubbles_are_not_lost(output):
    chunks = ["a" * SEAL_BYTES, "b" * SEAL_BYTES, "c" * 100]
    for chunk in chunks[:-1]:
        output.open(chunk, finalized=False)
    output.open(chunks[-1], finalized=True)
    assert output.answer() == "".join(chunks)


@pytest.mark.parametrize(("size", "kept"), [(SEAL_BYTES, True), (SEAL_BYTES - 1, False)])
def test_h1_the_size_decides_whether_a_closed_bubble_can_have_overflowed(output, size, kept):
    finalized(output, "a" * size)
    finalized(output, "tail")
    assert output.answer() == ("a" * size + "tail" if kept else "tail")


def test_an_append_after_streamed_commentary_replaces_it(output):
    finalized(output, "Looking.")
    output.append("The answer.")
    assert output.answer() == "The answer."


def test_an_unfinished_bubble_after_an_answer_does_not_hide_the_answer(output):
    output.append("The answer.")
    output.open("and by the w", finalized=False)
    assert output.answer() == "The answer."


def test_an_edit_of_an_unknown_bubble_changes_nothing(output):
    assert not output.edit("elsewhere", "tool running…", finalized=True)
    assert output.answer() is None


def test_bubble_ids_are_distinct_and_the_first_is_the_turn(output):
    first, second = output.open("a", finalized=True), output.open("b", finalized=True)
    assert first == TURN
    assert second not in {first, ""}


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("Let me ▉", "Let me"),
        ("Let me▉", "Let me"),
        ("▉", ""),
        ("a ▉ b", "a ▉ b"),
        ("bad \ud83d", "bad \ufffd"),
        ("pair \ud83d\ude00", "pair 😀"),
    ],
)
def test_h13_h35_cursor_and_lone_surrogates_are_removed(raw, clean):
    assert sanitize(raw) == clean


def test_h14_blank_edges_of_an_answer_are_dropped_but_indentation_stays():
    assert tidy("\n \n    code\n\n") == "    code"
    assert tidy(" \n\t ") == ""


def test_blank_text_is_no_answer(output):
    output.append(" \n ")
    assert output.answer() is None


def test_the_history_is_bounded_and_keeps_the_answer(output):
    for number in range(500):
        finalized(output, f"comment {number}")
    finalized(output, "The answer.")
    assert output.answer() == "The answer."
    assert len(output._segments) <= 64


texts = st.text(st.characters(codec="utf-16", exclude_categories=[]), min_size=1, max_size=60)


@given(st.lists(texts, max_size=5), texts, st.integers(1, 4))
def test_invariant_21_any_previews_and_identical_finalizes_give_exactly_that_text(previews, final, times):
    output = Output(TURN)
    bubble = output.open(previews[0] if previews else "x", finalized=False)
    for preview in previews:
        output.edit(bubble, preview, finalized=False)
    for _ in range(times):
        output.edit(bubble, final, finalized=True)
    assert output.answer() == (tidy(sanitize(final)) or None)
