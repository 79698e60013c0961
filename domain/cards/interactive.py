"""Tells an interactive card from an actionless one (cards §6). Does not validate: any value has an answer."""

from __future__ import annotations

from canon_hermes_plugin.domain.cards.leaves import is_array, is_object


def interactive(card: object) -> bool:
    """Return True exactly when some block is of kind ``actions`` and holds a non-empty array of actions.

    An interactive card waits for an answer (``request_card``); an actionless one is only displayed (``send_card``).
    """
    blocks = card.get("blocks") if is_object(card) else None
    return is_array(blocks) and any(map(_asks, blocks))


def _asks(block: object) -> bool:
    if not is_object(block):
        return False
    kind, actions = block.get("kind"), block.get("actions")
    return isinstance(kind, str) and kind == "actions" and is_array(actions) and bool(actions)
