"""What of a turn's text is its answer (turns §3.3, §3.4; H1, H30, H31, H35).

The host shows text in *bubbles*: a marked send opens one, edits grow it, a finalize ends it. Each bubble becomes one
segment. Decides which segments form the answer. Refuses to know how the answer is cut, sent or shown, and takes no
lock: the owning turn serialises every call.

The rules, strongest first:

1. The host's own final text, once confirmed, picks the segments that spell it.
2. Text from before a tool call, or staged while one runs, is commentary.
3. Of the rest the last segment answers. An earlier one belongs to it only if the host appended it, or if it is so long
   that it can be a bubble the host closed because it overflowed.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from canon_hermes_plugin.domain.chunker import replace_lone_surrogates, utf8_len

SEAL_BYTES = 30_348
"""Half of the overflow limit in bytes: a shorter finalized bubble was never closed by overflow (H1)."""

HISTORY = 64
"""Segments kept per turn; older ones cannot matter any more unless they are part of the answer."""

CURSOR = "▉"
"""The glyph the host ends unfinished previews with."""

_DIRECTIVE = re.compile(r"MEDIA:\S+|\[\[\w+\]\]")
_LEADING_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


def sanitize(text: str) -> str:
    """Return ``text`` without the host's cursor glyph and with unpaired surrogates replaced (H13, H35)."""
    stripped = text.rstrip()
    if stripped.endswith(CURSOR):
        text = stripped[: -len(CURSOR)].rstrip(" ")
    return replace_lone_surrogates(text)


def tidy(text: str) -> str:
    """Return an answer without leading blank lines and trailing white space (H14)."""
    return _LEADING_BLANK_LINES.sub("", text.rstrip())


def _skeleton(text: str) -> str:
    """Return what must agree between shown and confirmed text: no white space, no delivery directives.

    Runs on the event loop over answers of a megabyte: no pattern is matched unless a directive can be there.
    """
    if "MEDIA:" in text or "[[" in text:
        text = _DIRECTIVE.sub("", text)
    return "".join(text.split())


@dataclass(slots=True)
class Segment:
    """One bubble.

    Attributes:
        bubble: the id the host edits it by.
        text: its whole text.
        finalized: whether the host closed it; sticky.
        appended: it came complete, outside the edit flow.
        past: a tool call began, or silence was lifted, after it was opened.
        during_tool: it was opened while a tool call ran.
    """

    bubble: str
    text: str
    finalized: bool = False
    appended: bool = False
    past: bool = False
    during_tool: bool = False

    @property
    def commentary(self) -> bool:
        """Whether it cannot be part of the answer unless the confirmed text says so."""
        return self.past or self.during_tool


def _join(segments: list[Segment]) -> str:
    """Rejoin segments: appended ones on their own line, overflowing ones without an added character (H30)."""
    text = ""
    for before, segment in zip([None, *segments], segments, strict=False):
        if before is not None and (before.appended or segment.appended):
            text += "\n"
        text += segment.text
    return text


