"""What a person is told when an answer could not be delivered (turns §14 H12)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from canon_hermes_plugin.domain.turns.delivery import Operation, transmit
from canon_hermes_plugin.domain.turns.plan import COMPLETE, Answer, operation_id, plan
from canon_hermes_plugin.domain.turns.settling import End, Settling
from canon_hermes_plugin.domain.turns.world import World
from canon_hermes_plugin.ports.canon import JsonObject
from canon_hermes_plugin.ports.errors import DeliveryError

NOTICE = "My answer could not be delivered. Please ask again."
NOTICE_MARKS: JsonObject = {**COMPLETE, "replyBehavior": "suppress_auto_reply"}
"""A notice ends the wait of a person but wakes no other agent."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notices:
    """Tells people what became of an answer that is not stored."""

    world: World
    settling: Settling

    async def tell_undelivered(self, conversation_id: str, turn_id: str, reply_to: str | None) -> bool:
        """Say that there was an answer, under an id of the turn's own.

        Without the turn's id, so that Canon keeps the preview's text.

        Returns:
            Whether that is stored, or may be and is being settled: the answer must not follow it then.
        """
        notice = Answer(NOTICE, reply_to=reply_to, marks=NOTICE_MARKS)
        operation = Operation(plan(notice, conversation_id, operation_id(conversation_id, f"notice:{turn_id}", 1)))
        try:
            await transmit(self.world.canon, operation)
        except DeliveryError as error:
            _log.error("the notice of turn=%s failed too: %s", turn_id, error.certainty)
            if not operation.doubtful:
                return False
            self.settling.start(operation, _over)
        return True


async def _over(end: End) -> bool:
    return end != "unreachable"
