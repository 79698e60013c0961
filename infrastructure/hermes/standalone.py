"""Delivers one notification without a gateway: ``hermes send``, scheduled jobs in a process of their own (turns §10).

Decides the destination and the order of uploads and parts. Each invocation has its own random identity: retries inside
it replay the same ids, two invocations never share one (field row 33). It refuses to know turns.
"""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from canon_hermes_plugin.domain.turns.delivery import Operation, transmit
from canon_hermes_plugin.domain.turns.plan import Answer, MediaItem, operation_id, plan
from canon_hermes_plugin.ports.canon import CanonApi, Upload
from canon_hermes_plugin.ports.errors import CanonPluginError
from canon_hermes_plugin.ports.time import IdSource

MAX_MEDIA_BYTES = 10 * 1024 * 1024
"""Bytes of one attachment."""

_KINDS = frozenset({"image", "audio", "video"})


class StandaloneError(CanonPluginError):
    """The notification cannot be delivered as asked; nothing was posted."""

    code: ClassVar[str] = "standalone"


@dataclass(frozen=True, slots=True)
class Notification:
    """What the host wants delivered.

    Attributes:
        text: the whole text; it is split here, never by the host (H24).
        target: the conversation, or ``None`` for the home channel.
        reply_to: the host's thread id.
        files: paths of attachments; all of them ride on the last part.
    """

    text: str
    target: str | None
    reply_to: str | None = None
    files: Sequence[Path] = ()


async def deliver(api: CanonApi, ids: IdSource, notification: Notification) -> str:
    """Deliver and return the last message's id. The caller closes ``api``.

    Raises:
        CanonPluginError: nothing, or only leading parts, are known to be posted.
    """
    target = notification.target
    if target is None:
        raise StandaloneError("no conversation given and no home channel configured")
    await api.verify()
    media = [await _upload(api, target, path) for path in notification.files]
    answer = Answer(notification.text, media=tuple(media), reply_to=notification.reply_to)
    base_id = operation_id(target, f"standalone:{ids.hex(32)}", 1)
    operation = Operation(plan(answer, target, base_id))
    if not operation.messages:
        raise StandaloneError("there is nothing to deliver")
    await transmit(api, operation)
    return operation.receipts[-1].message_id or base_id


async def _upload(api: CanonApi, target: str, path: Path) -> MediaItem:
    data = await asyncio.to_thread(read_bounded, path)
    mime = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    attachment = await api.upload(Upload(target, data, mime, path.name))
    kind = attachment.get("kind")
    return MediaItem(attachment, kind if isinstance(kind, str) and kind in _KINDS else "file")


def read_bounded(path: Path) -> bytes:
    """Return a file's bytes. Blocking.

    Raises:
        StandaloneError: it does not exist, cannot be read, or is longer than 10 MiB.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_MEDIA_BYTES + 1)
    except OSError as error:
        raise StandaloneError(f"{path.name} cannot be read ({type(error).__name__})") from None
    if len(data) > MAX_MEDIA_BYTES:
        raise StandaloneError(f"{path.name} is longer than {MAX_MEDIA_BYTES} bytes")
    return data


def media_path(item: Any) -> Path:  # noqa: ANN401 - a path or the host's (path, is_voice) pair
    """Return the path of one of the host's media items."""
    first = cast("Sequence[object]", item)[0] if isinstance(item, tuple | list) else item
    return Path(str(first)).expanduser()
