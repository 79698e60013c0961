"""One operation at a time: reserve, settle, replay, release (turns §4.3)."""

import itertools

import pytest
from canon_hermes_plugin.domain.turns.delivery import (
    TRANSITIONS,
    DeliveryBook,
    DeliveryEvent,
    DeliveryState,
    Operation,
    Verdict,
    transmit,
)
from canon_hermes_plugin.domain.turns.plan import Answer, plan
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.ports.errors import CanonTransportError, DeliveryError, MalformedResponseError
from hypothesis import given
from hypothesis import strategies as st


def operation(text, base="base"):
    return Operation(plan(Answer(text), "conv", base))


@pytest.fixture
def book():
    return DeliveryBook("conv", "turn")


EXPECTED = {
    (DeliveryState.IDLE, DeliveryEvent.PREPARE_NEW): DeliveryState.RESERVED,
    (DeliveryState.RESERVED, DeliveryEvent.PREPARE_SAME): DeliveryState.RESERVED,
    (DeliveryState.RESERVED, DeliveryEvent.PREPARE_OTHER): DeliveryState.RESERVED,
    (DeliveryState.RESERVED, DeliveryEvent.SETTLE): DeliveryState.IDLE,
    (DeliveryState.RESERVED, DeliveryEvent.RELEASE): DeliveryState.IDLE,
    (DeliveryState.RESERVED, DeliveryEvent.KEEP): DeliveryState.RESERVED,
}


@pytest.mark.parametrize(("state", "event"), list(itertools.product(DeliveryState, DeliveryEvent)))
def test_every_state_meets_every_event(state, event):
    known = TRANSITIONS.get((state, event))
    assert (known[0] if known else None) == EXPECTED.get((state, event))


def test_success_advances_the_ordinal_by_one(book):
    first_id = book.next_id
    assert book.prepare(operation("a"))[0] is Verdict.SEND
    assert book.next_id == first_id
    assert book.settle() is Verdict.ADVANCE
    assert (book.settled_ordinal, book.state) == (1, DeliveryState.IDLE)
    assert book.next_id != first_id


def test_a_replay_uses_the_stored_plan_whatever_the_caller_built(book):
    stored = operation("same")
    book.prepare(stored)
    book.fail("ambiguous")
    verdict, held = book.prepare(Operation(plan(Answer("same", reply_to="other", metadata={"x": 1}), "conv", "base")))
    assert (verdict, held) == (Verdict.REPLAY, stored)


def test_other_content_is_refused_while_an_operation_is_unsettled(book):
    book.prepare(operation("a"))
    book.fail("ambiguous")
    assert book.prepare(operation("b"))[0] is Verdict.REFUSE


def test_a_definitive_failure_of_one_message_frees_the_ordinal(book):
    first_id = book.next_id
    book.prepare(operation("a"))
    assert book.fail("definitive") is Verdict.FREE
    assert (book.next_id, book.settled_ordinal) == (first_id, 0)
    assert book.prepare(operation("b"))[0] is Verdict.SEND


def test_a_definitive_failure_of_several_messages_keeps_the_plan(book):
    book.prepare(operation("x" * 9000))
    assert book.fail("definitive") is Verdict.HOLD


def test_settling_nothing_is_a_programming_error_that_changes_nothing(book):
    with pytest.raises(KeyError):
        book.settle()
    assert book.settled_ordinal == 0


@given(st.lists(st.sampled_from(["ok", "definitive", "ambiguous"])))
def test_invariant_35_ordinals_follow_the_outcomes_without_gaps(outcomes):
    book = DeliveryBook("conv", "turn")
    settled = 0
    for outcome in outcomes:
        before = book.settled_ordinal
        verdict, _ = book.prepare(operation("text"))
        assert verdict in {Verdict.SEND, Verdict.REPLAY}
        if outcome == "ok":
            book.settle()
            settled += 1
        else:
            book.fail(outcome)
            assert book.settled_ordinal == before
    assert book.settled_ordinal == settled


async def test_field_9_a_replay_resumes_at_the_first_unsettled_part():
    canon, made = MemoryCanon(), operation("\n\n".join(letter * 3000 for letter in "abc"))
    canon.faults.fail_next("upload", Fault.ambiguous())
    await canon.send(made.messages[0])
    made.receipts.append(await canon.send(made.messages[0]))
    canon.faults.fail_next("send", Fault.ambiguous())
    with pytest.raises(DeliveryError):
        await transmit(canon, made)
    assert len(made.receipts) == 1
    await transmit(canon, made)
    assert [message.text[0] for message in canon.messages] == ["a", "b", "c"]
    assert canon.operations().count("send") == 2 + 1 + 2


async def test_the_first_failure_stops_the_parts_behind_it():
    canon, made = MemoryCanon(), operation("\n\n".join(letter * 3000 for letter in "abc"))
    canon.faults.fail_next("send", Fault.definitive())
    with pytest.raises(DeliveryError) as caught:
        await transmit(canon, made)
    assert caught.value.certainty == "definitive"
    assert canon.messages == []
    assert canon.operations() == ["send"]


@pytest.mark.parametrize("error", [MalformedResponseError("?"), CanonTransportError("?", executed=False)])
async def test_an_unclassified_failure_is_ambiguous(error):
    class Vague:
        async def send(self, message):
            raise error

    with pytest.raises(DeliveryError) as caught:
        await transmit(Vague(), operation("a"))
    assert caught.value.certainty == "ambiguous"
