"""An agent's checkpoint in a file of its own under the Canon home: a cursor, message ids and a time, never a text.

Losing it costs what was written while no gateway ran; nothing else depends on it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import stat
from pathlib import Path
from typing import cast, final

from canon_hermes_plugin.domain.host_config import is_mapping
from canon_hermes_plugin.infrastructure.files.atomic import clean_strays, write_atomic
from canon_hermes_plugin.ports.checkpoints import Checkpoint
from canon_hermes_plugin.ports.errors import CheckpointError

_LOG = logging.getLogger(__name__)

_MAX_BYTES = 4 * 1024 * 1024
"""A larger file was not written here."""


@final
class FileCheckpoints:
    """One JSON file.

    Args:
        path: where it lies; private directories are made when it is first saved.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    async def load(self) -> Checkpoint | None:
        return await asyncio.to_thread(self._load)

    async def save(self, checkpoint: Checkpoint) -> None:
        await asyncio.to_thread(self._save, checkpoint)

    def _load(self) -> Checkpoint | None:
        clean_strays(self._path)
        try:
            if not stat.S_ISREG(self._path.stat().st_mode):
                raise ValueError("not a file")  # noqa: TRY301 - one way for everything unusable
            with self._path.open("rb") as file:
                raw = file.read(_MAX_BYTES + 1)
            return _decode(raw)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            _LOG.warning("the place on the stream in %s is not usable: %s", self._path, type(error).__name__)
            return None

    def _save(self, checkpoint: Checkpoint) -> None:
        document = {"cursor": checkpoint.cursor, "done": checkpoint.done, "heardAt": checkpoint.heard_at}
        data = json.dumps(document).encode("ascii")
        if len(data) > _MAX_BYTES:
            raise CheckpointError(f"{len(data)} bytes are more than {self._path} may hold")
        try:
            write_atomic(self._path, data)
        except OSError as error:
            raise CheckpointError(
                f"{self._path} cannot be written: {error.strerror or type(error).__name__}"
            ) from error


def _decode(raw: bytes) -> Checkpoint:
    """Return the stored checkpoint; raises ValueError for anything else."""
    if len(raw) > _MAX_BYTES:
        raise ValueError("too large")
    document: object = json.loads(raw)
    if not is_mapping(document):
        raise ValueError("not an object")
    cursor, done, heard_at = document.get("cursor"), document.get("done"), document.get("heardAt")
    if not (cursor is None or isinstance(cursor, str)) or isinstance(heard_at, bool) or not isinstance(heard_at, int):
        raise ValueError("cursor or time of the wrong type")
    ids = cast("list[object]", done) if isinstance(done, list) else [None]
    if not all(isinstance(item, str) for item in ids):
        raise ValueError("ids of the wrong type")
    return Checkpoint(cursor, tuple(map(str, ids)), heard_at)
