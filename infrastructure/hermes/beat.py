"""What happens with each status publication besides it: the given work, then a note of the stream for the doctor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import final

from canon_hermes_plugin.infrastructure.files.stream_activity import StreamActivityFile
from canon_hermes_plugin.infrastructure.hermes.home import active_home
from canon_hermes_plugin.ports.canon_stream import CanonStream, StreamHealth
from canon_hermes_plugin.ports.errors import ConfigurationError
from canon_hermes_plugin.ports.time import Clock

_LOG = logging.getLogger(__name__)


@final
class StatusBeat:
    """One beat: ``work`` first; a note that cannot be written is logged and costs nothing else."""

    def __init__(self, work: Callable[[], Awaitable[None]], stream: CanonStream, clock: Clock) -> None:
        self._work = work
        self._stream = stream
        self._clock = clock

    async def __call__(self) -> None:
        try:
            await self._work()
        finally:
            await asyncio.to_thread(self._note, self._stream.health())

    def _note(self, health: StreamHealth) -> None:
        try:
            home = active_home().root
            if home.is_dir():
                StreamActivityFile(home).note(health, self._clock)
        except (ConfigurationError, OSError) as error:
            _LOG.debug("stream activity not noted: %s", error)
