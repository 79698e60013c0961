"""Who may answer, and whether an answer came from them (interactions §2, §8).

Decides from trusted provenance only. No argument of the model reaches this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from canon_hermes_plugin.domain.interactions.sudo import is_sudo_command
from canon_hermes_plugin.ports.host import SessionSnapshot

PLATFORM: Final = "canon"
_OWNER_KINDS: Final = frozenset({"secret", "sudo"})


def trusted_user(snapshot: SessionSnapshot) -> str | None:
    """Return the human behind the running Canon turn, ``None`` for agents, other platforms and background work."""
    return snapshot.user_id if snapshot.platform == PLATFORM else None


def active_conversation(snapshot: SessionSnapshot) -> str | None:
    """Return the conversation of the running Canon turn."""
    return snapshot.conversation_id if snapshot.platform == PLATFORM else None


def responder_of(captured: str | None, trusted: str | None) -> tuple[str | None, bool]:
    """Return the responder and whether both sources named different people: what was captured at the start wins."""
    return captured or trusted, bool(captured and trusted and captured != trusted)


def is_owner_only(kind: object, sensitive: object, questions: object) -> bool:
    """Return whether only the owner may see and answer an input (interactions §8.2)."""
    if isinstance(kind, str) and kind.strip().lower() in _OWNER_KINDS:
        return True
    return sensitive is True or any(question.get("isSecret") is True for question in _objects(questions))


def exec_responder(command: str, responder: str | None) -> str | None:
    """Return who decides about a command; ``None`` leaves it to the owner, as for everything under ``sudo``."""
    return None if is_sudo_command(command) else responder


def may_offer_session_rule(responder: str | None, owner: str | None, *, smart_denied: bool) -> bool:
    """Return whether an answer may hold for the whole session: the owner decides, and the host allows it (§8.4)."""
    return not smart_denied and (responder is None or responder == owner)


def is_stranger(expected: str | None, answer: Mapping[str, Any]) -> bool:
    """Return whether a named responder was asked and somebody else answered (D20). A missing name is accepted."""
    given = answer.get("respondedBy")
    if not expected or given is None or given == "":
        return False
    return not isinstance(given, str) or given.strip() != expected


def _objects(value: object) -> Iterable[Mapping[str, Any]]:
    if not isinstance(value, list | tuple):
        return []
    items = cast("Iterable[object]", value)
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]
