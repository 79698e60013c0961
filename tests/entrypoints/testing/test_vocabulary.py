"""The vocabulary of the kit tells its author's slips: unknown words, unknown names, and what was prepared in vain."""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path

import pytest
from canon_hermes_plugin import (
    request_card_for_current_human,
    request_detached_approval_for_current_human,
    send_card_to_current_conversation,
)
from canon_hermes_plugin.domain.interactions.blocking import ExecAsk
from canon_hermes_plugin.infrastructure.hermes.prompts import PromptedTurn
from canon_hermes_plugin.ports.canon import CanonApi
from canon_hermes_plugin.ports.errors import EnvironmentUnreachableError
from canon_hermes_plugin.testing import CanonHermes, Fault
from canon_hermes_plugin.testing.contracts import SUITES


def card(title, *actions):
    offered = [{"id": action, "label": action} for action in actions]
    blocks = [{"kind": "actions", "actions": offered}] if offered else [{"kind": "summary", "text": title}]
    return {"schema": "canon.card.v1", "title": title, "fallbackText": title, "blocks": blocks}


CATEGORY, TRAVEL = card("Category?", "food", "rent"), card("Travel?", "food")


# --- typos ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["conversatoin", "Metadata", "to", "sender_id"])
def test_an_unknown_keyword_is_no_message_field(canon, canon_hermes, field):
    with pytest.raises(TypeError, match=f"nothing is called {field} here; .*conversation.*metadata"):
        canon.says("x", **{field: "ops"})
    assert canon_hermes.host.received == []


def test_every_field_of_a_message_in_canons_words_is_taken(canon, canon_hermes):
    assert canon.says("x", id="m-7", replyTo="m-6", mentions=["agent_hermes"], contentType="text") == "m-7"
    assert canon_hermes.host.received[0].message_id == "m-7"


@pytest.mark.parametrize("act", ["says", "stops", "turn"])
@pytest.mark.parametrize("name", ["zzz", "with-nobody", "Ops"])
def test_a_conversation_that_was_never_opened_is_named_beside_those_there_are(canon, canon_turn, act, name):
    canon.group("ops", "dana", "olga")
    acts = {
        "says": lambda: canon.says("x", by="dana", conversation=name),
        "stops": lambda: canon.stops(by="dana", conversation=name),
        "turn": lambda: canon_turn("x", conversation=name),
    }
    with pytest.raises(ValueError, match=rf"no conversation '{name}'; there are: with-dana, ops.*group"):
        acts[act]()


@pytest.mark.parametrize(
    ("conversation", "by", "people"), [("ops", "eve", "dana, olga"), ("with-dana", "olga", "dana"), ("duo", "x", "eve")]
)
def test_who_is_not_in_a_conversation_cannot_speak_there(canon, conversation, by, people):
    canon.group("ops", "dana", "olga")
    canon.group("duo", "eve")
    with pytest.raises(ValueError, match=rf"^{by} is not in {conversation}; in it are: {people}$"):
        canon.says("x", by=by, conversation=conversation)


def test_a_direct_conversation_needs_no_opening(canon, canon_hermes):
    canon.says("x", by="eve")
    canon.says("y", by="eve", conversation="with-eve")
    canon.says("z", by="otto", conversation="with-otto")
    assert [(message.conversation_id, message.chat_kind) for message in canon_hermes.host.received] == [
        ("with-eve", "direct"),
        ("with-eve", "direct"),
        ("with-otto", "direct"),
    ]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("ops", ["dana", "olga"]), TypeError, r"not \['dana', 'olga'\]"),
        (("ops",), ValueError, r'a group has people; name them: group\("ops", "dana", "olga"\)'),
        (("ops", "dana", ""), ValueError, "a person's name is not blank"),
        (("ops", "dana", "dana"), ValueError, "named twice: dana, dana"),
        (("", "dana"), ValueError, "a group's name is not blank"),
        ((7, "dana"), TypeError, "a group's name is a text, not 7"),
        (("with-dana", "dana"), ValueError, "with-dana is the direct conversation with dana"),
    ],
)
def test_what_is_no_group_is_told_what_one_is(canon, arguments, error, message):
    with pytest.raises(error, match=message):
        canon.group(*arguments)


