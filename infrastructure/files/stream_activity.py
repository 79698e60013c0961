"""Notes when the gateway last heard of Canon, in a small file of the Hermes profile, for the doctor to read.

It carries two numbers and a word, never an event. Losing it costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from canon_hermes_plugin.domain.host_config import is_mapping
from canon_hermes_plugin.infrastructure.files.atomic import write_atomic
from canon_hermes_plugin.ports.canon_stream import StreamHealth
from canon_hermes_plugin.ports.time import Clock

FILE_NAME = "canon-stream.json"


@dataclass(frozen=True, slots=True)
class StreamActivity:
    """``last_byte_at``: milliseconds since the epoch, ``None`` when nothing arrived yet."""

    state: str
    last_byte_at: int | None


class StreamActivityFile:
    """The note of one Hermes profile. Blocking: on an event loop, call it in a thread."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE_NAME

    def note(self, health: StreamHealth, clock: Clock) -> None:
        """Replace the note. Raises OSError when the profile's home cannot be written."""
        last = health.last_byte_at
        at = None if last is None else clock.now_ms() - round((clock.monotonic() - last) * 1000)
        document = {"state": health.state.value, "lastByteAt": at}
        write_atomic(self._path, json.dumps(document, sort_keys=True).encode("utf-8"))

    def read(self) -> StreamActivity | None:
        """Return the note, ``None`` when there is none that can be read."""
        try:
            value: object = json.loads(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        document: Mapping[str, Any] = value if is_mapping(value) else {}
        at = document.get("lastByteAt")
        valid = isinstance(at, int) and not isinstance(at, bool)
        return StreamActivity(str(document.get("state", "")), at if valid else None)
