"""How much of a long text viewers see while it grows (turns §3.2).

Every live write carries the text so far, so without a bound a long answer costs its square. Decides that the newest end
of it is shown. Refuses to know who writes it and when.
"""

from __future__ import annotations

PREVIEW_BYTES = 16_384
"""The most UTF-8 bytes of text in one live write: a few screens."""

_MARK = "…"
_SEARCH = 400
"""Characters in which a beginning behind white space is looked for."""


def preview(text: str) -> str:
    """Return ``text``, or the end of it behind an ellipsis when it is longer than :data:`PREVIEW_BYTES`."""
    if len(text) * 4 <= PREVIEW_BYTES:
        return text
    tail = text[-PREVIEW_BYTES:].encode("utf-8", "replace")
    if len(tail) <= PREVIEW_BYTES and len(text) <= PREVIEW_BYTES:
        return text
    end = tail[-(PREVIEW_BYTES - len(_MARK.encode())) :].decode("utf-8", "ignore")
    gap = next((at for at, char in enumerate(end[:_SEARCH]) if char.isspace()), -1)
    return _MARK + end[gap + 1 :]
