"""Decides where a text may be cut without taking a grapheme cluster apart.

Works on the standard library's character data and errs on one side only: it may see one cluster where Unicode sees two
(so a cut moves a little earlier than needed), for the common scripts and emoji it never sees two where Unicode sees
one. It refuses to know budgets, separators and bytes.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_ZWJ: Final = "\u200d"
_VIRAMA: Final = 9
"""Canonical combining class of the marks that join two consonants."""

_REGIONAL: Final = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_EXTENDING: Final = frozenset({"Mn", "Me", "Mc", "Cf", "Cn"})
"""Categories that stick to what stands before them. Unassigned counts: a newer Unicode may have put a mark there."""

_EXTENDING_CHARS: Final = frozenset("\u0e33\u0eb3\uff9e\uff9f" + "".join(map(chr, range(0x1F3FB, 0x1F400))))
"""Vowel signs, voicing marks and skin tones whose category does not tell that they extend."""

_CONTROL: Final = frozenset({"Cc", "Zl", "Zp"})
_PREPEND_CHARS: Final = frozenset(
    map(
        chr,
        (
            *range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x0D4E, 0x110BD, 0x110CD, 0x111C2, 0x111C3,
            0x113D1, 0x1193F, 0x11941, 0x11A3A, *range(0x11A84, 0x11A8A), 0x11D46, 0x11F02,
        ),
    )
)  # fmt: skip
"""Marks that stick to what follows them."""

_FIRST_JOINER: Final = "\u0300"
"""Below this code point only CR LF and the soft hyphen join anything."""


def is_boundary(text: str, index: int) -> bool:
    """Tell whether ``text`` may be cut before ``text[index]``.

    Args:
        text: the text, starting at a cluster boundary.
        index: 0 to ``len(text)``; both ends are boundaries.
    """
    if index <= 0 or index >= len(text):
        return True
    before, after = text[index - 1], text[index]
    if before < _FIRST_JOINER and after < _FIRST_JOINER:
        return not (before == "\r" and after == "\n") and after != "\xad"
    kind = unicodedata.category(after)
    if kind in _CONTROL or unicodedata.category(before) in _CONTROL:
        return True
    if kind in _EXTENDING or after in _EXTENDING_CHARS or before == _ZWJ or before in _PREPEND_CHARS:
        return False
    if _is_jamo(after) and _joins_hangul(before, after):
        return False
    if after in _REGIONAL and before in _REGIONAL:
        return _regional_run(text, index) % 2 == 0
    return not (kind == "Lo" and _after_virama(text, index))


def boundary_at_or_before(text: str, index: int) -> int:
    """Return the last boundary in ``1..index``, or 0 when one cluster fills ``text[:index]``."""
    while index > 0 and not is_boundary(text, index):
        index -= 1
    return index


def needs_context(char: str) -> bool:
    """Tell whether a boundary right after ``char`` depends on what stands before it."""
    return char in _REGIONAL or unicodedata.category(char) in _EXTENDING


def _is_jamo(char: str) -> bool:
    return (
        "\u1100" <= char <= "\u11ff"
        or "\ua960" <= char <= "\ua97f"
        or "\uac00" <= char <= "\ud7ff"
        or "\U00016d63" <= char <= "\U00016d6a"
    )


def _is_leading(char: str) -> bool:
    return "\u1100" <= char <= "\u115f" or "\ua960" <= char <= "\ua97f"


def _joins_hangul(before: str, after: str) -> bool:
    starts_syllable = _is_leading(after) or "\uac00" <= after <= "\ud7a3"
    return _is_leading(before) if starts_syllable else _is_jamo(before)


def _regional_run(text: str, index: int) -> int:
    """Return how many regional indicators end right before ``index``: flags are pairs counted from the run's start."""
    head = text[:index]
    return len(head) - len(head.rstrip(_REGIONAL))


def _after_virama(text: str, index: int) -> bool:
    """Tell whether marks that include a consonant joiner end right before ``index``."""
    while index > 0:
        index -= 1
        if unicodedata.combining(text[index]) == _VIRAMA:
            return True
        if unicodedata.category(text[index]) not in _EXTENDING:
            return False
    return False
