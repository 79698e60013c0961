"""Asking for a detached approval: record first, then the network, then activate (interactions §9.3).

Decides the order that survives a crash anywhere. It knows neither how a client is built nor how the model asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, final

from canon_hermes_plugin.domain.approvals import events as ev
from canon_hermes_plugin.domain.approvals import outcomes
from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.approvals.ledger import text_of
from canon_hermes_plugin.domain.approvals.question import Question, creation_body
from canon_hermes_plugin.ports.approvals import Entry
from canon_hermes_plugin.ports.canon import InteractionPort
from canon_hermes_plugin.ports.errors import CanonApiError, CanonError, LedgerError
from canon_hermes_plugin.ports.time import Clock, IdSource

logger = logging.getLogger(__name__)

ID_DIGITS: Final = 20
OpenClient = Callable[[], AbstractAsyncContextManager[InteractionPort]]


@dataclass(frozen=True, slots=True)
class ApprovalOrder:
    """What to ask, where, whom and for how long (``timeout_ms``, already clamped)."""

    question: Question
    conversation_id: str
    responder: str | None
    timeout_ms: int


@final
class ApprovalCreation:
    """Creates detached approvals."""

    def __init__(self, desk: ApprovalDesk, clock: Clock, ids: IdSource) -> None:
        self._desk = desk
        self._clock = clock
        self._ids = ids

    async def request(self, order: ApprovalOrder, open_client: OpenClient) -> Mapping[str, Any]:
        """Ask and return the pending result of interactions §5.3.

        Raises:
            LedgerError: the ledger cannot be used, or the approval is unusable: nobody is waiting for it.
            CanonError: Canon refused or could not be reached; an unsettled create is recovered in the background.
        """
        approval_id = f"hermes-{self._ids.hex(ID_DIGITS)}"
        expires_at = self._clock.now_ms() + order.timeout_ms
        lease = self._desk.lease(ev.CREATE_LEASE_MS)
        await self._reserve(order, approval_id, expires_at, lease)
        client = open_client()
        try:
            canon = await client.__aenter__()
        except Exception as error:
            await self._give_up(approval_id, lease, f"no client: {type(error).__name__}")
            raise
        entry: Entry | None = None
        try:
            answer, expires_at = await self._create(canon, order, approval_id, expires_at, lease)
            entry = await self._activate(order, approval_id, answer, expires_at, lease)
            if entry["status"] != "pending":
                await self._withdraw(canon, entry)
        finally:
            await _close(client)
        if entry["status"] != "pending":
            raise LedgerError("Canon named no usable responder; the approval was withdrawn. This is not a denial.")
        result = outcomes.pending(entry) | {"note": outcomes.NOTE_PENDING}
        return result | {"responseUserId": entry["responseUserId"]}

    async def _reserve(self, order: ApprovalOrder, approval_id: str, expires_at: int, lease: ev.Lease) -> None:
        identity = self._desk.identity
        event = ev.Reserve(
            self._clock.now_ms(),
            approval_id,
            order.conversation_id,
            expires_at,
            lease,
            summary=order.question.ledger_summary,
            response_user_id=order.responder,
            agent_id=identity.agent_id,
            key_fingerprint=identity.key_fingerprint,
        )
        step = await self._desk.happen(approval_id, event)
        if step.outcome != "reserved":
            raise LedgerError("The approval's id is already in use")

    async def _create(
        self, canon: InteractionPort, order: ApprovalOrder, approval_id: str, expires_at: int, lease: ev.Lease
    ) -> tuple[Mapping[str, Any], int]:
        for first in (True, False):
            body = creation_body(
                order.question,
                conversation_id=order.conversation_id,
                approval_id=approval_id,
                expires_at=expires_at,
                responder=order.responder,
            )
            try:
                return await canon.create_interaction(body), expires_at
            except CanonApiError as error:
                verdict = outcomes.judge_create_failure(error, first=first, timeout_ms=order.timeout_ms)
                if verdict == "retry":
                    expires_at = self._clock.now_ms() + outcomes.RETRY_TIMEOUT_MS
                    continue
                if verdict == "rejected":
                    await self._give_up(approval_id, lease, f"rejected ({error.status_code})")
                raise
        raise AssertionError  # the second attempt returns or raises

    async def _activate(
        self, order: ApprovalOrder, approval_id: str, answer: Mapping[str, Any], requested: int, lease: ev.Lease
    ) -> Entry:
        event = ev.Activate(
            self._clock.now_ms(),
            lease.claim_id,
            outcomes.effective_expiry(answer, requested),
            text_of(answer.get("responseUserId")) or order.responder or "",
        )
        step = await self._desk.happen(approval_id, event)
        if step.outcome not in {"activated", "abandoned"} or step.entry is None:
            raise LedgerError("Recovery took the approval over while it was being created; check it later")
        return step.entry

    async def _withdraw(self, canon: InteractionPort, entry: Entry) -> None:
        """Take the question away from the person nobody listens to any more (D24)."""
        body = {
            "interactionKind": "approval",
            "conversationId": entry["conversationId"],
            "approvalId": entry["approvalId"],
            "cancel": True,
        }
        try:
            await canon.consume_interaction(body)
        except CanonError as error:
            logger.info("canon approval %s: withdrawal failed (%s)", entry["approvalId"], error.code)

    async def _give_up(self, approval_id: str, lease: ev.Lease, reason: str) -> None:
        try:
            await self._desk.happen(approval_id, ev.FailCreation(self._clock.now_ms(), lease.claim_id, reason))
        except LedgerError as error:
            logger.warning("canon approval %s: creation failure not recorded (%s)", approval_id, error.code)


async def _close(client: AbstractAsyncContextManager[InteractionPort]) -> None:
    try:
        await client.__aexit__(None, None, None)
    except (CanonError, OSError) as error:
        logger.debug("canon approvals: closing a client failed (%s)", type(error).__name__)
