"""Files the host sends (turns §4.6, H10).

Decides that a file of a turn is uploaded at once but delivered with the turn's answer, and what its attachment says.
Refuses to know where the bytes come from.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from canon_hermes_plugin.domain.turns.model import HostMedia
from canon_hermes_plugin.domain.turns.plan import MediaItem
from canon_hermes_plugin.domain.turns.world import World
from canon_hermes_plugin.ports.canon import JsonObject, Upload
from canon_hermes_plugin.ports.errors import CanonError

RETRY_PAUSES = (0.4, 0.8, 2.0, 8.0)
"""Seconds before each repetition of an upload: storing the same bytes twice harms nobody. They outlast a restart of
Canon: the answer waits for its files, and in that time nothing could be delivered anyway."""

_VISIBLE_KINDS = frozenset({"image", "audio", "video"})

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PendingMedia:
    """A file of a turn: its id for the host, and its attachment once uploaded, or ``None`` when that failed."""

    id: str
    uploaded: asyncio.Future[MediaItem | None]


class MediaUploads:
    """Uploads files. Used by the gateway loop only."""

    def __init__(self, world: World) -> None:
        self._world = world

    def begin(self, media_id: str, media: HostMedia) -> PendingMedia:
        """Start an upload in the background."""
        pending = PendingMedia(media_id, asyncio.get_running_loop().create_future())

        async def work() -> None:
            item: MediaItem | None = None
            try:
                item = await self.upload(media)
            except CanonError as error:
                _log.warning("upload of %s failed: %s", media_id, type(error).__name__)
            finally:
                if not pending.uploaded.done():
                    pending.uploaded.set_result(item)

        self._world.tasks.spawn(work(), name=f"upload {media_id}")
        return pending

    async def upload(self, media: HostMedia) -> MediaItem:
        """Upload a file now.

        Raises:
            CanonError: Canon did not take it.
        """
        upload = Upload(media.conversation_id, media.data, media.mime_type, media.file_name)
        for pause in RETRY_PAUSES:
            try:
                return media_item(media, await self._world.canon.upload(upload))
            except CanonError as error:
                if not error.retryable:
                    raise
            await self._world.clock.sleep(pause)
        return media_item(media, await self._world.canon.upload(upload))


async def collect(pending: Sequence[PendingMedia]) -> tuple[tuple[MediaItem, ...], int]:
    """Wait for a turn's uploads; return the files in order and how many are missing."""
    items = [await one.uploaded for one in pending]
    present = tuple(item for item in items if item is not None)
    return present, len(items) - len(present)


def media_item(media: HostMedia, attachment: JsonObject) -> MediaItem:
    """Return the attachment as it is sent, its kind and duration corrected (canon-wire §1.7)."""
    fixed = dict(attachment)
    if media.mime_type.startswith("video/"):
        fixed["kind"] = "video"
    elif media.method == "image" and media.mime_type.startswith("image/"):
        fixed["kind"] = "image"
    if fixed.get("kind") == "audio" and media.duration_ms is not None:
        fixed["durationMs"] = media.duration_ms
    kind = fixed.get("kind")
    return MediaItem(fixed, kind if kind in _VISIBLE_KINDS else media.method, media.caption or "")
