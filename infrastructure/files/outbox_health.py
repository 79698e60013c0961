"""Looks at the outboxes of a Canon home without reading what lies in them."""

from __future__ import annotations

import time
from pathlib import Path

from canon_hermes_plugin.domain.doctor.agent import OutboxFacts
from canon_hermes_plugin.infrastructure.files.outbox import DIRECTORY, SUFFIX


def outbox_facts(home: Path) -> OutboxFacts:
    """Return how many operations lie in the outboxes of ``home``, whoever they belong to, and the age of the oldest."""
    path = home / DIRECTORY
    written = [seconds for file in path.glob(f"*/*{SUFFIX}") if (seconds := _written(file)) is not None]
    oldest = max(0.0, time.time() - min(written)) if written else 0.0
    return OutboxFacts(str(path), len(written), oldest)


def _written(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:  # delivered meanwhile
        return None