def test_a_group_is_opened_once(canon):
    canon.group("ops", "dana", "olga")
    with pytest.raises(ValueError, match="a group ops already; its people are: dana, olga"):
        canon.group("ops", "eve")


@pytest.mark.parametrize("text", [None, b"x", 7, ["x"]])
def test_what_is_said_is_a_text(canon, text):
    with pytest.raises(TypeError, match=f"what is said is a text, not {re.escape(repr(text))}"):
        canon.says(text)


@pytest.mark.parametrize(("by", "error"), [("", ValueError), (" ", ValueError), (None, TypeError), (7, TypeError)])
def test_who_acts_has_a_name(canon, by, error):
    for act in (lambda: canon.says("x", by=by), lambda: canon.stops(by=by)):
        with pytest.raises(error, match="a person"):
            act()
    if by is not None:
        for act in (canon.answers, canon.approves, canon.denies):
            with pytest.raises(error, match="a person"):
                act(by=by)


@pytest.mark.parametrize("look", ["messages", "texts"])
def test_nobody_reads_a_conversation_that_is_not_there(canon, look):
    canon.group("ops", "dana", "olga")
    for name in ("ops", "with-dana", "with-olga"):
        assert getattr(canon, look)(name) == []
    for name in ("typo", "with-dnaa", ""):
        with pytest.raises(ValueError, match=r"there are: ops, with-dana|not blank"):
            getattr(canon, look)(name)


@pytest.mark.parametrize(("after", "error"), [(-3, ValueError), (float("nan"), ValueError), ("3", TypeError)])
def test_nobody_answers_before_being_asked(canon, after, error):
    with pytest.raises(error, match="after is"):
        canon.answers(after=after)


def test_values_are_a_mapping(canon):
    with pytest.raises(TypeError, match="values are a mapping"):
        canon.answers(CATEGORY, "food", ["note"])


# --- what was prepared in vain --------------------------------------------------------------------------------------


def closing(prepare):
    def whole():
        with CanonHermes() as plugin, plugin.turn()("hello"):
            prepare(plugin.canon)

    with pytest.raises(AssertionError) as failure:
        whole()
    return str(failure.value)


def ask(*cards):
    for shown in cards:
        asyncio.run(request_card_for_current_human(shown, timeout_seconds=5))


def test_an_answer_no_card_took_fails_the_test_and_names_the_cards():
    def prepare(canon):
        canon.answers(TRAVEL, "food")
        canon.answers(CATEGORY, "rent")
        ask(CATEGORY)

    assert closing(prepare) == ('answer "food" for card "Travel?" was never used; cards shown: "Category?"')


def test_an_answer_whose_card_looked_otherwise_says_so():
    def prepare(canon):
        canon.answers({**CATEGORY, "tone": "warning"}, "food")
        ask(CATEGORY)

    assert closing(prepare).endswith('cards shown: "Category?" (differs from the card that was meant)')


def test_an_answer_that_came_too_late_says_what_became_of_the_card():
    def prepare(canon):
        ask(CATEGORY)
        canon.answers("Category?")

    assert closing(prepare) == (
        'an answer for card "Category?" was never used; cards shown: "Category?" (its time is over)'
    )


def test_an_answer_for_any_card_names_those_nobody_could_answer():
    def prepare(canon):
        canon.answers()
        asyncio.run(send_card_to_current_conversation(card("Shown")))

    assert closing(prepare) == 'an answer for any card was never used; cards shown: "Shown" (has no action)'


