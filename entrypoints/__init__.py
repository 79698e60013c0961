"""canon-hermes-plugin: connects Canon to the Hermes Agent gateway.

The package root is the public API. It loads neither the host nor the composition container: both come in only when they
are used.
"""

from __future__ import annotations

from canon_hermes_plugin.cards import RUNTIME_CARD_LIMITS, validate_card

__all__ = ["RUNTIME_CARD_LIMITS", "validate_card"]
