"""The host's calls for files, brought to the turn they belong to (hermes-host §3.6, turns §4.6).

Translates only. The file is read or downloaded here, bounded; what becomes of it is the turn's to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from canon_hermes_plugin.domain.turns.model import Ack
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.hermes import compat
from canon_hermes_plugin.infrastructure.hermes.compat import HostObject
from canon_hermes_plugin.infrastructure.hermes.media import Method, outgoing

if TYPE_CHECKING:
    from canon_hermes_plugin.infrastructure.hermes.services import Services


class MediaSurface:
    """The adapter's file methods; none of them raises."""

    if TYPE_CHECKING:

        @property
        def services(self) -> Services:
            """What outlives this instance."""
            ...

        async def _answer(self, offer: Callable[[Turn | None], Coroutine[Any, Any, Ack]]) -> HostObject: ...

    async def send_image(
        self, chat_id: str, image_url: str, caption: str | None = None, reply_to: str | None = None, **_: object
    ) -> HostObject:
        """Send the picture behind an address."""
        return await self._file(chat_id, image_url, "image", {"caption": caption, "reply_to": reply_to})

    async def send_animation(
        self, chat_id: str, animation_url: str, caption: str | None = None, reply_to: str | None = None, **_: object
    ) -> HostObject:
        """Send the animated picture behind an address."""
        return await self._file(chat_id, animation_url, "image", {"caption": caption, "reply_to": reply_to})

    async def send_image_file(
        self, chat_id: str, image_path: str, caption: str | None = None, reply_to: str | None = None, **_: object
    ) -> HostObject:
        """Send a local picture."""
        return await self._local(chat_id, image_path, "image", {"caption": caption, "reply_to": reply_to})

    async def send_voice(
        self, chat_id: str, audio_path: str, caption: str | None = None, reply_to: str | None = None, **_: object
    ) -> HostObject:
        """Send a local recording."""
        return await self._local(chat_id, audio_path, "audio", {"caption": caption, "reply_to": reply_to})

    async def send_video(
        self, chat_id: str, video_path: str, caption: str | None = None, reply_to: str | None = None, **_: object
    ) -> HostObject:
        """Send a local video."""
        return await self._local(chat_id, video_path, "video", {"caption": caption, "reply_to": reply_to})

    async def send_document(
        self,
        chat_id: str,
        file_path: str,
        caption: str | None = None,
        file_name: str | None = None,
        **rest: object,
    ) -> HostObject:
        """Send any local file."""
        changes = {"caption": caption, "file_name": file_name, "reply_to": rest.get("reply_to")}
        return await self._local(chat_id, file_path, "file", changes)

    async def _local(self, chat_id: str, path: str, method: Method, changes: Mapping[str, Any]) -> HostObject:
        # The host checks paths of an answer; a path that comes another way obeys the same policy (field row 85).
        allowed = compat.allowed_path(self, path)
        if allowed is None:
            return await self._answer(_refused)
        return await self._file(chat_id, allowed, method, changes)

    async def _file(self, chat_id: str, where: str, method: Method, changes: Mapping[str, Any]) -> HostObject:
        async def offer(turn: Turn | None) -> Ack:
            services = self.services
            media = await outgoing(services.fetcher, str(chat_id), where, method)
            present = {name: value for name, value in changes.items() if value}
            return await services.turns.media(turn, replace(media, **present))

        return await self._answer(offer)


async def _refused(_: Turn | None) -> Ack:
    return Ack(ok=False, error="the host does not allow this file to be sent")
