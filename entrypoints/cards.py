"""Cards, for users: check a ``canon.card.v1`` document before it is sent. Standard library only; needs no host."""

from __future__ import annotations

from canon_hermes_plugin.domain.cards.interactive import interactive
from canon_hermes_plugin.domain.cards.limits import MAX_CARD_BYTES, RUNTIME_CARD_LIMITS
from canon_hermes_plugin.domain.cards.validate import CardVerdict, validate_card

__all__ = ["MAX_CARD_BYTES", "RUNTIME_CARD_LIMITS", "CardVerdict", "interactive", "validate_card"]
