"""The kit as its author meets it: every word of the vocabulary, with and without an event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from canon_hermes_plugin import (
    check_detached_approval,
    current_canon_inbound_media,
    current_canon_turn,
    request_card_for_current_human,
    request_detached_approval_for_current_human,
    send_card_to_current_conversation,
    upload_media_for_current_conversation,
)
from canon_hermes_plugin.domain.interactions.blocking import ExecAsk
from canon_hermes_plugin.infrastructure.hermes.config import Settings
from canon_hermes_plugin.infrastructure.hermes.prompts import PromptedTurn
from canon_hermes_plugin.testing import CanonHermes, Fault, loopback_canon

NOTE = {"id": "note", "label": "Note", "type": "text"}
ACTIONS = [{"id": "pay", "label": "Pay", "fields": [NOTE]}, {"id": "keep", "label": "Keep"}]
CARD = {
    "schema": "canon.card.v1",
    "title": "Pay invoice 7?",
    "fallbackText": "Pay invoice 7?",
    "blocks": [{"kind": "actions", "actions": ACTIONS}],
}
PLAIN = {**CARD, "blocks": [{"kind": "summary", "text": "Invoice 7 is paid."}]}


def test_a_message_becomes_a_turn_and_the_turn_one_answer(canon, canon_hermes):
    canon_hermes.host.says("Hello Dana")
    canon.says("hi", by="dana")
    assert canon.texts("with-dana") == ["Hello Dana"]
    assert [message.text for message in canon_hermes.host.received] == ["hi"]


def test_streamed_frames_become_one_answer(canon, canon_hermes):
    canon_hermes.host.streams("Ships", "Ships come", "Ships come at noon.")
    canon.says("when?")
    assert canon.texts() == ["Ships come at noon."]


def test_silence_leaves_nothing(canon, canon_hermes):
    canon_hermes.host.says("not for you").is_silent()
    canon.says("fyi")
    assert canon.texts() == []


def test_a_run_that_breaks_off_closes_its_turn_and_the_next_message_runs(canon, canon_hermes):
    canon_hermes.host.fails().says("never said")
    canon_hermes.host.says("second")
    canon.says("one")
    canon.says("two")
    canon_hermes.advance(5)
    assert [publication.state for publication in canon.twin.turns].count("completed") == 2
    assert canon.texts() == ["second"]


def test_messages_of_one_session_run_one_after_another(canon, canon_hermes):
    canon_hermes.host.waits(60).says("first")
    canon_hermes.host.says("second")
    canon.says("one")
    canon.says("two")
    assert canon.texts() == []
    canon_hermes.advance(60)
    assert canon.texts() == ["first", "second"]


def test_an_interrupting_message_ends_the_running_turn_without_its_words(canon, canon_hermes):
    canon_hermes.host.says("old news").waits(60)
    canon_hermes.host.says("new")
    canon.says("one")
    canon.says("no, wait", metadata={"deliveryIntent": "interrupt"})
    canon_hermes.advance(60)
    assert "new" in canon.texts()
    assert [m.text for m in canon.messages() if m.metadata.get("turnSemantics") == "turn_complete"] == ["new"]


async def test_the_next_card_is_answered_as_arranged(canon, canon_turn):
    canon.answers(CARD, "pay", {"note": "today"}, after=90)
    answer = await request_card_for_current_human(CARD)
    assert (answer["actionId"], answer["values"], answer["respondedBy"]) == ("pay", {"note": "today"}, "dana")


def test_a_card_nobody_answers_times_out_without_anybody_waiting(canon, canon_hermes, canon_turn):
    began = canon_hermes.clock.monotonic()
    assert asyncio.run(request_card_for_current_human(CARD, timeout_seconds=300))["status"] == "timeout"
    assert 300 <= canon_hermes.clock.monotonic() - began < 302
    assert canon.cards(open_only=True) == []


async def test_an_answer_by_somebody_else_is_refused(canon, canon_turn):
    canon.answers("Pay invoice 7?", "pay", by="mallory")
    with pytest.raises(RuntimeError, match="Somebody else"):
        await request_card_for_current_human(CARD)


@pytest.mark.parametrize(
    ("action", "values", "message"),
    [
        ("burn", None, "the card offers pay, keep, not burn"),
        ("pay", {"nope": 1}, "action pay of the card has no field nope; its fields: note"),
        ("", {"nope": 1}, "action pay of the card has no field nope; its fields: note"),
        ("keep", {"note": "x"}, "action keep of the card has no field note; its fields: none"),
    ],
)
async def test_what_the_card_does_not_offer_is_the_authors_mistake(canon, canon_turn, action, values, message):
    with pytest.raises(ValueError, match=message):
        canon.answers(CARD, action, values)
    canon.answers("Pay invoice 7?", action, values)  # only named: its looks are known when it is shown
    with pytest.raises(ValueError, match=message):
        await request_card_for_current_human(CARD)


async def test_a_card_without_actions_takes_no_planned_answer(canon, canon_turn):
    canon.answers(action="pay")
    await send_card_to_current_conversation(PLAIN)
    assert (await request_card_for_current_human(CARD))["actionId"] == "pay"


@pytest.mark.parametrize(("action", "chosen"), [("", "pay"), ("keep", "keep")])
async def test_a_card_without_actions_is_never_the_open_one(canon, canon_turn, action, chosen):
    await send_card_to_current_conversation(PLAIN)
    assert canon.cards(open_only=True) == []
    canon.answers(action=action)  # nothing is open: meant for the next card
    assert (await request_card_for_current_human(CARD))["actionId"] == chosen


def test_who_names_a_card_without_actions_is_told_so(canon):
    with pytest.raises(ValueError, match="no action, so nobody can answer it"):
        canon.answers(PLAIN)


async def test_a_tool_on_its_own_thread_asks_the_human_of_its_turn(canon, canon_hermes):
    canon.answers(action="keep")

    async def ask():
        return (await request_card_for_current_human(CARD))["actionId"]

    script = canon_hermes.host.calls_tool(ask).says("kept")
    canon.says("pay it?")
    assert script.results == ["keep"]
    assert canon.texts() == ["kept"]


def test_attachments_reach_the_tool_as_they_were_sent(canon_turn):
    canon_turn("see attached", attachments=[("invoice.pdf", b"%PDF-1.7 seven")])
    (media,) = current_canon_inbound_media()
    assert (media.file_name, media.mime_type, media.data) == ("invoice.pdf", "application/pdf", b"%PDF-1.7 seven")


async def test_each_turn_is_its_own_context_also_on_an_event_loop(canon, canon_turn):
    canon.group("ops", "dana", "olga")
    assert current_canon_turn().user_id == "dana"
    canon_turn("hello", by="olga", conversation="ops")
    assert (current_canon_turn().user_id, current_canon_turn().conversation_id) == ("olga", "ops")
    canon_turn.end()
    with pytest.raises(RuntimeError, match="inside a Canon turn"):
        current_canon_turn()


def test_outside_of_the_fixture_there_is_no_turn(canon_hermes):
    with canon_hermes.turn()("hello"):
        current_canon_turn(require_human=True)
    with pytest.raises(RuntimeError, match="inside a Canon turn"):
        current_canon_turn()


@pytest.mark.parametrize("attachments", [["a.pdf"], "a.pdf", [("a.pdf", "text")], ("a.pdf", b"%PDF"), [b"%PDF"]])
def test_what_is_no_attachment_is_told_what_one_is(canon, canon_turn, attachments):
    with pytest.raises(TypeError, match="an attachment is a file name and its bytes"):
        canon_turn("see attached", attachments=attachments)
    with pytest.raises(TypeError, match="an attachment is a file name and its bytes"):
        canon.says("see attached", attachments=attachments)
    assert current_canon_turn().user_id == "dana"  # the open turn stays open


def test_a_turn_that_did_not_start_says_why_in_an_outage(canon, canon_turn):
    canon.goes_down()
    with pytest.raises(RuntimeError, match="started no turn: Canon is down"):
        canon_turn("anybody?")


def test_a_turn_that_did_not_start_says_why_for_a_command(canon_turn):
    with pytest.raises(RuntimeError, match=r"started no turn: .* is a command"):
        canon_turn("/help")


def test_a_turn_that_did_not_start_says_why_behind_another(canon, canon_hermes):
    canon_hermes.host.waits(60)
    canon.says("one")
    with pytest.raises(RuntimeError, match="another one is running in with-dana"):
        canon_hermes.turn()("two")


@pytest.mark.parametrize("text", ["/help", "two"])
def test_a_turn_that_did_not_start_leaves_the_next_turn_alone(canon, canon_hermes, text):
    canon_hermes.host.waits(60)
    canon.says("one")
    with pytest.raises(RuntimeError, match="started no turn"):
        canon_hermes.turn()(text)
    canon_hermes.host.says("three is free")
    canon.says("three", by="olga")
    canon_hermes.advance(60)
    assert canon.texts() == ["three is free"]
    assert canon_hermes.host.lanes.busy_conversations() == set(), "nobody waits for a test that gave up"


def test_a_script_that_was_written_before_belongs_to_the_turn_after_the_tests_own(canon, canon_hermes, canon_turn):
    canon_hermes.host.says("later")
    canon_turn("now")
    canon_turn.says("mine")
    canon_turn.end()
    assert canon.texts() == ["mine"]
    canon.says("and now?")
    assert canon.texts() == ["mine", "later"]


@pytest.mark.parametrize("real", [0.0, 0.05])
def test_what_a_tool_sees_of_time_does_not_depend_on_how_long_it_really_works(canon, canon_hermes, real):
    start, seen = canon_hermes.clock.monotonic(), []

    def now():
        time.sleep(real)
        seen.append(canon_hermes.clock.monotonic() - start)

    async def ask():
        now()
        await send_card_to_current_conversation(PLAIN)
        now()
        answer = await request_card_for_current_human(CARD, timeout_seconds=300)
        now()
        return answer["actionId"]

    canon.answers(CARD, "pay", after=45)
    script = canon_hermes.host.waits(10).calls_tool(ask).says("done")
    canon_hermes.host.says("at once")
    canon.says("pay it?")
    canon.says("hello", by="olga")
    canon_hermes.advance(600)
    assert script.results == ["pay"]
    assert seen[:2] == [10, 10]
    assert 55 <= seen[2] < 57
    assert canon_hermes.clock.monotonic() - start == 600
    assert canon.texts() == ["at once", "done"]


@pytest.mark.parametrize("request_", ["hermes-none", {}, {"approvalId": "hermes-none"}])
async def test_nobody_decides_what_nobody_asked(canon, canon_turn, request_):
    with pytest.raises(ValueError, match=r"there is no approval .*none yet"):
        canon.approves(request_)
    asked = await request_detached_approval_for_current_human(title="Pay invoice 7")
    with pytest.raises(ValueError, match=asked["approvalId"]):
        canon.denies(request_)


def test_the_agents_words_of_an_open_turn_are_seen_when_it_ends(canon, canon_turn):
    canon_turn.says("Paid.")
    assert canon.texts() == []
    canon_turn.end()
    assert canon.texts() == ["Paid."]


@pytest.mark.parametrize(("decide", "decision"), [("approves", "allow"), ("denies", "deny")])
async def test_a_detached_decision_wakes_the_agent_once(canon, canon_hermes, canon_turn, decide, decision):
    request = await request_detached_approval_for_current_human(title="Pay invoice 7")
    assert request["status"] == "pending"
    canon_turn.end()
    canon_hermes.host.says(f"It is {decision}.")
    getattr(canon, decide)(request)
    canon_hermes.advance(120)
    wakes = [message.text for message in canon_hermes.host.received if message.synthetic]
    assert wakes == [f"Canon approval {request['approvalId']} resolved: {decision} — Pay invoice 7"]
    assert canon.texts() == [f"It is {decision}."]


async def test_a_decision_by_somebody_else_is_never_one(canon, canon_hermes, canon_turn):
    request = await request_detached_approval_for_current_human(title="Pay invoice 7")
    canon.approves(request, by="mallory")
    assert (await check_detached_approval(request["approvalId"]))["status"] == "unknown"
    canon_turn.end()
    canon_hermes.advance(120)
    assert not any(message.synthetic for message in canon_hermes.host.received)


async def test_cards_without_actions_and_uploads_go_out_at_once(canon, canon_turn):
    assert (await send_card_to_current_conversation(PLAIN))["status"] == "displayed"
    stored = await upload_media_for_current_conversation(b"%PDF-1.7", "application/pdf", file_name="receipt.pdf")
    assert canon.cards() == [PLAIN]
    assert stored["fileName"] == "receipt.pdf"


def test_what_was_said_during_an_outage_is_answered_after_it(canon, canon_hermes):
    canon_hermes.host.says("Here again.")
    canon.goes_down()
    canon.says("anybody?")
    assert canon_hermes.host.received == []
    canon.comes_back()
    assert canon.texts() == ["Here again."]


def test_an_answer_given_during_an_outage_is_delivered_after_it(canon, canon_hermes):
    canon_hermes.host.waits(10).says("Late but here.")
    canon.says("anybody?")
    canon.goes_down(halfway=True)
    canon_hermes.advance(20)
    assert canon.texts() == []
    canon.comes_back()
    canon_hermes.advance(600)
    assert canon.texts() == ["Late but here."]


def test_a_group_is_a_group_to_the_plugin(canon, canon_hermes):
    ops = canon.group("ops", "dana", "olga")
    canon.says("who is on call?", by="olga", conversation=ops)
    (message,) = canon_hermes.host.received
    assert (message.chat_kind, message.user_id) == ("group", "olga")


@pytest.mark.parametrize(("per_user", "seen"), [(True, ["two", "one"]), (False, ["one", "two"])])
def test_the_people_of_a_group_share_a_session_only_when_the_settings_say_so(per_user, seen):
    with CanonHermes(settings=Settings(group_sessions_per_user=per_user)) as plugin:
        ops = plugin.canon.group("ops", "dana", "olga")
        plugin.host.waits(60).says("one")
        plugin.host.says("two")
        plugin.canon.says("first", by="dana", conversation=ops)
        plugin.canon.says("second", by="olga", conversation=ops)
        plugin.advance(60)
        assert plugin.canon.texts(ops) == seen


def test_what_a_message_joins_is_the_running_turn(canon, canon_hermes):
    canon_hermes.host.waits(60).says("both")
    canon.says("one")
    canon.says("and this", metadata={"deliveryIntent": "interleave"})
    assert [message.text for message in canon_hermes.host.interleaved] == ["and this"]
    canon_hermes.advance(60)
    assert [message.text for message in canon_hermes.host.received] == ["one"]
    assert canon.texts() == ["both"]


def test_the_same_seed_gives_the_same_run():
    def run(seed):
        with CanonHermes(seed) as plugin:
            plugin.host.streams("a", "a b").calls_tool(lambda: None)
            plugin.canon.says("hi")
            return [(call.operation, str(call.subject)) for call in plugin.canon.twin.calls]

    assert run(7) == run(7)
    assert run(7) != run(8)


def test_a_script_that_raises_fails_the_test():
    def broken():
        raise LookupError("a bug in the test")

    plugin = CanonHermes().__enter__()
    plugin.host.calls_tool(broken)
    plugin.canon.says("hi")
    with pytest.raises(ExceptionGroup, match="scripts of the host failed"):
        plugin.close()


def test_nothing_of_a_closed_plugin_stays():
    import threading

    from canon_hermes_plugin.infrastructure.hermes.live import LIVE

    before = set(threading.enumerate())
    with CanonHermes() as plugin:
        plugin.canon.says("hi")
        assert len(LIVE.all()) == 1
    assert LIVE.all() == []
    after = {thread for thread in threading.enumerate() if thread.name == "canon-testing"}
    assert after <= before, "what other tests never entered may still be there"


async def test_nothing_is_read_from_or_written_to_the_users_disk(
    tmp_path, monkeypatch, canon, canon_hermes, canon_turn
):
    for name in ("HOME", "HERMES_HOME", "CANON_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    request = await request_detached_approval_for_current_human(title="Pay")
    canon_turn(attachments=[("a.pdf", b"%PDF-1.7")])
    canon.approves(request)
    canon_hermes.advance(120)
    canon_turn.end()
    canon_hermes.close()
    assert list(tmp_path.rglob("*")) == []


def test_the_loopback_canon_is_a_real_server():
    import httpx

    with loopback_canon() as canon:
        answer = httpx.get(f"{canon.environment()['CANON_BASE_URL']}/healthz/")
    assert answer.headers["x-canon-environment-id"] == canon.identity.environment_id


HEAVY = {"dependency_injector", "fastapi", "gateway", "httpx", "starlette", "uvicorn", "canon_hermes_plugin.domain"}


def test_the_plugin_of_pytest_loads_nothing_heavy_until_a_fixture_is_used():
    code = "import sys, canon_hermes_plugin.testing, canon_hermes_plugin.testing.pytest_plugin; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    loaded = set(done.stdout.split())
    assert "canon_hermes_plugin.testing.pytest_plugin" in loaded
    assert loaded & (HEAVY - {"canon_hermes_plugin.domain"}) == set()


STRANGER = """
import asyncio
from canon_hermes_plugin import current_canon_inbound_media, current_canon_turn, request_card_for_current_human

