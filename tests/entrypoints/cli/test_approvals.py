"""``canon-hermes approvals``: the open ones, and the way back to one file."""

from __future__ import annotations

import os
from pathlib import Path

from canon_hermes_plugin.domain.approvals.ledger import decode
from canon_hermes_plugin.infrastructure.files.approval_store import LEDGER_NAME, FileLedger
from canon_hermes_plugin.infrastructure.system import SystemClock
from canon_hermes_plugin.ports.approvals import Change


def put(*entries):
    store = FileLedger(Path(os.environ["CANON_HOME"]), SystemClock().now_ms, keep=(1, 0))
    for entry in entries:
        store.transact_now(lambda _, entry=entry: Change(None, {entry["approvalId"]: entry}))


def entry(approval_id, **fields):
    made = {"approvalId": approval_id, "conversationId": "cv", "status": "pending", "expiresAt": 1_900_000_000_000}
    return {**made, "summary": "secret question", **fields}


def settled(approval_id):
    return entry(approval_id, status="expired", resolvedAt=SystemClock().now_ms())


def test_open_approvals_are_listed_without_what_was_asked(cli):
    put(entry("hermes-1"), entry("hermes-2", expiresAt=1e30), settled("hermes-3"))
    result = cli("approvals", "list")
    assert result.exit_code == 0
    assert "hermes-1  pending  until 2030-03-17 17:46 UTC  cv" in result.output
    assert "2 open" in result.output
    assert "secret" not in result.output
    assert "hermes-3" not in result.output


def test_the_history_comes_back_into_the_one_file(cli):
    put(settled("hermes-1"), settled("hermes-2"), settled("hermes-3"), entry("hermes-4"))
    ledger = Path(os.environ["CANON_HOME"]) / LEDGER_NAME
    assert len(decode(ledger.read_bytes())) < 4
    result = cli("approvals", "restore-history")
    assert result.exit_code == 0
    assert set(decode(ledger.read_bytes())) == {f"hermes-{number}" for number in range(1, 5)}


def test_a_broken_ledger_is_told_with_its_path_and_left_alone(cli):
    ledger = Path(os.environ["CANON_HOME"]) / LEDGER_NAME
    ledger.parent.mkdir()
    ledger.write_bytes(b"[]")
    result = cli("approvals", "list")
    assert result.exit_code == 1
    assert LEDGER_NAME in result.output
    assert ledger.read_bytes() == b"[]"
