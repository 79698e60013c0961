"""The ledger against a plain dictionary, under any order of events, clocks and processes (interactions §9.13)."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from canon_hermes_plugin.domain.approvals import events as ev
from canon_hermes_plugin.domain.approvals.ledger import RETENTION_MS, decode
from canon_hermes_plugin.domain.approvals.transitions import apply
from canon_hermes_plugin.infrastructure.files.approval_store import LEDGER_NAME, FileLedger
from canon_hermes_plugin.ports.approvals import Change
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

IDS = st.sampled_from(["a", "b", "c"])
CLAIMS = st.sampled_from(["claim1", "claim2"])
OPEN = {"creating", "pending", "consuming"}


class LedgerMachine(RuleBasedStateMachine):
    """Two processes share one file; the model is a dictionary that knows nothing of files."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="canon-ledger-")
        self.now = 1_900_000_000_000
        home = Path(self.folder.name)
        self.stores = [FileLedger(home, lambda: self.now, keep=(2, 1)) for _ in range(2)]
        self.model: dict[str, dict[str, Any]] = {}
        self.decisions: dict[str, tuple[Any, Any]] = {}
        self.turn = 0

    def happen(self, key: str, event: ev.Event) -> None:
        self.turn += 1

        def decide(view):
            step = apply(view.get(key), event)
            return Change(step, {key: step.entry} if step.changed and step.entry is not None else {})

        step = self.stores[self.turn % 2].transact_now(decide)
        for stale in [k for k, e in self.model.items() if apply(e, ev.Prune(self.now)).outcome == "pruned"]:
            del self.model[stale]
            self.decisions.pop(stale, None)
        expected = apply(self.model.get(key), event)
        assert (step.row, step.outcome) == (expected.row, expected.outcome)
        if expected.changed and expected.entry is not None:
            self.model[key] = dict(expected.entry)

    def lease(self, claim: str) -> ev.Lease:
        return ev.Lease(claim, self.now + 60_000, f"process{self.turn % 2}")

    @rule(seconds=st.sampled_from([1, 59, 61, 301, 20_000]))
    def time_passes(self, seconds):
        self.now += seconds * 1000

    @rule()
    def two_weeks_pass(self):
        self.now += RETENTION_MS + 1

    @rule(key=IDS, claim=CLAIMS)
    def reserve(self, key, claim):
        event = ev.Reserve(self.now, key, "cv", self.now + 1000, self.lease(claim), "summary", "u_1", "ag", "f" * 16)
        self.happen(key, event)

    @rule(key=IDS, claim=CLAIMS, who=st.sampled_from(["u_1", "u_2", ""]))
    def activate(self, key, claim, who):
        self.happen(key, ev.Activate(self.now, claim, self.now + 5, who))

    @rule(key=IDS, claim=CLAIMS)
    def fail_creation(self, key, claim):
        self.happen(key, ev.FailCreation(self.now, claim, "rejected (400)"))

    @rule(key=IDS)
    def receipt(self, key):
        self.happen(key, ev.ReceiptSeen(self.now))

    @rule(key=IDS, claim=CLAIMS)
    def claim(self, key, claim):
        self.happen(key, ev.Claim(self.now, self.lease(claim)))

    @rule(key=IDS, claim=CLAIMS, reconcile=st.booleans())
    def finish_pending(self, key, claim, reconcile):
        self.happen(key, ev.FinishPending(self.now, claim, reconcile=reconcile, expires_at=None))

    @rule(key=IDS, claim=CLAIMS, decision=st.sampled_from(["allow", "deny"]), wake=st.booleans())
    def finish_resolved(self, key, claim, decision, wake):
        self.happen(key, ev.FinishResolved(self.now, claim, decision, "u_1", wake=wake))

    @rule(key=IDS, claim=CLAIMS, expired=st.booleans())
    def finish_closed(self, key, claim, expired):
        self.happen(key, (ev.FinishExpired if expired else ev.FinishOrphaned)(self.now, claim))

    @rule(key=IDS, claim=CLAIMS)
    def claim_wake(self, key, claim):
        self.happen(key, ev.ClaimWake(self.now, self.lease(claim)))

    @rule(key=IDS, claim=CLAIMS, delivered=st.booleans())
    def finish_wake(self, key, claim, delivered):
        self.happen(key, ev.FinishWake(self.now, claim, delivered=delivered))

    @invariant()
    def file_and_model_agree(self):
        alive = {k: e for k, e in self.model.items() if apply(e, ev.Prune(self.now)).outcome == "kept"}
        for store in self.stores:
            seen = store.transact_now(lambda view: Change({k: e for k in "abc" if (e := view.get(k)) is not None}))
            assert seen == alive

    @invariant()
    def i19_the_bytes_are_a_valid_document(self):
        path = Path(self.folder.name) / LEDGER_NAME
        if path.exists():
            decode(path.read_bytes())

    @invariant()
    def i2_i26_to_i29_hold(self):
        for key, entry in self.model.items():
            status, wake = entry["status"], entry.get("wakeStatus")
            if status == "resolved":
                known = self.decisions.setdefault(key, (entry["decision"], entry["resolvedAt"]))
                assert known == (entry["decision"], entry["resolvedAt"])
            assert ("createClaimId" in entry) == (status == "creating")
            assert ("consumeClaimId" in entry) == (status == "consuming")
            assert ("wakeClaimId" in entry) == (wake == "delivering")
            assert ("resolvedAt" in entry) == (status not in OPEN)
            assert not entry.get("receiptPending") or status in OPEN or wake in {"pending", "delivering"}
            assert not entry.get("reconcilePending") or status in OPEN

    def teardown(self):
        self.folder.cleanup()


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


def test_two_loops_share_one_store(tmp_path):
    store = FileLedger(tmp_path, lambda: 1)
    entry = {"approvalId": "a", "conversationId": "cv", "status": "pending", "expiresAt": 5}
    asyncio.run(store.transact(lambda _: Change(None, {"a": entry})))
    assert asyncio.run(store.find("a")) == entry
