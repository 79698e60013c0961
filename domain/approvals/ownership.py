"""Whose entry it is when several agents of one user share a ledger (interactions §9.10, D5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from canon_hermes_plugin.ports.approvals import Entry

Ownership = Literal["own", "foreign", "unbound"]


@dataclass(frozen=True, slots=True)
class LedgerIdentity:
    """Who this process acts for. Unknown parts are ``None``.

    Attributes:
        agent_id: of the resolved profile, else what the connected adapter learned.
        key_fingerprint: first 16 hex digits of SHA-256 of the API key.
        shared: the profile store holds more than one usable profile, so an unbound entry may be somebody else's.
    """

    agent_id: str | None = None
    key_fingerprint: str | None = None
    shared: bool = False


def ownership(entry: Entry, identity: LedgerIdentity) -> Ownership:
    """Return whose ``entry`` is: foreign only when both sides name an agent and the names differ."""
    agent = entry.get("agentId")
    if agent and identity.agent_id:
        return "own" if agent == identity.agent_id else "foreign"
    fingerprint = entry.get("keyFingerprint")
    if fingerprint and fingerprint == identity.key_fingerprint:
        return "own"
    return "unbound"
