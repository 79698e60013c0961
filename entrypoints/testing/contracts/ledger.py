"""The approvals ledger: what every :class:`canon_hermes_plugin.ports.approvals.LedgerStore` promises (§9.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import pytest
from canon_hermes_plugin.domain.approvals import events as ev
from canon_hermes_plugin.domain.approvals.ledger import RETENTION_MS, encode
from canon_hermes_plugin.domain.approvals.transitions import Step, apply
from canon_hermes_plugin.ports.approvals import Change, Entry, LedgerStore, LedgerView
from canon_hermes_plugin.ports.errors import LedgerError
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop

NOW = 1_900_000_000_000
"""Where a driver's clock begins, in ms."""


class LedgerDriver(Driver, Protocol):
    """The subject, its clock and its bytes.

    Attributes:
        store: the subject.
        now: what its clock says, in ms; :data:`NOW` at first, tests move it.
    """

    store: LedgerStore
    now: int

    def read(self) -> bytes | None:
        """Return the stored document (a JSON object of entries by id), ``None`` when there is none."""
        ...

    def write(self, raw: bytes) -> None:
        """Replace the stored document."""
        ...


def entry(approval_id: str = "a", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    """Return a pending entry."""
    return {"approvalId": approval_id, "conversationId": "cv", "status": "pending", "expiresAt": NOW, **fields}


def settled(approval_id: str, at: int) -> dict[str, Any]:
    """Return an entry that expired at ``at``."""
    return entry(approval_id, status="expired", resolvedAt=at)


async def put(store: LedgerStore, *entries: Entry) -> None:
    """Store entries."""
    await store.transact(lambda _: Change(None, {str(item["approvalId"]): item for item in entries}))


async def happen(store: LedgerStore, approval_id: str, event: ev.Event) -> Step:
    """Let an event happen to an entry."""

    def decide(view: LedgerView) -> Change[Step]:
        step = apply(view.get(approval_id), event)
        return Change(step, {approval_id: step.entry} if step.changed and step.entry else {})

    return await store.transact(decide)


class LedgerStoreContract(Contract[LedgerDriver]):
    """The suite."""

    @on_a_loop
    async def test_an_absent_ledger_is_empty(self, rig: LedgerDriver) -> None:
        assert list(await rig.store.snapshot()) == []
        assert await rig.store.find("a") is None

    @on_a_loop
    async def test_what_was_stored_is_found_with_its_unknown_fields(self, rig: LedgerDriver) -> None:
        await put(rig.store, entry(custom={"deep": [1]}))
        assert await rig.store.find("a") == entry(custom={"deep": [1]})

    @on_a_loop
    async def test_a_decision_sees_what_the_one_before_stored(self, rig: LedgerDriver) -> None:
        lease = ev.Lease("c", NOW + 300_000, "p")
        assert (await happen(rig.store, "a", ev.Reserve(NOW, "a", "cv", NOW + 5, lease))).outcome == "reserved"
        assert (await happen(rig.store, "a", ev.Reserve(NOW, "a", "cv", NOW + 5, lease))).outcome == "exists"

    @on_a_loop
    async def test_a_failing_decision_leaves_the_ledger_untouched(self, rig: LedgerDriver) -> None:
        await put(rig.store, entry())
        before = rig.read()

        def fail(_: LedgerView) -> Change[None]:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await rig.store.transact(fail)
        assert rig.read() == before

    @on_a_loop
    async def test_i39_an_unchanged_result_leaves_the_bytes_as_they_are(self, rig: LedgerDriver) -> None:
        await put(rig.store, entry())
        before = rig.read()
        await put(rig.store, entry())
        await rig.store.transact(lambda view: Change(view.get("a")))
        assert rig.read() == before

    @on_a_loop
    async def test_an_invalid_entry_is_refused_and_not_written(self, rig: LedgerDriver) -> None:
        await put(rig.store, entry())
        before = rig.read()
        with pytest.raises(LedgerError):
            await put(rig.store, entry(status="nonsense"))
        assert rig.read() == before

    @pytest.mark.parametrize("raw", [b"", b"[]", b"\xff", b'{"a": {"status": []}}', b'{"a":' * 9000])
    @on_a_loop
    async def test_i20_a_malformed_ledger_fails_closed_and_stays_byte_identical(
        self, rig: LedgerDriver, raw: bytes
    ) -> None:
        rig.write(raw)
        calls: list[Callable[[], Any]] = [
            lambda: put(rig.store, entry()),
            rig.store.snapshot,
            lambda: rig.store.find("a"),
            lambda: happen(rig.store, "a", ev.ReceiptSeen(NOW)),
        ]
        for call in calls:
            with pytest.raises(LedgerError):
                await call()
        await rig.store.tidy()
        assert rig.read() == raw

    @on_a_loop
    async def test_a_repaired_ledger_works_again(self, rig: LedgerDriver) -> None:
        rig.write(b"broken")
        with pytest.raises(LedgerError):
            await rig.store.snapshot()
        rig.write(encode({"a": entry()}))
        assert await rig.store.find("a") == entry()

    @on_a_loop
    async def test_i30_settled_entries_are_pruned_after_14_days_and_others_never(self, rig: LedgerDriver) -> None:
        kept = [entry("open", expiresAt=0), settled("young", NOW - RETENTION_MS)]
        await put(rig.store, *kept, settled("old", NOW - RETENTION_MS - 1))
        assert await rig.store.find("old") is None
        assert [await rig.store.find("open"), await rig.store.find("young")] == kept
        rig.now += 1
        await put(rig.store, entry("other"))
        assert await rig.store.find("young") is None
        assert b"young" not in (rig.read() or b"")

    @on_a_loop
    async def test_a_snapshot_holds_what_can_still_change_in_order_of_ids(self, rig: LedgerDriver) -> None:
        waking = entry("d", status="resolved", decision="allow", resolvedAt=NOW, wakeStatus="pending")
        told = entry("e", status="resolved", decision="allow", resolvedAt=NOW, wakeStatus="delivered")
        await put(rig.store, entry("c"), entry("b"), settled("a", NOW), waking, told)
        assert [item["approvalId"] for item in await rig.store.snapshot()] == ["b", "c", "d"]

    @on_a_loop
    async def test_concurrent_decisions_lose_no_update(self, rig: LedgerDriver) -> None:
        async def add(name: str) -> None:
            def decide(view: LedgerView) -> Change[None]:
                counted = view.get("n") or entry("n", count=0)
                return Change(None, {"n": {**counted, "count": counted["count"] + 1}, name: entry(name)})

            await rig.store.transact(decide)

        await asyncio.gather(*(add(f"e{i}") for i in range(40)))
        found = await rig.store.find("n")
        assert found is not None
        assert found["count"] == 40
        assert len(await rig.store.snapshot()) == 41

    @on_a_loop
    async def test_i33_cancelling_the_caller_finishes_what_was_started_and_frees_the_lock(
        self, rig: LedgerDriver
    ) -> None:
        task = asyncio.create_task(put(rig.store, entry()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await put(rig.store, entry("b"))
        assert await rig.store.find("a") in (None, entry())
        assert await rig.store.find("b") == entry("b")

    @on_a_loop
    async def test_a_view_gives_settled_entries_and_the_active_ones_in_order(self, rig: LedgerDriver) -> None:
        done = settled("a", NOW)
        await put(rig.store, entry("c"), done, entry("b"))
        seen = await rig.store.transact(
            lambda view: Change((view.get("a"), view.get("b"), view.get("x"), view.active()))
        )
        assert seen[:3] == (done, entry("b"), None)
        assert [item["approvalId"] for item in seen[3]] == ["b", "c"]

    @on_a_loop
    async def test_a_view_is_one_instant_and_writes_nothing(self, rig: LedgerDriver) -> None:
        young = settled("young", NOW - RETENTION_MS)
        await put(rig.store, young, entry())
        before = rig.read()

        def look(view: LedgerView) -> Change[list[Entry | None]]:
            seen = [view.get("young")]
            rig.now += 1
            return Change([*seen, view.get("young"), *view.active()])

        assert await rig.store.transact(look) == [young, young, entry()]
        rig.now = NOW
        assert rig.read() == before

    @on_a_loop
    async def test_threads_with_loops_of_their_own_share_the_ledger(self, rig: LedgerDriver) -> None:
        def on_a_thread(name: str) -> None:
            asyncio.run(put(rig.store, entry(name)))

        await asyncio.gather(*(asyncio.to_thread(on_a_thread, f"e{number}") for number in range(8)))
        assert [item["approvalId"] for item in await rig.store.snapshot()] == [f"e{number}" for number in range(8)]
