"""Where a process leaves off reading Canon's stream, kept for the next one (canon-wire §5.3; field rows 65, 67)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything before the cursor is done, and the named messages after it. Ids only, never a text.

    Attributes:
        cursor: what the next process asks after, as ``Last-Event-ID``; ``None`` when nothing was read yet.
        done: ids of messages that need not be handled again, oldest first.
        heard_at: when Canon was last heard of, in milliseconds since the epoch.
    """

    cursor: str | None
    done: tuple[str, ...]
    heard_at: int


class CheckpointStore(Protocol):
    """Keeps one agent's checkpoint. One process writes it at a time."""

    async def load(self) -> Checkpoint | None:
        """Return what was saved last; ``None`` when there is nothing, or nothing that can be trusted. Never raises."""
        ...

    async def save(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint, durably and as a whole, before returning.

        Raises:
            CheckpointError: it was not stored; the one before is intact.
        """
        ...
