"""Takes in the attachments of one admitted message (turns §9.2, H21): side by side, bounded, within a deadline.

It decides what the host gets, what trusted tools can read, and what the message says about the rest. Fail closed: one
protected attachment missing, and no bytes of the message are readable. It refuses to know transports and file systems.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from canon_hermes_plugin.domain.media import policy
from canon_hermes_plugin.domain.media.captures import MESSAGE_ATTACHMENTS, MESSAGE_BYTES, Capture, CaptureStore
from canon_hermes_plugin.domain.media.documents import (
    MAX_INLINE_BYTES,
    OPAQUE,
    TextDocument,
    read_out,
    text_document,
)
from canon_hermes_plugin.domain.media.signatures import image_mime
from canon_hermes_plugin.domain.reading import mapping
from canon_hermes_plugin.ports.errors import MediaError
from canon_hermes_plugin.ports.host import LocalMedia, MessageKind
from canon_hermes_plugin.ports.media import (
    MAX_MEDIA_BYTES,
    FetchedMedia,
    MediaCache,
    MediaFamily,
    MediaFetcher,
    MediaFile,
)
from canon_hermes_plugin.ports.time import Clock

_log = logging.getLogger(__name__)

PARALLEL: Final = 10
"""Downloads of all conversations together that run at the same time."""

ATTACHMENTS: Final = 32
"""Attachments of one message that are looked at; further ones count as not obtained."""

REASONS: Final = 4
"""Missing attachments of one message whose reasons the log tells."""

DEADLINE_SECONDS: Final = 60.0
"""How long a message waits for its attachments."""

_KINDS: Final[Mapping[MediaFamily, MessageKind]] = {
    "image": "photo",
    "audio": "voice",
    "video": "video",
    "document": "document",
}


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """What a message's attachments became.

    Attributes:
        media: files on the model's path, in the message's order.
        kinds: the host's kind of each of them.
        markers: what the text says about attachments the model does not see.
        documents: the content of text files, to stand before the text.
        stranded: trusted bytes are held that no steer could carry (turns §1.8).
    """

    media: tuple[LocalMedia, ...] = ()
    kinds: tuple[MessageKind, ...] = ()
    markers: str = ""
    documents: str = ""
    stranded: bool = False


@dataclass(slots=True)
class _Slot:
    """One attachment and what is known of it so far; ``done`` means obtained, else ``failure`` says why not."""

    facts: policy.Declared
    done: bool = False
    hidden: bool = False
    local: LocalMedia | None = None
    kind: MessageKind = "document"
    document: TextDocument | None = None
    failure: str = f"it took longer than {DEADLINE_SECONDS:g} s"


def _slots(attachments: Sequence[Any]) -> list[_Slot]:
    slots = [_Slot(policy.declared(mapping(item))) for item in attachments]
    for index, slot in enumerate(slots):
        if index >= ATTACHMENTS:
            slot.failure = f"only {ATTACHMENTS} are looked at"
        elif not slot.facts.url:
            slot.failure = "it has no address"
    return slots


def _told(slots: Sequence[_Slot]) -> str:
    """Return why attachments did not arrive, for one line of the log: no address, no name, so many reasons at most."""
    reasons = [
        f"no. {number} ({'size unknown' if slot.facts.size is None else f'{slot.facts.size} bytes'}): {slot.failure}"
        for number, slot in enumerate(slots, 1)
        if not slot.done
    ]
    more = [f"and {len(reasons) - REASONS} more"] if len(reasons) > REASONS else []
    return "; ".join([*reasons[:REASONS], *more])


def _readable(slots: Sequence[_Slot]) -> Sequence[TextDocument]:
    """Return the documents that are read out, in order; text files beyond the bound become opaque ones."""
    room, documents = MAX_INLINE_BYTES, list[TextDocument]()
    for slot in slots:
        if slot.document is not None and slot.document.size <= room:
            room -= slot.document.size
            documents.append(slot.document)
        elif slot.local is not None and slot.local.mime_type.startswith("text/"):
            slot.local = replace(slot.local, mime_type=OPAQUE)
    return documents


class _Captures:
    """The bytes of one message while it is taken in: all of them, or none once a bound is passed."""

    def __init__(self) -> None:
        self._items: list[Capture] = []
        self._bytes = 0
        self.overflow = False

    def add(self, item: Capture) -> None:
        """Keep ``item`` unless the message is beyond its bounds."""
        self._bytes += len(item.data)
        if self.overflow or len(self._items) >= MESSAGE_ATTACHMENTS or self._bytes > MESSAGE_BYTES:
            self.clear()
            self.overflow = True
        else:
            self._items.append(item)

    def clear(self) -> None:
        """Let go of all bytes."""
        self._items = []

    def ordered(self) -> Sequence[Capture]:
        """Return what is kept, in the message's order."""
        return sorted(self._items, key=lambda item: item.index)