def test_media(canon_turn):
    canon_turn(attachments=[("a.pdf", b"%PDF-1.7")])
    assert current_canon_inbound_media()[0].data == b"%PDF-1.7"

def test_card(canon, canon_turn):
    canon.answers(action="pay")
    assert asyncio.run(request_card_for_current_human(CARD))["actionId"] == "pay"
"""
DOCS = Path(__file__).resolve().parents[3] / "docs" / "testing.md"


@pytest.mark.skipif(not DOCS.is_file(), reason="the documents are not beside the tests")
@pytest.mark.parametrize(("about", "passed"), [("## Five lines", "2 passed"), ("A suite of one object", "24 passed")])
def test_the_examples_of_the_documents_run_as_they_are_written(tmp_path, about, passed):
    example = DOCS.read_text(encoding="utf-8").partition(about)[2].split("```python\n")[1].split("```")[0]
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_example.py").write_text(example, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert passed in done.stdout


@pytest.mark.parametrize(("decide", "choice"), [("approves", "once"), ("denies", "deny")])
def test_a_command_the_host_holds_back_is_decided_by_the_person_of_its_turn(canon, canon_hermes, decide, choice):
    held = canon_hermes.questions.hold("key", "rm a")

    async def ask(stage):
        turn = PromptedTurn(canon_hermes.container.turns(), stage.turn)
        command = ExecAsk(stage.turn.conversation_id, "rm a", "key", "dangerous command", turn.responder)
        await canon_hermes.container.requests().exec_approval(command, turn)

    canon_hermes.host.runs(ask).waits(5).says("Done.")
    canon.says("clean up", by="dana")
    getattr(canon, decide)()
    canon_hermes.advance(10)
    assert held.choice == choice
    assert canon.texts() == ["Done."]
    assert "waiting_input" in {turn.state for turn in canon.twin.turns}


MARKED = """
import pytest

