"""Whether a shell command would run ``sudo`` (interactions §8.3, D19). A miss is a fault, a false alarm is not."""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"""(?<![\w-])sudo(?=$|[\s;&|()'"\\<>`{}$,*?\[#!])""", re.IGNORECASE)
_CONTINUATION: Final = re.compile(r"\\\r?\n")
_QUOTING: Final = str.maketrans("", "", "'\"\\")


def is_sudo_command(command: str) -> bool:
    """Return whether ``command`` names the executable ``sudo``, in any case, behind any path, under any quoting."""
    joined = _CONTINUATION.sub("", command)
    # Once as written, once as the shell reads the words: quotes and backslashes may stand inside a word.
    return any(_WORD.search(text) is not None for text in (command, joined, joined.translate(_QUOTING)))
