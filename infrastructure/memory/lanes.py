"""The twin of the host's sessions: remembers whose typing is paused, and answers what a test sets."""

from __future__ import annotations

from typing import final


@final
class MemoryLanes:
    """The host's sessions in this process.

    Attributes:
        paused: conversations whose typing refresh is paused.
        depth: waiting messages by session key.
        interleave: whether a running turn can take in another message.
    """

    def __init__(self) -> None:
        self.paused: set[str] = set()
        self.depth: dict[str, int] = {}
        self.interleave = True

    def pause_typing(self, conversation_id: str) -> None:
        self.paused.add(conversation_id)

    def resume_typing(self, conversation_id: str) -> None:
        self.paused.discard(conversation_id)

    def queue_depth(self, session_key: str) -> int:
        return self.depth.get(session_key, 0)

    def supports_interleave(self) -> bool:
        return self.interleave
