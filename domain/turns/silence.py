"""Silence: the agent's choice to end a turn without a word (turns §7).

Decides whether a turn may say something. Refuses to know who asked for silence and how nodes are blanked. The flag is
part of its turn, so it can neither outlive the turn nor hit another one.
"""

from __future__ import annotations

import re

_MARKER_CHARS = 64
_EDGES = " \t\r\n.,;:!?*_`'\"<>()"
_MARKERS = frozenset({"no_reply", "no reply", "silent", "[silent]"})
_SPACE = re.compile(r"\s+")


def is_silence_marker(text: str) -> bool:
    """Return whether the whole of ``text`` is one of the host's own markers for saying nothing (hermes-host §4.4)."""
    if len(text) > _MARKER_CHARS:
        return False
    return _SPACE.sub(" ", text.strip(_EDGES)).lower() in _MARKERS


class Silence:
    """The silence flag of one turn."""

    def __init__(self) -> None:
        self._requested = False
        self._marked = False

    @property
    def active(self) -> bool:
        """Whether nothing of the turn may be shown or delivered."""
        return self._requested or self._marked

    def request(self) -> None:
        """The agent asked for silence; repeating changes nothing."""
        self._requested = True

    def mark(self, final_text: str) -> None:
        """Learn the run's final text: the host posts nothing when it is a silence marker, so the node must go blank."""
        self._marked = is_silence_marker(final_text)

    def lift(self) -> None:
        """A human joined the running turn: the new request deserves an answer."""
        self._requested = self._marked = False
