"""Decides which documents are read out inside the message: the host tells the model that text files are.

The host's note on a ``text/*`` file says that its content is included below, and leaves including it to the adapter.
What cannot be included is passed on as opaque bytes instead, about which the host says the truth: open the file. It
refuses to know where files lie.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MAX_INLINE_BYTES: Final = 100 * 1024
"""Bytes of all documents of one message that are read out; the host's own platforms use the same bound."""

OPAQUE: Final = "application/octet-stream"

_UNFIT: Final = re.compile(r"[^\w.\- ]")


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A text file that may be read out: its name and content."""

    name: str
    content: str
    size: int


def text_document(name: str, mime: str, data: bytes) -> TextDocument | None:
    """Return the document when its type says text, its bytes are UTF-8 text, and it is not too long."""
    if not mime.startswith("text/") or len(data) > MAX_INLINE_BYTES or b"\x00" in data:
        return None
    try:
        return TextDocument(_UNFIT.sub("_", name), data.decode("utf-8-sig"), len(data))
    except UnicodeDecodeError:
        return None


def read_out(documents: Iterable[TextDocument]) -> str:
    """Return the block that stands before the message's own words; nothing for no documents."""
    return "\n\n".join(f"[Content of {document.name}]:\n{document.content}" for document in documents)
