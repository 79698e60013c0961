"""Asking for a detached approval survives every refusal and crash (interactions §5.3, §9.3)."""

from __future__ import annotations

import asyncio

import pytest
from canon_hermes_plugin.domain.approvals.question import build_question
from canon_hermes_plugin.ports.errors import CanonApiError, CanonTransportError, LedgerError

from .rig import process, refused

NOW = 1_900_000_000_000


async def test_i1_the_entry_is_durable_before_anything_is_sent():
    p = process()
    seen = []

    def answer(body):
        seen.append(p.ledger.document)
        return {"responseUserId": "u_77"}

    p.canon.create_replies = [answer]
    result = await p.ask()
    assert result["approvalId"].encode() in seen[0]
    assert b'"status": "creating"' in seen[0]


async def test_i32_the_effective_expiry_and_responder_are_persisted_and_returned():
    p = process()
    p.canon.create_replies = [{"responseUserId": " u_77 ", "expiresAt": NOW + 5}]
    result = await p.ask()
    entry = await p.find(result["approvalId"])
    assert entry is not None
    assert (result["status"], result["conversationId"]) == ("pending", "cv_9")
    assert result["expiresAt"] == entry["expiresAt"] == NOW + 5
    assert result["responseUserId"] == entry["responseUserId"] == "u_77"
    assert "message" in result["note"]
    assert "check_approval" in result["note"]
    assert entry["agentId"] == "ag_5"
    assert entry["keyFingerprint"] == "f" * 16
    assert p.closed == 1


async def test_i37_and_field_29_a_session_rule_is_never_offered_and_the_id_is_minted_here():
    p = process()
    result = await p.ask()
    body = p.canon.creates[0]
    assert body["allowSessionRule"] is False
    assert body["approvalId"] == result["approvalId"]
    assert result["approvalId"].startswith("hermes-")
    assert len(result["approvalId"]) == len("hermes-") + 20
    assert body["native"] == {
        "runtime": "hermes",
        "method": "detached_approval",
        "requestId": result["approvalId"],
    }


async def test_d4_an_older_server_gets_one_retry_at_30_minutes_with_the_same_id():
    p = process()
    p.canon.create_replies = [refused(400, '{"error":"ExpiresAt too far"}'), {"responseUserId": "u_77"}]
    result = await p.ask()
    first, second = p.canon.creates
    assert first["approvalId"] == second["approvalId"]
    assert second["expiresAt"] == result["expiresAt"] == NOW + 1_800_000


@pytest.mark.parametrize(("body", "timeout_ms"), [("too long", 259_200_000), ("expiresAt", 1_800_000)])
async def test_d4_another_400_or_a_short_request_is_not_retried(body, timeout_ms):
    p = process()
    p.canon.create_replies = [refused(400, body)]
    with pytest.raises(CanonApiError):
        await p.ask(timeout_ms=timeout_ms)
    assert len(p.canon.creates) == 1


async def test_d4_the_retry_happens_once():
    p = process()
    p.canon.create_replies = [refused(400, "expiresAt")]
    with pytest.raises(CanonApiError):
        await p.ask()
    assert len(p.canon.creates) == 2
    assert await p.entries() == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
async def test_i24_a_definitive_refusal_closes_the_entry(status):
    p = process()
    p.canon.create_replies = [refused(status)]
    with pytest.raises(CanonApiError):
        await p.ask()
    entry = await p.find(p.canon.creates[0]["approvalId"])
    assert entry is not None
    assert (entry["status"], entry["creationError"]) == ("orphaned", f"rejected ({status})")


@pytest.mark.parametrize(
    "failure",
    [*(refused(status) for status in (408, 409, 425, 429, 500, 503)), CanonTransportError("x", executed=True)],
    ids=str,
)
async def test_i24_an_unsettled_create_stays_for_recovery(failure):
    p = process()
    p.canon.create_replies = [failure]
    with pytest.raises(type(failure)):
        await p.ask()
    assert [entry["status"] for entry in await p.entries()] == ["creating"]
    assert p.closed == 1


async def test_i24_without_a_client_the_entry_is_closed_and_nothing_was_sent():
    p = process()
    p.open_error = RuntimeError("no key")
    with pytest.raises(RuntimeError, match="no key"):
        await p.ask()
    assert await p.entries() == []
    assert p.canon.creates == []


