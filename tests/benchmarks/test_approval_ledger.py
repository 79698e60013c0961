"""What one operation on a full ledger costs, as ratios within one run (issue: at most 5 times one with 10 entries)."""

from __future__ import annotations

import json
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from canon_hermes_plugin.domain.approvals import events as ev
from canon_hermes_plugin.domain.approvals.transitions import apply
from canon_hermes_plugin.infrastructure.files.approval_store import LEDGER_NAME, FileLedger
from canon_hermes_plugin.infrastructure.files.disk import OsDisk, write_durably
from canon_hermes_plugin.ports.approvals import Change

pytestmark = pytest.mark.bench

NOW = 1_900_000_000_000
ROUNDS = 60


def kept(number: int) -> dict[str, Any]:
    key = f"hermes-{number:020x}"
    return {
        "approvalId": key,
        "conversationId": "cv_9",
        "agentId": "ag_5",
        "requestedAt": NOW,
        "createdAt": NOW,
        "createdFromClaimId": "5" * 32,
        "expiresAt": NOW + 259_200_000,
        "status": "resolved",
        "summary": f"Release berth {number}?",
        "responseUserId": "u_77",
        "respondedBy": "u_77",
        "decision": "allow",
        "resolvedAt": NOW - number,
        "receiptPending": False,
        "reconcilePending": False,
        "wakeStatus": "delivered",
        "wakeDeliveredAt": NOW,
    }


def filled(home: Path, entries: int) -> FileLedger:
    home.mkdir()
    document = {item["approvalId"]: item for item in map(kept, range(entries))}
    (home / LEDGER_NAME).write_text(json.dumps(document, indent=2, sort_keys=True), encoding="utf-8")
    store = FileLedger(home, lambda: NOW)
    for number in range(5):
        one_operation(store, f"hermes-warm{number}")
    return store


def one_operation(store: FileLedger, key: str) -> None:
    event = ev.Reserve(NOW, key, "cv_9", NOW + 5, ev.Lease("c" * 32, NOW + 300_000, "p"))

    def decide(view):
        step = apply(view.get(key), event)
        return Change(step.outcome, {key: step.entry})

    assert store.transact_now(decide) == "reserved"


def cost(store: FileLedger, name: str) -> float:
    times = []
    for number in range(ROUNDS):
        started = time.perf_counter()
        one_operation(store, f"hermes-{name}{number}")
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def test_an_operation_with_10000_kept_entries_costs_at_most_5_times_one_with_10(tmp_path, record_property):
    small, large = filled(tmp_path / "small", 10), filled(tmp_path / "large", 10_000)
    ratios = [cost(large, f"l{part}") / cost(small, f"s{part}") for part in range(3)]
    record_property("ratio", ratios)
    assert min(ratios) <= 5, ratios


def test_an_operation_is_near_the_price_of_its_durable_write(tmp_path, record_property):
    store = filled(tmp_path / "ledger", 10_000)
    disk, size = OsDisk(), len((tmp_path / "ledger" / LEDGER_NAME).read_bytes())

    def bare_write(number: int) -> float:
        started = time.perf_counter()
        write_durably(disk, tmp_path / "bare", b"x" * size, temporary=f".bare.{number}.tmp")
        return time.perf_counter() - started

    bare = statistics.median(bare_write(number) for number in range(ROUNDS))
    ratio = cost(store, "x") / bare
    record_property("ratio", ratio)
    assert ratio <= 6, ratio


def test_one_operation_makes_one_file_durable_and_reads_once(tmp_path):
    calls: list[str] = []

    class Counting:
        def __getattr__(self, name):
            def call(*args):
                calls.append(name)
                return getattr(OsDisk(), name)(*args)

            return call

    store = filled(tmp_path / "ledger", 10_000)
    counted: Any = FileLedger(tmp_path / "ledger", lambda: NOW, disk=Counting())  # type: ignore[arg-type]
    del store
    one_operation(counted, "hermes-a")
    calls.clear()
    one_operation(counted, "hermes-b")
    assert calls == ["is_directory", "read", "names", "create", "sync_file", "replace", "sync_directory"]


def test_the_event_loop_never_waits_for_the_ledger(tmp_path):
    import asyncio
    import logging

    store = filled(tmp_path / "ledger", 10_000)
    complaints: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record):
            complaints.append(record.getMessage())

    async def many():
        loop = asyncio.get_running_loop()
        loop.set_debug(True)
        loop.slow_callback_duration = 0.05
        threads = set()

        def decide(view):
            threads.add(threading.get_ident())
            return Change(view.get("hermes-none"))

        await asyncio.gather(*(store.transact(decide) for _ in range(50)), store.snapshot())
        assert threading.get_ident() not in threads

    handler = Listener()
    logging.getLogger("asyncio").addHandler(handler)
    slow: list[int] = []
    try:
        for _ in range(3):
            complaints.clear()
            asyncio.run(many())
            slow.append(sum(text.startswith("Executing") for text in complaints))
    finally:
        logging.getLogger("asyncio").removeHandler(handler)
    # A step that blocks does so in every round; a machine at work for others may hold up one of them.
    assert min(slow) == 0