class Output:
    """The segments of one turn.

    Args:
        turn_id: prefix of the bubble ids; the first bubble has the turn's own id.
        seal_bytes: the least UTF-8 size of a bubble that can have overflowed.
    """

    def __init__(self, turn_id: str, *, seal_bytes: int = SEAL_BYTES) -> None:
        self._turn_id = turn_id
        self._seal_bytes = seal_bytes
        self._segments: list[Segment] = []
        self._opened = 0
        self._running: Counter[str] = Counter()
        self._confirmed: str | None = None
        self._wanted = ""

    @property
    def confirmed(self) -> str | None:
        """The host's authoritative final text of the current run, if it told one."""
        return self._confirmed

    def owns(self, bubble: str) -> bool:
        """Return whether ``bubble`` names a segment of this turn."""
        return any(segment.bubble == bubble for segment in self._segments)

    def open(self, content: str, *, finalized: bool) -> str:
        """Open a streamed bubble and return its id."""
        return self._add(Segment("", sanitize(content), finalized, during_tool=bool(self._running)))

    def append(self, content: str) -> str:
        """Take a complete text outside the edit flow and return its bubble id.

        A repetition of the streamed answer is that answer: the host's final path says it once more when it cannot tell
        that the stream delivered (field fault 1).
        """
        text = sanitize(content)
        last = self._segments[-1] if self._segments else None
        if last is not None and not last.appended and _skeleton(last.text) == _skeleton(text):
            last.finalized, last.past, last.during_tool, last.text = True, False, False, text
            return last.bubble
        return self._add(Segment("", text, finalized=True, appended=True))

    def edit(self, bubble: str, content: str, *, finalized: bool) -> bool:
        """Replace the text of ``bubble``; ``False`` when this turn has no such bubble."""
        for segment in reversed(self._segments):
            if segment.bubble == bubble:
                segment.text = sanitize(content)
                segment.finalized = segment.finalized or finalized
                return True
        return False

    def tool_started(self, key: str) -> None:
        """A top-level tool call begins: everything said so far was commentary."""
        self._running[key] += 1
        self._confirmed = None
        self.retreat()

    def tool_finished(self, key: str) -> None:
        """The call ended."""
        self._running -= Counter({key: 1})

    def retreat(self) -> None:
        """Turn everything said so far into commentary."""
        for segment in self._segments:
            segment.past = True

    def confirm(self, text: str) -> None:
        """Take the host's authoritative final text of the run."""
        self._confirmed = sanitize(text)
        self._wanted = _skeleton(self._confirmed)

    def matches_confirmed(self, content: str) -> bool:
        """Return whether ``content`` is the confirmed final text."""
        if not self._confirmed:
            return False
        text = sanitize(content)
        return text == self._confirmed or _skeleton(text) == self._wanted

    def shown(self) -> str:
        """Return the text viewers see while the turn runs: commentary stays visible until text replaces it."""
        kept = self._kept([segment for segment in self._segments if not segment.commentary])
        return _join(kept) if kept else "".join(segment.text for segment in self._segments[-1:])

    def answer(self) -> str | None:
        """Return the text to deliver if the turn succeeded now, or ``None`` when it has no answer."""
        text = self._confirmed_answer()
        if text is None:
            text = self._answer_by_rule()
        text = tidy(text or "")
        return text or None

    def _confirmed_answer(self) -> str | None:
        wanted = self._wanted if self._confirmed else ""
        if not wanted or not self._segments:
            return None
        if self._segments[-1].text == self._confirmed:
            return self._confirmed
        for end in range(len(self._segments), 0, -1):
            spelled = self._spelled(wanted, end)
            if spelled is not None:
                return "\n".join([spelled, *(segment.text for segment in self._segments[end:])])
            last = self._segments[end - 1]
            if not last.appended or wanted in _skeleton(last.text):
                break
        last = self._segments[-1]
        begun = _skeleton(last.text)
        if not last.finalized and begun and wanted.startswith(begun):
            return self._confirmed_text()
        return None

    def _spelled(self, wanted: str, end: int) -> str | None:
        """Return the answer if the segments before ``end`` spell the confirmed text.

        Several of them do so up to white space, which only the confirmed text knows for certain.
        """
        spelled = ""
        for first in range(end - 1, -1, -1):
            spelled = _skeleton(self._segments[first].text) + spelled
            if spelled == wanted:
                return self._segments[first].text if first == end - 1 else self._confirmed_text()
            if len(spelled) > len(wanted):
                return None
        return None

    def _confirmed_text(self) -> str:
        return _DIRECTIVE.sub("", self._confirmed or "")

    def _answer_by_rule(self) -> str | None:
        live = [segment for segment in self._segments if not segment.commentary]
        if not live and self._running:
            # The end of a tool call was never told; the text after it must not be lost.
            live = [segment for segment in self._segments[-1:] if not segment.past]
        while live and not live[-1].finalized:
            live.pop()
        return _join(self._kept(live)) if live else None

    def _kept(self, live: list[Segment]) -> list[Segment]:
        return [s for s in live[:-1] if s.appended or self._may_have_overflowed(s)] + live[-1:]

    def _may_have_overflowed(self, segment: Segment) -> bool:
        return utf8_len(segment.text) >= self._seal_bytes

    def _add(self, segment: Segment) -> str:
        self._opened += 1
        segment.bubble = self._turn_id if self._opened == 1 else f"{self._turn_id}.{self._opened}"
        self._segments.append(segment)
        if len(self._segments) > HISTORY:
            stale = next((s for s in self._segments[:-1] if s.commentary), self._segments[0])
            self._segments.remove(stale)
        return segment.bubble
