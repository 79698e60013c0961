"""What a person is told when an answer could not be delivered (turns §14 H12)."""

from __future__ import annotations

import logging

from canon_hermes_plugin.domain.turns.delivery import Operation, transmit
from canon_hermes_plugin.domain.turns.plan import COMPLETE, Answer, operation_id, plan
from canon_hermes_plugin.ports.canon import JsonObject, MessageSink
from canon_hermes_plugin.ports.errors import DeliveryError

NOTICE = "My answer could not be delivered. Please ask again."
NOTICE_MARKS: JsonObject = {**COMPLETE, "replyBehavior": "suppress_auto_reply"}
"""A notice ends the wait of a person but wakes no other agent."""

_log = logging.getLogger(__name__)


async def tell_undelivered(sink: MessageSink, conversation_id: str, turn_id: str, reply_to: str | None) -> bool:
    """Say that there was an answer, under an id of the turn's own; return whether that is stored.

    Without the turn's id, so that Canon keeps the preview's text.
    """
    notice = Answer(NOTICE, reply_to=reply_to, marks=NOTICE_MARKS)
    base_id = operation_id(conversation_id, f"notice:{turn_id}", 1)
    try:
        await transmit(sink, Operation(plan(notice, conversation_id, base_id)))
    except DeliveryError as error:
        _log.error("the notice of turn=%s failed too: %s", turn_id, error.certainty)
        return False
    return True
