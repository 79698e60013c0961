"""Carries decisions to the model: receipts, the periodic scan, the start-up reconcile and wakes (§9.7 to §9.10).

Works while it is open, which is as long as a connection. It orders the steps and trusts no receipt: whatever one says,
the decision comes from the canonical consume. Nothing here raises into the event stream (D9).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, final

from canon_hermes_plugin.domain.approvals import events as ev
from canon_hermes_plugin.domain.approvals import outcomes, recovery
from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.approvals.ledger import text_of
from canon_hermes_plugin.domain.approvals.transitions import lease_is_live, state_of
from canon_hermes_plugin.ports.approvals import Entry
from canon_hermes_plugin.ports.canon import InteractionPort
from canon_hermes_plugin.ports.errors import CanonError, LedgerError
from canon_hermes_plugin.ports.host import HostInbox, InboundMessage
from canon_hermes_plugin.ports.time import Clock, Tasks

logger = logging.getLogger(__name__)

_FIRST_WAIT: Final = 0.25
_LONGEST_WAIT: Final = 5.0
_SHORTEST_WAIT: Final = 0.05


@dataclass(frozen=True, slots=True)
class ChatFacts:
    """How a conversation is known to the host: its kind and display name."""

    kind: Literal["direct", "group"] = "direct"
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ReceiverPorts:
    """Where to ask, whom to wake, and who runs the work."""

    canon: InteractionPort
    inbox: HostInbox
    tasks: Tasks


@final
class ApprovalReceiver:
    """Takes receipts and finishes what earlier processes left open.

    Attributes:
        describe: how a conversation is known to the host; set when that is known.
    """

    def __init__(self, desk: ApprovalDesk, ports: ReceiverPorts, clock: Clock) -> None:
        self.describe: Callable[[str], ChatFacts] = lambda _: ChatFacts()
        self._desk = desk
        self._on = ports
        self._clock = clock
        self._open = False
        self._resuming: set[str] = set()
        self._again: set[str] = set()
        self._backoff = recovery.ScanBackoff()
        self._seen: dict[str, Mapping[str, Any]] = {}

    def open(self) -> None:
        """Begin to work: the connection is up."""
        self._open = True

    def close(self) -> None:
        """Stop starting work: the connection is over. Running work is its owner's to end."""
        self._open = False

    async def offer(self, payload: Mapping[str, Any]) -> bool:
        """Take one inbound payload; see :class:`canon_hermes_plugin.ports.approvals.ApprovalReceipts`."""
        approval_id = receipt_id(payload)
        if approval_id is None:
            return False
        try:
            step = await self._desk.happen(approval_id, ev.ReceiptSeen(self._clock.now_ms()))
            if step.entry is None:
                return False
        except LedgerError as error:
            logger.debug("canon approval %s: receipt dropped (%s)", approval_id, error.code)
            return False
        if step.outcome == "noted":
            self._seen[approval_id] = payload
            self._resume(approval_id)
        return True

    async def scan(self) -> None:
        """Start work for every entry that waits for some (interactions §9.8). Never raises."""
        try:
            entries = await self._desk.mine()
        except LedgerError as error:
            logger.debug("canon approvals: scan skipped (%s)", error.code)
            return
        for approval_id in self._backoff.due(entries, self._clock.now_ms()):
            self._resume(approval_id)

    async def reconcile(self) -> None:
        """Settle what an earlier process left, until no lease of somebody else is open (interactions §9.10)."""
        await self._desk.tidy()
        counts: Counter[str] = Counter()
        try:
            watched = recovery.watch(await self._desk.mine())
            while self._open:
                await self._round(await self._desk.mine(), counts)
                look = recovery.look_again(await self._desk.mine(), watched, self._clock.now_ms())
                watched = look.watched
                if look.sleep is None:
                    break
                await self._clock.sleep(look.sleep)
        except LedgerError as error:
            logger.debug("canon approvals: reconcile skipped (%s)", error.code)
        if counts:
            logger.info("canon approvals: reconcile %s", dict(sorted(counts.items())))

    async def _round(self, entries: list[Entry], counts: Counter[str]) -> None:
        for approval_id in recovery.to_consume(entries):
            counts[await self._consume_and_wake(approval_id)] += 1
        for approval_id in recovery.to_wake(entries):
            await self._wake(approval_id)

    def _resume(self, approval_id: str) -> None:
        """Start the one task that carries this approval on (I40)."""
        if approval_id in self._resuming:
            # The running task may already have asked: it asks once more, or a receipt would wait for the scan (I15).
            self._again.add(approval_id)
            return
        if not self._open:
            return
        self._resuming.add(approval_id)
        self._on.tasks.spawn(self._carry_on(approval_id), name=f"canon-approval-{approval_id}")

    async def _carry_on(self, approval_id: str) -> None:
        try:
            await self._resume_steps(approval_id)
            while approval_id in self._again:
                self._again.discard(approval_id)
                await self._resume_steps(approval_id)
        except LedgerError as error:
            logger.debug("canon approval %s: resume ended (%s)", approval_id, error.code)
        finally:
            self._resuming.discard(approval_id)
            self._again.discard(approval_id)
            self._seen.pop(approval_id, None)

    async def _resume_steps(self, approval_id: str) -> None:
        wait = _FIRST_WAIT
        while self._open:
            entry = await self._desk.find(approval_id)
            state = state_of(entry)
            if entry is None or state in {"expired", "orphaned", "resolved", "resolved/delivered"}:
                return
            now = self._clock.now_ms()
            if state == "creating" and lease_is_live(entry, now):
                left = (entry["createClaimExpiresAt"] - now) / 1000
                await self._clock.sleep(min(wait, max(_SHORTEST_WAIT, left)))
                wait = min(wait * 2, _LONGEST_WAIT)
                continue
            if state in {"resolved/pending", "resolved/delivering"}:
                await self._wake(approval_id)
            elif await self._consume_and_wake(approval_id) != "resolved":
                self._backoff.asked(approval_id, self._clock.now_ms())
            return

    async def _consume_and_wake(self, approval_id: str) -> str:
        try:
            result = await self._desk.consume(self._on.canon, approval_id, wake=True)
        except (CanonError, LedgerError) as error:
            logger.debug("canon approval %s: consume failed (%s)", approval_id, error.code)
            return "error"
        if result["status"] == "resolved":
            await self._wake(approval_id)
        return str(result["status"])

    async def _wake(self, approval_id: str) -> None:
        """Hand a stored decision to the model, once per claim (interactions §9.9)."""
        lease = self._desk.lease(ev.WAKE_LEASE_MS)
        step = await self._desk.happen(approval_id, ev.ClaimWake(self._clock.now_ms(), lease))
        if step.outcome != "claimed" or step.entry is None:
            return
        delivered = False
        try:
            event = self._wake_event(step.entry)
            await self._on.inbox.hand_over(event)
            delivered = True
        except Exception as error:  # noqa: BLE001 - §9.9: whatever the host raises, the wake stays due
            logger.warning("canon approval %s: wake failed (%s)", approval_id, type(error).__name__)
        finally:
            # Also on cancellation, which goes on after this.
            finish = ev.FinishWake(self._clock.now_ms(), lease.claim_id, delivered)
            await self._desk.happen(approval_id, finish)

    def _wake_event(self, entry: Entry) -> InboundMessage:
        approval_id, conversation = str(entry["approvalId"]), str(entry["conversationId"])
        payload = self._seen.get(approval_id)
        message = _message_of(payload or {})
        facts = self.describe(conversation)
        made = {
            "conversationId": conversation,
            "canonDetachedApproval": {"approvalId": approval_id, "decision": entry["decision"]},
        }
        return InboundMessage(
            conversation_id=conversation,
            text=outcomes.wake_text(entry),
            chat_kind=facts.kind,
            chat_name=facts.name,
            user_id=text_of(entry.get("respondedBy")) or text_of(message.get("senderId")) or "canon-approval",
            user_name=text_of(message.get("senderName")) or "Canon",
            message_id=f"canon-detached-approval:{approval_id}",
            synthetic=True,
            raw=payload or made,
        )


def receipt_id(payload: Mapping[str, Any]) -> str | None:
    """Return the approval id when the payload has the form of a receipt, whatever else it says."""
    metadata = _message_of(payload).get("metadata")
    if not isinstance(metadata, Mapping):
        return None
    fields = cast("Mapping[str, Any]", metadata)
    if fields.get("type") != "approval_reply":
        return None
    return text_of(fields.get("approvalId")) or None


def _message_of(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    message = payload.get("message")
    return cast("Mapping[str, Any]", message) if isinstance(message, Mapping) else {}