async def test_i20_a_broken_ledger_stops_everything_before_the_network():
    p = process()
    p.ledger.document = b"[]"
    with pytest.raises(LedgerError):
        await p.ask()
    assert p.opened == 0
    assert p.ledger.document == b"[]"


@pytest.mark.parametrize(("trusted", "echoed"), [("u_77", "u_9"), (None, None), (None, "  ")])
async def test_d24_an_unusable_responder_closes_the_entry_and_takes_the_question_back(trusted, echoed):
    p = process()
    p.canon.create_replies = [{} if echoed is None else {"responseUserId": echoed}]
    with pytest.raises(LedgerError):
        await p.ask(responder=trusted)
    approval_id = p.canon.creates[0]["approvalId"]
    entry = await p.find(approval_id)
    assert entry is not None
    assert (entry["status"], entry["identityMismatch"]) == ("orphaned", True)
    assert [body.get("cancel") for body in p.canon.consumes] == [True]


async def test_without_provenance_the_responder_the_server_names_counts():
    p = process()
    p.canon.create_replies = [{"responseUserId": "u_owner"}]
    result = await p.ask(responder=None)
    assert "responseUserId" not in p.canon.creates[0]
    assert result["responseUserId"] == "u_owner"


async def test_an_old_server_that_echoes_nothing_keeps_the_asked_responder():
    p = process()
    p.canon.create_replies = [{}]
    assert (await p.ask())["responseUserId"] == "u_77"


async def test_i33_a_cancelled_create_stays_for_recovery():
    p = process()
    hold = asyncio.Event()

    async def never(_):
        await hold.wait()

    p.canon.create_replies = [{}]
    p.canon.create_interaction = never
    task = asyncio.create_task(p.ask())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [entry["status"] for entry in await p.entries()] == ["creating"]
    assert p.closed == 1


async def test_i23_recovery_that_was_faster_wins():
    p = process()

    async def slow(body):
        await p.clock.advance(301)
        await p.desk.consume(p.canon, body["approvalId"], wake=True)
        return {"responseUserId": "u_77"}

    p.canon.create_interaction = slow
    with pytest.raises(LedgerError):
        await p.ask()
    assert [entry["status"] for entry in await p.entries()] == ["pending"]


# --- the question ---------------------------------------------------------------------------------------------------


def test_title_and_question_fill_in_for_each_other():
    only_title = build_question(title=" T ", question="  ", options=None, context=None)
    assert (only_title.tool_name, only_title.summary) == ("T", "T")
    only_question = build_question(title=None, question="Q?", options=None, context=None)
    assert (only_question.tool_name, only_question.summary) == ("Approval", "Q?")
    with pytest.raises(ValueError, match="question"):
        build_question(title=" ", question=None, options=None, context=None)


def test_cuts_count_code_points():
    made = build_question(title="😀" * 200, question="é" * 2000, options=None, context=None)
    assert made.tool_name == "😀" * 128
    assert made.summary == "é" * 1000
    assert made.ledger_summary == "é" * 500


def test_context_and_options_become_rows():
    context = {"Ship": " Aurora ", "": "x", "Blank": " ", "L" * 90: "v" * 600, 5: 6, "f": 1, "seventh": "gone"}
    made = build_question(title="t", question=None, options=["a", " ", 5, *"bcdefghij"], context=context)
    assert list(made.details) == [
        {"label": "Ship", "value": "Aurora"},
        {"label": "L" * 80, "value": "v" * 500},
        {"label": "5", "value": "6"},
        {"label": "f", "value": "1"},
        {"label": "Options", "value": "a, 5, b, c, d, e, f"},
    ]


def test_a_text_is_one_context_row_and_other_shapes_are_ignored():
    made = build_question(title="t", question=None, options="ab", context="  why  ")
    assert list(made.details) == [{"label": "Context", "value": "why"}]
    assert build_question(title="t", question=None, options=None, context=5).details == ()


def test_lone_surrogates_of_a_model_cannot_break_the_wire():
    made = build_question(title="a\ud800b", question=None, options=["\udfff"], context={"\ud83c": "\ud83c"})
    for text in (made.tool_name, made.summary, *(str(row) for row in made.details)):
        text.encode("utf-8")