@pytest.mark.parametrize(("decide", "word"), [("approves", "allow"), ("denies", "deny")])
def test_a_decision_no_approval_took_fails_the_test(decide, word):
    message = closing(lambda canon: getattr(canon, decide)())
    assert message == f"{word} for the next approval was never used; asked for: none"


def test_a_script_no_turn_took_fails_the_test():
    plugin = CanonHermes().__enter__()
    plugin.host.says("first")
    plugin.host.waits(5).says("never").is_silent()
    plugin.canon.says("hi")
    with pytest.raises(AssertionError, match=r"^no turn took the script waits\(5\)\.says\('never'\)\.is_silent\(\)$"):
        plugin.close()


def test_everything_in_vain_is_told_at_once_and_only_once():
    plugin = CanonHermes().__enter__()
    plugin.host.says("never")
    plugin.canon.answers()
    with pytest.raises(AssertionError, match=r"any card.*; no turn took"):
        plugin.close()
    plugin.close()


def test_what_may_stay_unused_is_said_so(canon, canon_hermes):
    canon.answers(action="pay")
    canon.approves()
    canon.forgets()
    canon_hermes.host.says("perhaps").optional()


async def test_an_answer_that_was_withdrawn_answers_nothing(canon, canon_turn):
    canon.answers(action="food")
    canon.forgets()
    assert (await request_card_for_current_human(CATEGORY, timeout_seconds=5))["status"] == "timeout"


async def test_an_answer_whose_card_is_over_before_it_comes_was_used(canon, canon_turn):
    canon.answers(CATEGORY, "food", after=90)
    assert (await request_card_for_current_human(CATEGORY, timeout_seconds=60))["status"] == "timeout"


def test_a_test_that_fails_otherwise_keeps_its_own_reason():
    def whole():
        with CanonHermes() as plugin:
            plugin.host.says("never")
            raise LookupError("my own")

    with pytest.raises(LookupError, match="my own"):
        whole()


# --- decisions are made once ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"), [("approves", "denies"), ("denies", "approves"), ("approves", "approves")]
)
async def test_an_approval_is_decided_once(canon, canon_turn, first, second):
    request = await request_detached_approval_for_current_human(title="Pay")
    getattr(canon, first)(request)
    decided = {"approves": "allow", "denies": "deny"}[first]
    with pytest.raises(ValueError, match=rf"nobody can decide approval hermes-\w+ any more: dana decided: {decided}"):
        getattr(canon, second)(request)


async def test_an_approval_whose_time_is_over_is_decided_by_nobody(canon, canon_hermes, canon_turn):
    request = await request_detached_approval_for_current_human(title="Pay", timeout_seconds=60)
    canon_hermes.advance(3600)
    with pytest.raises(ValueError, match="any more: its time is over"):
        canon.approves(request)


async def test_canon_says_of_a_card_whether_it_waits(canon, canon_turn):
    shown = await send_card_to_current_conversation(card("Shown"))
    assert shown["request"]["interactive"] is False
    assert shown["responseUserId"] == "owner"  # it is sent without a responder (interactions §10)


# --- what people do and see -----------------------------------------------------------------------------------------


def test_stop_ends_the_running_turn_without_its_words(canon, canon_hermes):
    canon_hermes.host.waits(60).says("old")
    canon_hermes.host.says("next")
    canon.says("one")
    canon.says("two")
    canon.stops()
    canon_hermes.advance(60)
    assert canon.texts() == ["next"]


def test_stop_may_drop_what_waits(canon, canon_hermes):
    canon_hermes.host.waits(60).says("old")
    canon_hermes.host.says("next").optional()
    canon.says("one")
    waiting = canon.says("two")
    assert canon_hermes.host.lanes.waiting() == {waiting}
    assert canon_hermes.host.lanes.busy_conversations() == {"with-dana"}
    canon.stops(signal="stop_and_drop")
    canon_hermes.advance(60)
    assert canon.texts() == []
    assert [message.text for message in canon_hermes.host.received] == ["one"]


