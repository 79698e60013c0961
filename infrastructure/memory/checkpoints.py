"""The twin of the checkpoint file: survives what the object survives."""

from __future__ import annotations

from typing import final

from canon_hermes_plugin.ports.checkpoints import Checkpoint
from canon_hermes_plugin.ports.errors import CheckpointError


@final
class MemoryCheckpoints:
    """Keeps the checkpoint as an attribute.

    Attributes:
        saved: what was saved last.
        full: let every save fail, as a full disk does.
    """

    def __init__(self, saved: Checkpoint | None = None) -> None:
        self.saved = saved
        self.full = False

    async def load(self) -> Checkpoint | None:
        return self.saved

    async def save(self, checkpoint: Checkpoint) -> None:
        if self.full:
            raise CheckpointError("no space left")
        self.saved = checkpoint
