"""The activity trail: what it shows, what it hides, what fits (turns §6; H15)."""

import json
import threading

import pytest
from canon_hermes_plugin.domain.turns.model import SubagentEnd, ToolEnd, ToolStart
from canon_hermes_plugin.domain.turns.redaction import HIDDEN, is_secret_key, redact, redact_text
from canon_hermes_plugin.domain.turns.trail import Trail
from hypothesis import given
from hypothesis import strategies as st

TURN = "hermes-0123456789abcdef0123"
KEYS = ["id", "turnId", "kind", "status", "sequence", "title", "text", "summary"]


@pytest.fixture
def trail():
    return Trail(TURN, contents=True)


def size(blocks):
    return len(json.dumps({"turnTrail": blocks}, ensure_ascii=False, separators=(",", ":")).encode())


def test_a_call_is_shown_with_arguments_while_it_runs_and_with_its_result_afterwards(trail):
    trail.tool_started(ToolStart("list_files", "call_9", {"path": "/src"}))
    (running,) = trail.live()
    assert running == {
        "id": "tool:call_9",
        "turnId": TURN,
        "kind": "tool",
        "status": "running",
        "sequence": 1,
        "title": "list_files",
        "text": '{"path":"/src"}',
    }
    assert list(running) == KEYS[:7]
    trail.tool_finished(ToolEnd("list_files", "call_9", result="18  entries\n", duration_ms=61))
    (done,) = trail.final()
    assert (done["status"], done["text"], done["summary"]) == ("completed", "18 entries", "61 ms")
    assert list(done) == KEYS


@pytest.mark.parametrize("status", ["failed", "error", "blocked"])
def test_a_failed_call_is_shown_as_failed(trail, status):
    trail.tool_started(ToolStart("shell", "1"))
    trail.tool_finished(ToolEnd("shell", "1", status=status))
    assert trail.final()[0]["status"] == "failed"


@pytest.mark.parametrize("duration", [True, False, -1, 1.5, "3", None])
def test_h15_only_a_whole_number_of_milliseconds_is_a_duration(trail, duration):
    trail.tool_finished(ToolEnd("shell", "1", duration_ms=duration))
    assert "summary" not in trail.final()[0]


def test_h15_a_start_told_late_does_not_reopen_a_finished_call(trail):
    trail.tool_finished(ToolEnd("shell", "1", result="ok"))
    trail.tool_started(ToolStart("shell", "1", {"cmd": "ls"}))
    (block,) = trail.live()
    assert (block["status"], block["text"]) == ("completed", "ok")


def test_h15_parallel_calls_of_one_name_without_ids_all_end(trail):
    for argument in "abc":
        trail.tool_started(ToolStart("fetch", None, argument))
    for result in "ABC":
        trail.tool_finished(ToolEnd("fetch", None, result=result))
    blocks = trail.live()
    assert [block["status"] for block in blocks] == ["completed"] * 3
    assert [block["text"] for block in blocks] == ["A", "B", "C"]
    assert len({block["id"] for block in blocks}) == 3


def test_h15_thirty_calls_with_long_results_keep_the_newest(trail):
    for number in range(30):
        trail.tool_started(ToolStart(f"tool_{number}", f"call_{number}", "x" * 500))
        trail.tool_finished(ToolEnd(f"tool_{number}", f"call_{number}", result="y" * 500, duration_ms=number))
    blocks = trail.final()
    assert [block["title"] for block in blocks] == [f"tool_{n}" for n in range(30 - len(blocks), 30)]
    assert len(blocks) >= 15


def test_h15_failed_calls_outlive_older_and_newer_successes(trail):
    trail.tool_finished(ToolEnd("broken", "bad", status="error", result="no such file"))
    for number in range(40):
        trail.tool_finished(ToolEnd(f"tool_{number}", f"call_{number}", result="y" * 500))
    titles = [block["title"] for block in trail.final()]
    assert titles[0] == "broken"
    assert titles[-1] == "tool_39"


def test_h15_one_block_of_wide_characters_is_shortened_and_not_dropped(trail):
    trail.tool_finished(ToolEnd("🐙" * 200, "🐙" * 400, result="🐙" * 900, duration_ms=1))
    (block,) = trail.final()
    assert block["text"]
    assert size([block]) <= 2500


def test_h15_secrets_are_not_shown(trail):
    trail.tool_started(
        ToolStart("http", "1", {"api_key": "sk-SECRET", "headers": {"Authorization": "Bearer abcdefgh"}})
    )
    shown = json.dumps(trail.live())
    assert "SECRET" not in shown
    assert "abcdefgh" not in shown
    trail.tool_finished(ToolEnd("http", "1", result='{"token": "t0k3n", "size": 3}'))
    shown = json.dumps(trail.final())
    assert "t0k3n" not in shown
    assert "size" in shown


def test_h15_a_group_sees_the_names_of_arguments_and_no_contents():
    trail = Trail(TURN, contents=False)
    trail.tool_started(ToolStart("mail", "1", {"to": "ada@example.org", "body": "dear", "password": "x"}))
    trail.tool_finished(ToolEnd("mail", "1", result="sent to ada"))
    trail.subagent_finished(SubagentEnd("s", "writer", "wrote to ada"))
    shown = json.dumps(trail.final())
    assert "ada" not in shown
    assert "dear" not in shown
    assert trail.final()[0]["text"] == "to, body"


