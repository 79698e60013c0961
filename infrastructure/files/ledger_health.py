"""Looks at the approvals ledger without opening, locking or changing anything."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from canon_hermes_plugin.domain.approvals.ledger import decode
from canon_hermes_plugin.domain.doctor.agent import LedgerFacts
from canon_hermes_plugin.infrastructure.files.approval_store import LEDGER_NAME
from canon_hermes_plugin.infrastructure.files.atomic import strays
from canon_hermes_plugin.ports.errors import LedgerError


def ledger_facts(home: Path) -> LedgerFacts:
    """Return the ledger's health: entries by state, stray files, or why it cannot be read."""
    path = home / LEDGER_NAME
    left = len(strays(path))
    try:
        entries = decode(path.read_bytes())
    except FileNotFoundError:
        return LedgerFacts(str(path), strays=left)
    except (OSError, LedgerError) as error:
        return LedgerFacts(str(path), problem=str(error), strays=left)
    counts = Counter(str(entry.get("status", "unknown")) for entry in entries.values())
    return LedgerFacts(str(path), counts=dict(counts), strays=left)
