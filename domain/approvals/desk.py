"""The one place that asks Canon for a detached approval's answer, under a persisted lease (interactions §9.5).

Orders claim, call and finish so that at most one consume is in flight per id while leases are respected. Everybody who
wants an answer comes here: checkers, receipts, the scan and the start-up reconcile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, final

from canon_hermes_plugin.domain.approvals import events as ev
from canon_hermes_plugin.domain.approvals import outcomes
from canon_hermes_plugin.domain.approvals.ownership import LedgerIdentity, ownership
from canon_hermes_plugin.domain.approvals.transitions import Step, apply
from canon_hermes_plugin.ports.approvals import Change, Entry, LedgerStore, LedgerView
from canon_hermes_plugin.ports.canon import InteractionPort
from canon_hermes_plugin.ports.errors import CanonApiError, LedgerError
from canon_hermes_plugin.ports.time import Clock, IdSource

CLAIM_DIGITS: Final = 32


@final
class ApprovalDesk:
    """Applies events to the ledger and consumes answers.

    Attributes:
        identity: who this process acts for; replaced when the adapter learns more.
    """

    def __init__(self, ledger: LedgerStore, clock: Clock, ids: IdSource, process_id: str) -> None:
        self.identity = LedgerIdentity()
        self._ledger = ledger
        self._clock = clock
        self._ids = ids
        self._process_id = process_id

    def lease(self, duration_ms: int) -> ev.Lease:
        """Return a fresh lease that starts now."""
        return ev.Lease(self._ids.hex(CLAIM_DIGITS), self._clock.now_ms() + duration_ms, self._process_id)

    async def happen(self, approval_id: str, event: ev.Event) -> Step:
        """Let ``event`` happen to the entry, durably. Foreign entries are left alone (I35).

        Raises:
            LedgerError: the ledger cannot be used; nothing happened.
        """

        def decide(view: LedgerView) -> Change[Step]:
            entry = view.get(approval_id)
            if entry is not None and ownership(entry, self.identity) == "foreign":
                return Change(Step("foreign", "ignored", entry, changed=False))
            step = apply(entry, event)
            return Change(step, {approval_id: step.entry} if step.changed and step.entry is not None else {})

        return await self._ledger.transact(decide)

    async def find(self, approval_id: str) -> Entry | None:
        """Return the entry, settled or not; raises ``LedgerError``."""
        return await self._ledger.find(approval_id)

    async def mine(self) -> list[Entry]:
        """Return the unsettled entries this process may touch; raises ``LedgerError``."""
        entries = await self._ledger.snapshot()
        return [entry for entry in entries if ownership(entry, self.identity) != "foreign"]

    async def tidy(self) -> None:
        """Clean what crashed writers left (D29)."""
        await self._ledger.tidy()

    async def consume(self, canon: InteractionPort, approval_id: str, *, wake: bool) -> Mapping[str, Any]:
        """Ask Canon for the answer unless it is stored or somebody else is asking.

        Args:
            canon: where to ask.
            approval_id: the entry.
            wake: whether a decision is to be handed to the model later; a checker takes it itself.

        Returns:
            A result of interactions §5.4.

        Raises:
            CanonError: Canon could not be asked; the entry waits for a later attempt.
            LedgerError: the ledger cannot be used.
        """
        lease = self.lease(ev.CONSUME_LEASE_MS)
        try:
            step = await self.happen(approval_id, ev.Claim(self._clock.now_ms(), lease))
            if step.row == "foreign":
                return outcomes.unknown({"approvalId": approval_id}, outcomes.NOTE_FOREIGN)
            if step.outcome != "claimed" or step.entry is None:
                return outcomes.told(step, approval_id)
            reading = await self._ask(canon, step.entry, lease, wake=wake)
        except LedgerError:
            raise
        except BaseException:
            # Cancellation included: without a lease of ours this changes nothing (T15).
            await self._give_back(approval_id, lease)
            raise
        finished = await self.happen(approval_id, reading.event)
        return reading.result if finished.outcome == "finished" else outcomes.told(finished, approval_id)

    async def _ask(self, canon: InteractionPort, entry: Entry, lease: ev.Lease, *, wake: bool) -> outcomes.Reading:
        body = {
            "interactionKind": "approval",
            "conversationId": entry["conversationId"],
            "approvalId": entry["approvalId"],
        }
        try:
            answer = await canon.consume_interaction(body)
        except CanonApiError as error:
            if not outcomes.is_gone(error):
                raise
            return outcomes.read_gone(entry, lease, self.identity, now=self._clock.now_ms())
        return outcomes.read_answer(entry, answer, lease, now=self._clock.now_ms(), wake=wake)

    async def _give_back(self, approval_id: str, lease: ev.Lease) -> None:
        event = ev.FinishPending(self._clock.now_ms(), lease.claim_id, reconcile=True)
        with suppress(LedgerError):  # the lease runs out by itself (K11)
            await asyncio.shield(self.happen(approval_id, event))
