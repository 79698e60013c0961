"""What reaches people outside any turn: notifications, command replies, late texts (turns §10; H8, H9, H11).

Decides the marks of such a text and what a failure means for its caller. Every operation has an identity of its own,
used once, so an unsettled one never blocks the next. Refuses to know which calls are out of turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import replace
from typing import Any

from canon_hermes_plugin.domain.turns.delivery import Operation
from canon_hermes_plugin.domain.turns.dispatch import Dispatch
from canon_hermes_plugin.domain.turns.model import Ack, HostText
from canon_hermes_plugin.domain.turns.plan import COMPLETE, PROGRESS, Answer, operation_id, plan
from canon_hermes_plugin.domain.turns.settling import End, Settling
from canon_hermes_plugin.domain.turns.world import World
from canon_hermes_plugin.ports.errors import DeliveryError

_REMEMBERED = 256
"""Named operations kept to answer their repetition."""

_log = logging.getLogger(__name__)


def text_answer(text: HostText, *, aside: bool) -> Answer:
    """Return what an out-of-turn text says; ``aside`` marks one that must wake nobody beside a running turn (H9)."""
    metadata: dict[str, Any] = dict(text.metadata)
    if text.job_id:
        metadata = {**metadata, "hermes": {"job_id": text.job_id}}
    return Answer(
        text.content,
        reply_to=text.reply_to,
        marks=PROGRESS if aside else COMPLETE,
        metadata=metadata,
        options=text.options,
    )


class OutsideDelivery:
    """Delivers one-shot operations."""

    def __init__(self, world: World, dispatch: Dispatch, settling: Settling) -> None:
        self._world = world
        self._dispatch = dispatch
        self._settling = settling
        self._named: OrderedDict[str, Ack] = OrderedDict()

    async def deliver(self, conversation_id: str, answer: Answer, *, token: str | None = None) -> Ack:
        """Deliver ``answer`` now.

        Args:
            conversation_id: where to.
            answer: what to say.
            token: what the identity derives from; random by default. The same token names the same operation.

        Returns:
            ``ok`` when everything is stored, or when a part of it is or may be and the rest is being settled in the
            background: the host must not say it again (field faults 9, 33, 88). Not ``ok`` when it provably is not.
        """
        if token is not None and (known := self._named.get(token)) is not None:
            return replace(known, facts={"duplicateFinal": True})
        ack = await self._deliver(conversation_id, answer, token or f"once:{self._world.ids.hex(32)}")
        if token is not None and ack.ok:
            self._named[token] = ack
            if len(self._named) > _REMEMBERED:
                self._named.popitem(last=False)
        return ack

    async def _deliver(self, conversation_id: str, answer: Answer, token: str) -> Ack:
        base_id = operation_id(conversation_id, token, 1)
        operation = Operation(plan(replace(answer, turn_id=None), conversation_id, base_id))
        if not operation.messages:
            return Ack(ok=True, message_id=base_id, facts={"empty": True})
        try:
            await self._dispatch.send(operation)
        except DeliveryError as error:
            _log.warning("out-of-turn delivery id=%s failed: %s", base_id, error.certainty)
            if error.certainty == "ambiguous" or (operation.receipts and error.retryable):
                self._settling.start(operation, _over)
                return Ack(ok=True, message_id=base_id, facts={"settling": True})
            await self._dispatch.forget(operation)
            return Ack(ok=False, error=str(error), retryable=error.retryable)
        except asyncio.CancelledError:
            # Part of it may be stored, and it is kept: said now or after the next start, so better now.
            self._settling.start(operation, _over)
            raise
        return Ack(ok=True, message_id=operation.receipts[-1].message_id or base_id)


async def _over(end: End) -> bool:
    return end != "unreachable"