class MediaIntake:
    """Downloads, sorts and registers attachments. Owned by one event loop."""

    def __init__(
        self,
        fetcher: MediaFetcher,
        cache: MediaCache,
        captures: CaptureStore,
        clock: Clock,
        protection: policy.Protection = "none",
    ) -> None:
        self._fetcher = fetcher
        self._cache = cache
        self._store = captures
        self._clock = clock
        self._protection: policy.Protection = protection
        self._slots = asyncio.Semaphore(PARALLEL)

    async def take(self, conversation_id: str, message_id: str | None, attachments: Sequence[Any]) -> IntakeResult:
        """Return what the message is handed over with. Never raises for what an attachment is or says.

        Args:
            conversation_id: the message's conversation.
            message_id: its id; without one no bytes are kept for trusted tools.
            attachments: the message's attachment list as received.
        """
        slots = _slots(attachments)
        kept = _Captures()
        await self._within_deadline(
            [self._obtain(index, slot, kept) for index, slot in enumerate(slots[:ATTACHMENTS]) if slot.facts.url]
        )
        missing = [slot for slot in slots if not slot.done]
        if missing:
            what = f"{len(missing)} of {len(slots)} attachments did not arrive"
            _log.warning("message %s of %s: %s: %s", message_id, conversation_id, what, _told(slots))
        unavailable = sum(policy.may_be_protected(self._protection, slot.facts) for slot in missing)
        hidden = sum(slot.hidden for slot in slots)
        if unavailable and self._protection != "none":
            kept.clear()
        if kept.overflow:
            _log.warning("message %s of %s: attachments exceed what is kept for tools", message_id, conversation_id)
        registered = message_id is not None and self._store.register(conversation_id, message_id, kept.ordered())
        outcome = policy.Outcome(hidden, unavailable, hidden if registered else 0)
        documents = _readable(slots)
        delivered: list[tuple[LocalMedia, MessageKind]] = [(slot.local, slot.kind) for slot in slots if slot.local]
        return IntakeResult(
            media=tuple(local for local, _ in delivered),
            kinds=tuple(kind for _, kind in delivered),
            markers=policy.markers(self._protection, outcome),
            documents=read_out(documents),
            stranded=registered and hidden > 0,
        )

    def discard(self, conversation_id: str, message_id: str) -> None:
        """Forget the bytes kept for a message that will have no turn."""
        self._store.discard(conversation_id, message_id)

    async def _within_deadline(self, downloads: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Run ``downloads`` side by side; those that outlast the deadline are cancelled and awaited."""
        if not downloads:
            return
        timer = asyncio.create_task(self._clock.sleep(DEADLINE_SECONDS))
        tasks = [asyncio.create_task(download) for download in downloads]
        pending = set(tasks)
        try:
            while pending and not timer.done():
                done, _ = await asyncio.wait({timer, *pending}, return_when=asyncio.FIRST_COMPLETED)
                pending -= done
                for task in done:
                    task.result()
        finally:
            for task in (timer, *tasks):
                task.cancel()
            await asyncio.gather(timer, *tasks, return_exceptions=True)

    async def _obtain(self, index: int, slot: _Slot, kept: _Captures) -> None:
        """Download one attachment and put it where it belongs; a failure leaves ``slot`` not done."""
        async with self._slots:
            try:
                fetched = await self._fetcher.fetch(slot.facts.url or "")
                await self._place(index, slot, fetched, kept)
            except MediaError as error:
                slot.failure = str(error)

    async def _place(self, index: int, slot: _Slot, fetched: FetchedMedia, kept: _Captures) -> None:
        data = fetched.data
        if not 0 < len(data) <= MAX_MEDIA_BYTES:
            raise MediaError(f"it has {len(data)} bytes; 1 to {MAX_MEDIA_BYTES} are taken")
        mime = policy.resolved_mime(slot.facts, fetched.mime_type, data)
        name = policy.file_name(slot.facts, mime)
        if policy.is_protected(self._protection, slot.facts, fetched.mime_type, data):
            slot.hidden = True
        else:
            file = await self._keep(slot, MediaFile(data, policy.family_of(mime), mime, name))
            slot.kind = _KINDS[file.family]
            slot.document = text_document(name, file.mime_type, data)
        slot.done = True
        kept.add(Capture(index, data, mime, name))

    async def _keep(self, slot: _Slot, file: MediaFile) -> MediaFile:
        """Store a file for the host and return what it was stored as.

        The host takes a few image formats only. Another real image (HEIC, AVIF, SVG, …) is still the sender's file: it
        is kept as an opaque document. What merely claims to be an image is refused.
        """
        try:
            slot.local = await self._cache.store(file)
        except MediaError:
            if file.family != "image" or image_mime(file.data) is None:
                raise
            file = replace(file, family="document", mime_type=OPAQUE)
            slot.local = await self._cache.store(file)
        return file
