"""Every state and event of the table of interactions §9.4, and what each transition may touch."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from canon_hermes_plugin.domain.approvals import events as ev
from canon_hermes_plugin.domain.approvals.diagram import page
from canon_hermes_plugin.domain.approvals.ledger import RETENTION_MS, decode, encode
from canon_hermes_plugin.domain.approvals.transitions import STATES, TABLE, apply, state_of

NOW = 1_900_000_000_000
LIVE, OVER = NOW + 1, NOW
LEASE = ev.Lease("new-claim", NOW + 60_000, "process-2")


def entry(state: str, **fields: Any) -> dict[str, Any] | None:
    if state == "absent":
        return None
    status, _, wake = state.partition("/")
    made: dict[str, Any] = {
        "approvalId": "hermes-1",
        "conversationId": "cv_9",
        "requestedAt": NOW - 10,
        "expiresAt": NOW + 1000,
        "status": status,
        "custom": {"kept": [1, 2]},
    }
    claims = {"creating": "createClaim", "consuming": "consumeClaim"}
    if status in claims:
        made |= {f"{claims[status]}Id": "claim", f"{claims[status]}ExpiresAt": LIVE, f"{claims[status]}Owner": "p1"}
    if status in {"pending", "consuming"}:
        made |= {"createdFromClaimId": "create", "responseUserId": "u_77"}
    if status == "resolved":
        made |= {"decision": "allow", "respondedBy": "u_77", "resolvedAt": NOW - 5}
    if status in {"expired", "orphaned"}:
        made |= {"resolvedAt": NOW - 5}
    if wake:
        made["wakeStatus"] = wake
    if wake == "delivering":
        made |= {"wakeClaimId": "claim", "wakeClaimExpiresAt": LIVE, "wakeClaimOwner": "p1"}
    return made | fields


def events() -> list[ev.Event]:
    reserve = ev.Reserve(NOW, "hermes-1", "cv_9", NOW + 5, LEASE, "s", "u_77", "ag_5", "f" * 16)
    return [
        reserve,
        ev.Activate(NOW, "claim", NOW + 7, "u_77"),
        ev.Activate(NOW, "create", NOW + 7, "u_77"),
        ev.Activate(NOW, "claim", NOW + 7, ""),
        ev.Activate(NOW, "other", NOW + 7, "u_77"),
        ev.FailCreation(NOW, "claim", "x" * 600),
        ev.FailCreation(NOW, "other", "x"),
        ev.ReceiptSeen(NOW),
        ev.Claim(NOW, LEASE),
        ev.FinishPending(NOW, "claim", reconcile=True, expires_at=NOW + 9),
        ev.FinishPending(NOW, "other", reconcile=True),
        ev.FinishResolved(NOW, "claim", "deny", "u_77", wake=True),
        ev.FinishResolved(NOW, "claim", "deny", "u_77", wake=False),
        ev.FinishResolved(NOW, "other", "deny", "u_77", wake=True),
        ev.FinishExpired(NOW, "claim"),
        ev.FinishExpired(NOW, "other"),
        ev.FinishOrphaned(NOW, "claim", identity_mismatch=True),
        ev.FinishOrphaned(NOW, "other"),
        ev.ClaimWake(NOW, LEASE),
        ev.FinishWake(NOW, "claim", delivered=True),
        ev.FinishWake(NOW, "claim", delivered=False),
        ev.FinishWake(NOW, "other", delivered=True),
        ev.Prune(NOW),
    ]


# What happens in each state, in the order of events(): the whole table written out by hand.
EXPECTED = {
    "absent": "T1 T3x T3x T3x T3x T5n T5n T6n T10a T15 T15 T15 T15 T15 T15 T15 T15 T15 T17n T20 T20 T20 T21n",
    "creating": "T1x T2 T3x T3 T3x T5 T5n T6 T7n T15 T15 T15 T15 T15 T15 T15 T15 T15 T17n T20 T20 T20 T21n",
    "pending": "T1x T3x T2i T3x T3x T5n T5n T6 T8 T15 T15 T15 T15 T15 T15 T15 T15 T15 T17n T20 T20 T20 T21n",
    "consuming": "T1x T3x T3x T3x T3x T5n T5n T6 T9n T11 T15 T12 T12 T15 T13 T15 T14 T15 T17n T20 T20 T20 T21n",
    "resolved": "T1x T3x T3x T3x T3x T5n T5n T6n T10 T15 T15 T15 T15 T15 T15 T15 T15 T15 T17n T20 T20 T20 T21n",
    "resolved/pending": "T1x T3x T3x T3x T3x T5n T5n T6w T10 T15 T15 T15 T15 T15 T15 T15 T15 T15 T16 T20 T20 T20 T21n",
    "resolved/delivering": (
        "T1x T3x T3x T3x T3x T5n T5n T6w T10 T15 T15 T15 T15 T15 T15 T15 T15 T15 T17n T18 T19 T20 T21n"
    ),
    "resolved/delivered": (
        "T1x T3x T3x T3x T3x T5n T5n T6n T10 T15 T15 T15 T15 T15 T15 T15 T15 T15 T17n T20 T20 T20 T21n"
    ),
    "expired": "T1x T3x T3x T3x T3x T5n T5n T6n T10 T15 T15 T15 T15 T15 T15 T15 T15 T15 T17n T20 T20 T20 T21n",
    "orphaned": "T1x T3x T3x T3x T3x T5n T5n T6n T10 T15 T15 T15 T15 T15 T15 T15 T15 T15 T17n T20 T20 T20 T21n",
}
CASES = [(state, event, row) for state in STATES for event, row in zip(events(), EXPECTED[state].split(), strict=True)]


@pytest.mark.parametrize(("state", "event", "row"), CASES, ids=lambda value: str(value)[:40])
def test_each_state_and_event_takes_its_one_row(state, event, row):
    assert apply(entry(state), event).row == row


def test_every_row_of_the_table_is_reached():
    reached = {row for _, _, row in CASES} | {"T7", "T9", "T17", "T21"}
    assert reached == {row.name for row in TABLE}


@pytest.mark.parametrize(("state", "event", "row"), CASES, ids=lambda value: str(value)[:40])
def test_i3_and_i39_a_row_without_effect_leaves_the_entry_as_it_is(state, event, row):
    before = entry(state)
    step = apply(before, event)
    if not step.changed:
        assert step.entry is before
    elif state.startswith(("resolved", "expired", "orphaned")):
        assert step.entry is not None
        assert step.entry["status"] == state.partition("/")[0]


@pytest.mark.parametrize(("state", "event", "row"), CASES, ids=lambda value: str(value)[:40])
def test_i26_to_i29_and_i38_what_a_step_leaves_is_a_consistent_valid_entry(state, event, row):
    step = apply(entry(state), event)
    if step.entry is None:
        return
    after = dict(step.entry)
    assert decode(encode({"hermes-1": after})) == {"hermes-1": after}
    if state != "absent":
        assert after["custom"] == {"kept": [1, 2]}
    status, now_state = after["status"], state_of(after)
    assert ("createClaimId" in after) == (status == "creating")
    assert ("consumeClaimId" in after) == (status == "consuming")
    assert ("wakeClaimId" in after) == (now_state == "resolved/delivering")
    assert ("resolvedAt" in after) == (status in {"resolved", "expired", "orphaned"})
    if after.get("receiptPending"):
        assert status in {"creating", "pending", "consuming"} or now_state in {
            "resolved/pending",
            "resolved/delivering",
        }
    if after.get("reconcilePending"):
        assert status in {"creating", "pending", "consuming"}
    if "decision" in after:
        assert status == "resolved"
        assert after["respondedBy"]


@pytest.mark.parametrize("expires", [LIVE, OVER])
def test_i10_a_lease_is_live_while_its_expiry_is_strictly_greater_than_now(expires):
    owned_by_us = {"consumeClaimExpiresAt": expires, "consumeClaimOwner": "process-2"}
    step = apply(entry("consuming", **owned_by_us), ev.Claim(NOW, LEASE))
    assert step.row == ("T9n" if expires == LIVE else "T9")


def test_t7_an_expired_creation_is_taken_over_by_the_consumer():
    step = apply(entry("creating", createClaimExpiresAt=OVER), ev.Claim(NOW, LEASE))
    assert step.row == "T7"
    assert step.entry is not None
    assert step.entry["creationRecoveredAt"] == NOW
    assert step.entry["consumeClaimOwner"] == "process-2"


def test_t17_an_expired_wake_lease_is_taken_over():
    step = apply(entry("resolved/delivering", wakeClaimExpiresAt=OVER), ev.ClaimWake(NOW, LEASE))
    assert step.row == "T17"
    assert step.entry is not None
    assert step.entry["wakeClaimId"] == "new-claim"


@pytest.mark.parametrize(
    ("recorded", "answered", "row"),
    [
        (None, "u_1", "T2"),
        ("u_1", "u_1", "T2"),
        ("u_1", " u_1 ", "T2"),
        ("u_1", "u_2", "T3"),
        (None, " ", "T3"),
    ],
)
def test_t2_t3_activation_needs_the_responder_that_was_recorded(recorded, answered, row):
    creating = entry("creating", **({"responseUserId": recorded} if recorded else {}))
    step = apply(creating, ev.Activate(NOW, "claim", NOW + 7, answered))
    assert step.row == row
    assert step.entry is not None
    assert step.entry.get("identityMismatch", False) is (row == "T3")


def test_i22_activating_twice_is_activating_once():
    once = apply(entry("creating"), ev.Activate(NOW, "claim", NOW + 7, "u_77"))
    twice = apply(once.entry, ev.Activate(NOW + 1, "claim", NOW + 8, "u_77"))
    assert (twice.outcome, twice.changed, twice.entry) == ("activated", False, once.entry)


def test_i23_activation_after_recovery_took_the_entry_changes_nothing():
    recovered = apply(entry("creating", createClaimExpiresAt=OVER), ev.Claim(NOW, LEASE)).entry
    step = apply(recovered, ev.Activate(NOW, "claim", NOW + 7, "u_77"))
    assert (step.outcome, step.changed) == ("lost", False)


def test_i6_a_receipt_changes_neither_status_nor_decision_nor_responder():
    for state in STATES:
        before = entry(state)
        after = apply(before, ev.ReceiptSeen(NOW)).entry
        if before is not None:
            assert after is not None
            changed = {key for key in after if after.get(key) != before.get(key)}
            assert changed <= {"receiptPending", "receiptSeenAt"}


def test_i2_no_event_changes_a_stored_decision_or_leaves_resolved():
    for state, event in itertools.product((s for s in STATES if s.startswith("resolved")), events()):
        after = apply(entry(state), event).entry
        assert after is not None
        assert (after["status"], after["decision"], after["respondedBy"]) == ("resolved", "allow", "u_77")


@pytest.mark.parametrize(("age", "row"), [(RETENTION_MS, "T21n"), (RETENTION_MS + 1, "T21")])
def test_i30_only_settled_entries_older_than_14_days_are_pruned(age, row):
    step = apply(entry("resolved/pending", resolvedAt=NOW - age), ev.Prune(NOW))
    assert step.row == row
    assert (step.entry is None) == (row == "T21")


@pytest.mark.parametrize("state", ["creating", "pending", "consuming"])
def test_i31_open_entries_survive_pruning_with_any_expiry(state):
    assert apply(entry(state, expiresAt=-(10**15)), ev.Prune(NOW)).row == "T21n"


def test_t5_the_reason_is_cut_to_500_characters():
    step = apply(entry("creating"), ev.FailCreation(NOW, "claim", "x" * 600))
    assert step.entry is not None
    assert step.entry["creationError"] == "x" * 500


PAGE = Path(__file__).parents[3] / "docs" / "approval-states.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of an installed distribution")
def test_the_documented_diagram_is_the_table():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_transition_that_moves_an_entry_is_drawn():
    moving = {row.name for row in TABLE if row.effect is not None} - {"T6", "T6w"}
    assert moving == {name for name in moving if f": {name} " in page()}