@pytest.mark.asyncio
async def test_marked(canon, canon_turn):
    canon.answers(action="pay")
    assert (await request_card_for_current_human(CARD))["actionId"] == "pay"
"""


@pytest.mark.parametrize("options", [["-p", "no:asyncio"], ["--asyncio-mode=strict"], ["--asyncio-mode=auto"]])
def test_the_fixtures_work_with_and_without_an_asyncio_plugin(tmp_path, options):
    body = STRANGER if "no:asyncio" in options else STRANGER + MARKED
    (tmp_path / "pytest.ini").touch()  # a stranger's project has options of its own, never ours
    (tmp_path / "test_stranger.py").write_text(f"CARD = {CARD!r}\n{textwrap.dedent(body)}", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr


def test_field_90_what_an_earlier_process_left_on_its_disk_is_said():
    earlier = CanonHermes(seed=1)
    with earlier as plugin:
        plugin.canon.twin.faults.outage = Fault.ambiguous()
        plugin.host.says("Almost said")
        plugin.canon.says("hi", by="dana")
        assert plugin.canon.texts("with-dana") == []
    plugin = CanonHermes(seed=2)
    plugin.outbox.documents.update(earlier.outbox.documents)
    assert len(plugin.outbox.documents) == 1
    with plugin:
        assert plugin.canon.texts("with-dana") == ["Almost said"]
        assert plugin.outbox.documents == {}