def test_a_subagent_is_shown_when_it_ends(trail):
    trail.subagent_finished(SubagentEnd("child-1", "researcher", "found  it", duration_ms=7))
    (block,) = trail.final()
    assert (block["id"], block["kind"], block["title"]) == ("subagent:child-1", "status", "researcher")
    assert (block["text"], block["summary"], block["status"]) == ("found it", "7 ms", "completed")


def test_a_call_that_never_ended_is_not_running_in_a_finished_answer(trail):
    trail.tool_started(ToolStart("shell", "1"))
    assert trail.final()[0]["status"] == "completed"
    assert trail.live()[0]["status"] == "running"


def test_values_that_are_no_json_are_shown_somehow(trail):
    loop = []
    loop.append(loop)
    for number, odd in enumerate([object(), loop, {1: {2}}, b"bytes", "\ud800", float("nan")]):
        trail.tool_finished(ToolEnd("odd", str(number), result=odd))
    json.dumps(trail.final()).encode()
    assert len(trail.final()) == 6


@pytest.mark.parametrize(
    "key",
    ["api_key", "apiKey", "X-API-Key", "token", "access_token", "clientSecret", "password", "Authorization", "Cookie"],
)
def test_secret_keys_are_recognised(key):
    assert is_secret_key(key)


@pytest.mark.parametrize(
    "key", ["path", "query", "author", "tokenizer", "monkey", "keyboard", "spinner", "cookies_eaten"]
)
def test_ordinary_keys_are_not_secret(key):
    assert not is_secret_key(key)


@pytest.mark.parametrize(
    "text",
    [
        "sk-abcdef123456",
        "use ghp_abcdefABCDEF123456 now",
        "Authorization: Bearer abc.def.ghi",
        "https://user:hunter22@example.org/",
        "export API_KEY=hunter22hunter",
        'password: "hunter22"',
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abc",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
        "agk_live_abcdef123456",
    ],
)
def test_secret_values_are_recognised(text):
    shown = redact_text(text)
    assert HIDDEN in shown
    for secret in ("abcdef", "hunter22", "abc.def", "eyJ", "MIIEow"):
        assert secret not in shown


def test_ordinary_text_is_left_alone():
    text = "Read 18 entries from /src/app.py in 3 s; the author is Ada."
    assert redact_text(text) == text
    assert redact({"path": "/src", "lines": [1, 2], "deep": {"ok": True}}) == {
        "path": "/src",
        "lines": [1, 2],
        "deep": {"ok": True},
    }


calls = st.builds(
    lambda name, call_id, value, finish, status: (name, call_id, value, finish, status),
    st.sampled_from(["a", "b", "", "🐙" * 50]),
    st.sampled_from([None, "", "1", "2", "c" * 300]),
    st.text(max_size=400) | st.dictionaries(st.text(max_size=9), st.text(max_size=90), max_size=4),
    st.booleans(),
    st.sampled_from(["ok", "error"]),
)


@given(st.lists(calls, max_size=60), st.booleans())
def test_invariant_38_39_the_final_trail_is_bounded_ordered_and_final(history, contents):
    trail = Trail(TURN, contents=contents)
    ended = set()
    for name, call_id, value, finish, status in history:
        if finish:
            trail.tool_finished(ToolEnd(name, call_id, result=value, status=status))
            ended.add(call_id)
        else:
            trail.tool_started(ToolStart(name, call_id, value))
    blocks = trail.final()
    assert len(blocks) <= 20
    assert size(blocks) <= 2500
    sequences = [block["sequence"] for block in blocks]
    assert sequences == sorted(set(sequences))
    assert all(list(block) == [key for key in KEYS if key in block] for block in blocks)
    assert all(block["status"] in {"completed", "failed"} for block in blocks)
    by_id = {block["id"]: block["status"] for block in trail.live()}
    assert all(by_id.get(f"tool:{call_id}") != "running" for call_id in ended if call_id)
    assert bool(blocks) == bool(history)


async def test_invariant_41_threads_may_report_while_the_trail_is_built(bench):
    turn = await bench.open()

    def report(worker):
        for number in range(200):
            bench.coordinator.tool_started(turn, ToolStart("t", f"{worker}-{number}"))
            bench.coordinator.tool_finished(turn, ToolEnd("t", f"{worker}-{number}", result="r", duration_ms=1))

    workers = [threading.Thread(target=report, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        for block in turn.answer().trail:
            assert (block["status"] == "completed") or "summary" not in block
    for worker in workers:
        worker.join()
    assert len(turn.answer().trail) > 5


class Counting(list):
    """A list that knows how many of its members were looked at."""

    def __init__(self, size):
        super().__init__([0])
        self.size = size
        self.seen = 0

    def __len__(self):
        return self.size

    def __iter__(self):
        for _ in range(self.size):
            self.seen += 1
            yield "row of the table"


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"rows": rows}, lambda rows: [{"deep": [rows]}]])
def test_field_71_only_the_beginning_of_megabytes_is_looked_at(wrap):
    rows = Counting(1_000_000)
    trail = Trail("t", contents=True)
    trail.tool_started(ToolStart("write", "call_1", wrap(rows)))
    trail.tool_finished(ToolEnd("write", "call_1", result=wrap(rows)))
    assert 0 < rows.seen < 2_000
    assert "row of the table" in trail.live()[0]["text"]


def test_h15_a_secret_behind_a_long_beginning_stays_hidden():
    trail = Trail("t", contents=True)
    trail.tool_started(ToolStart("call", "call_1", {"a": "x", "token": "tok_123456", "body": "y" * 1_000_000}))
    text = trail.live()[0]["text"]
    assert "tok_123456" not in text
    assert '"token":"[hidden]"' in text
