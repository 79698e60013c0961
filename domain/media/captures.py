"""Keeps the bytes of recent messages for trusted tools (turns §9.5).

It decides what is held, for how long, and that a message's set is held whole or not at all. Thread-safe: it is written
from the event loop and read from tool threads. It refuses to know which context asks: whoever reads passes the key of
its own message.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from canon_hermes_plugin.domain.reading import inert
from canon_hermes_plugin.ports.media import MAX_MEDIA_BYTES

MESSAGES: Final = 128
TOTAL_BYTES: Final = 64 * 1024 * 1024
MESSAGE_ATTACHMENTS: Final = 16
MESSAGE_BYTES: Final = 32 * 1024 * 1024
IDLE_SECONDS: Final = 3600.0
KEY_CHARS: Final = 256

_FIELD_CHARS: Final = 255
_FALLBACK_NAME: Final = "canon-media.bin"


@dataclass(frozen=True, slots=True)
class CapturedMedia:
    """One attachment as it was received. The bytes' origin is trusted, type and name only describe.

    Attributes:
        message_id: the Canon message it came with.
        index: its place among the message's attachments, from 0.
        mime_type: bare and lower-cased.
        file_name: a single path component.
        data: the bytes.
    """

    message_id: str
    index: int
    mime_type: str
    file_name: str
    data: bytes

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self.data)


@dataclass(frozen=True, slots=True)
class Capture:
    """One attachment offered to the store."""

    index: int
    data: bytes
    mime_type: str
    file_name: str = ""


@dataclass(slots=True)
class _Held:
    items: tuple[CapturedMedia, ...]
    size: int
    touched: float


class CaptureStore:
    """The process's captured media. ``monotonic`` gives seconds on a clock that never goes back."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, str], _Held] = OrderedDict()
        self._bytes = 0

    def register(self, conversation_id: str, message_id: str, captures: Sequence[Capture]) -> bool:
        """Hold the whole set of a message in place of any earlier one.

        One invalid item, or a bound exceeded, and nothing is held.

        Returns:
            Whether a non-empty set is held now.
        """
        key = _key(conversation_id, message_id)
        if key is None:
            return False
        items = _validated(key[1], captures)
        with self._lock:
            self._drop(key)
            if items:
                size = sum(item.size for item in items)
                self._held[key] = _Held(items, size, self._monotonic())
                self._bytes += size
            self._evict()
            return key in self._held

    def read(self, conversation_id: str, message_id: str) -> tuple[CapturedMedia, ...]:
        """Return the whole set held for a message; empty when there is none. Reading keeps it alive."""
        key = _key(conversation_id, message_id)
        with self._lock:
            self._evict()
            held = self._held.get(key) if key is not None else None
            if key is None or held is None:
                return ()
            held.touched = self._monotonic()
            self._held.move_to_end(key)
            return held.items

    def discard(self, conversation_id: str, message_id: str) -> None:
        """Forget a message's set: its turn is over."""
        key = _key(conversation_id, message_id)
        if key is not None:
            with self._lock:
                self._drop(key)

    def usage(self) -> tuple[int, int]:
        """Return how many messages and bytes are held."""
        with self._lock:
            return len(self._held), self._bytes

    def _drop(self, key: tuple[str, str]) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= held.size

    def _evict(self) -> None:
        oldest = self._monotonic() - IDLE_SECONDS
        while self._held:
            key = next(iter(self._held))
            if self._held[key].touched >= oldest and len(self._held) <= MESSAGES and self._bytes <= TOTAL_BYTES:
                return
            self._drop(key)


def _key(conversation_id: str, message_id: str) -> tuple[str, str] | None:
    key = conversation_id.strip(), message_id.strip()
    return key if all(1 <= len(part) <= KEY_CHARS for part in key) else None


def _validated(message_id: str, captures: Sequence[Capture]) -> tuple[CapturedMedia, ...]:
    """Return the items as they are stored, or none at all."""
    if len(captures) > MESSAGE_ATTACHMENTS or sum(len(item.data) for item in captures) > MESSAGE_BYTES:
        return ()
    items = [_stored(message_id, item) for item in captures]
    return tuple(item for item in items if item is not None) if None not in items else ()


def _stored(message_id: str, item: Capture) -> CapturedMedia | None:
    mime = item.mime_type.partition(";")[0].strip().lower()
    if not 1 <= len(item.data) <= MAX_MEDIA_BYTES or item.index < 0:
        return None
    if "/" not in mime or len(mime) > _FIELD_CHARS or not mime.isprintable():
        return None
    name = inert(item.file_name.replace("\\", "/").rpartition("/")[2], _FIELD_CHARS)
    return CapturedMedia(message_id, item.index, mime, _FALLBACK_NAME if name in {"", ".", ".."} else name, item.data)