def test_stop_may_begin_a_new_session(canon, canon_hermes):
    canon.says("one")
    canon.stops(by="dana", signal="new_session")
    assert len(canon_hermes.host.lanes.renewed) == 1


def test_stop_reaches_the_conversation_it_is_pressed_in(canon, canon_hermes):
    canon.group("ops", "dana", "olga")
    canon_hermes.host.waits(60).says("olga's")
    canon.says("one", by="olga", conversation="ops")
    canon.stops(by="olga")
    canon_hermes.advance(60)
    assert canon.texts() == ["olga's"]


def test_there_are_three_signals(canon):
    with pytest.raises(ValueError, match="no signal 'halt'; there are: interrupt, stop_and_drop, new_session"):
        canon.stops(signal="halt")


def test_people_see_nothing_of_a_run_that_breaks_off_but_what_its_tools_did(canon, canon_hermes):
    canon_hermes.host.says("half").fails()
    canon.says("one")
    canon_hermes.advance(60)
    assert canon.texts() == []
    canon_hermes.host.calls_tool(lambda: 3).fails()
    canon.says("two")
    canon_hermes.advance(60)
    assert [(message.text, message.metadata["turnSemantics"]) for message in canon.messages()] == [("", "progress")]
    assert canon.twin.nodes == {}


@pytest.mark.parametrize("halfway", [True, False])
async def test_while_canon_is_down_no_card_is_shown_and_the_call_says_why(canon, canon_turn, halfway):
    canon.goes_down(halfway=halfway)
    with pytest.raises(EnvironmentUnreachableError, match="Canon is down, its health check got no answer"):
        await request_card_for_current_human(CATEGORY)
    assert canon.cards() == []


async def test_an_answer_of_canon_may_get_lost_alone(canon, canon_turn):
    canon.twin.faults.fail_next("create_interaction", Fault.lost_response())
    with pytest.raises(RuntimeError):
        await request_card_for_current_human(CATEGORY)
    assert canon.cards() == [CATEGORY]


def test_a_command_that_somebody_else_allows_is_denied(canon, canon_hermes):
    held = canon_hermes.questions.hold("key", "rm a")

    async def ask_first(stage):
        turn = PromptedTurn(canon_hermes.container.turns(), stage.turn)
        command = ExecAsk(stage.turn.conversation_id, "rm a", "key", "dangerous command", turn.responder)
        await canon_hermes.container.requests().exec_approval(command, turn)

    canon_hermes.host.runs(ask_first).waits(5)
    canon.says("clean up", by="dana")
    canon.approves(by="mallory")
    canon_hermes.advance(10)
    assert held.choice == "deny"


# --- the document ---------------------------------------------------------------------------------------------------

DOCS = Path(__file__).resolve().parents[3] / "docs" / "testing.md"


@pytest.mark.skipif(not DOCS.is_file(), reason="the documents are not beside the tests")
def test_the_table_of_suites_says_whose_they_are_what_they_take_and_what_is_async():
    rows = [
        line.replace("`", "").strip("| ").split(" | ")
        for line in DOCS.read_text(encoding="utf-8").splitlines()
        if "Contract` |" in line
    ]
    parts = {port for port in SUITES if port.__module__.endswith(".canon") and port is not CanonApi}
    expected = {}
    for port in set(SUITES) - parts:
        names = [name for base in port.__mro__ for name in vars(base) if not name.startswith("_")]
        waits = [name for name in names if inspect.iscoroutinefunction(getattr(port, name))]
        told = "all" if set(waits) == set(names) else ", ".join(waits) or "none"
        module, suite = port.__module__.rpartition(".")[2], SUITES[port]
        expected[port.__name__] = [module, port.__name__, suite.__name__, suite.made.__name__, told]
    assert {row[1]: row for row in rows} == expected
