"""canon-hermes-plugin: connects Canon to the Hermes Agent gateway.

The package root is the public API. It loads neither the host nor the composition container nor the HTTP client: each
comes in only when it is used.
"""

from __future__ import annotations

from typing import Any

from canon_hermes_plugin.api import (
    CanonInboundMedia,
    CanonTurnContext,
    check_detached_approval,
    current_canon_inbound_media,
    current_canon_turn,
    request_card_for_current_human,
    request_detached_approval_for_current_human,
    send_card_to_current_conversation,
    upload_media_for_current_conversation,
)
from canon_hermes_plugin.cards import RUNTIME_CARD_LIMITS, validate_card

__all__ = [
    "RUNTIME_CARD_LIMITS",
    "CanonInboundMedia",
    "CanonTurnContext",
    "check_detached_approval",
    "current_canon_inbound_media",
    "current_canon_turn",
    "register",
    "request_card_for_current_human",
    "request_detached_approval_for_current_human",
    "send_card_to_current_conversation",
    "upload_media_for_current_conversation",
    "validate_card",
]


def register(ctx: Any) -> None:  # noqa: ANN401 - the host's untyped plugin context
    """Offer this plugin to the host; see :func:`canon_hermes_plugin.plugin.register`."""
    from canon_hermes_plugin.plugin import register as register_plugin

    register_plugin(ctx)
