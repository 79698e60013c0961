"""Decides which attachments the model may see and what a message says about the others (turns §9.1 to §9.4, H22).

Disagreement between name, declared type and bytes always resolves towards hiding. It refuses to know how bytes arrive
and where they are kept.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast
from urllib.parse import unquote, urlsplit

from canon_hermes_plugin.domain.media.signatures import image_mime, looks_like_image, looks_like_pdf
from canon_hermes_plugin.domain.reading import inert, string
from canon_hermes_plugin.domain.verbosity import Choice
from canon_hermes_plugin.ports.media import MediaFamily

Protection = Literal["none", "images", "visual"]
"""What is kept from the model: nothing, images, or images and PDFs."""

IMAGE_DELIVERY: Final = Choice("CANON_INBOUND_IMAGE_DELIVERY", ("inbound_image_delivery",), ("model", "trusted-only"))
VISUAL_DELIVERY: Final = Choice(
    "CANON_INBOUND_VISUAL_MEDIA_DELIVERY", ("inbound_visual_media_delivery",), ("model", "trusted-only")
)

NAME_CHARS: Final = 255
MAX_DECLARED_BYTES: Final = 2**63
"""What claims to be longer declares nothing: an integer of remote text has no bound of its own."""
IMAGE_EXTENSIONS: Final = frozenset({
    ".gif", ".jpeg", ".jpg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".heic", ".heif", ".hif", ".avif", ".svg",
    ".svgz", ".ico", ".cur", ".jxl", ".jp2", ".j2k", ".tif", ".tiff", ".bmp", ".dib", ".psd", ".pbm", ".pgm", ".ppm",
})  # fmt: skip
_OPAQUE: Final = frozenset({"application/octet-stream", "binary/octet-stream", "application/x-binary", "*/*"})
_EXTRA_TYPES: Final = {
    ".m4a": "audio/mp4", ".opus": "audio/ogg", ".ogg": "audio/ogg", ".mp3": "audio/mpeg", ".wav": "audio/wav",
    ".flac": "audio/flac", ".aac": "audio/aac", ".mp4": "video/mp4", ".mov": "video/quicktime", ".webm": "video/webm",
    ".mkv": "video/x-matroska", ".m4v": "video/mp4", ".heic": "image/heic", ".heif": "image/heif",
    ".avif": "image/avif", ".webp": "image/webp", ".jxl": "image/jxl", ".pdf": "application/pdf",
}  # fmt: skip
_EXTENSION_OF: Final = {mime: extension for extension, mime in _EXTRA_TYPES.items()}
_TYPES: Final = mimetypes.MimeTypes()


@dataclass(frozen=True, slots=True)
class Declared:
    """What the sender and Canon say about one attachment; nothing of it is trusted.

    Attributes:
        url: where the bytes are, or ``None``.
        mime: the bare declared type, lower-cased, or nothing.
        kind: ``image``, ``audio``, ``video``, ``file`` or nothing.
        name: a single path component, or nothing.
        size: the declared length in bytes, or ``None``.
    """

    url: str | None = None
    mime: str = ""
    kind: str = ""
    name: str = ""
    size: int | None = None

    @property
    def extension(self) -> str:
        """The name's extension with its dot, lower-cased, or nothing."""
        dot = self.name.rfind(".")
        return self.name[dot:].lower() if dot >= 0 else ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a message's attachments, in numbers.

    Attributes:
        hidden: kept from the model on purpose.
        unavailable: possibly protected, and not obtained.
        available: hidden ones whose bytes trusted tools can read.
    """

    hidden: int = 0
    unavailable: int = 0
    available: int = 0

    @property
    def withheld(self) -> int:
        """Attachments nobody can read."""
        return self.hidden + self.unavailable - self.available


def protection(environment: Mapping[str, str], extra: Mapping[str, Any]) -> Protection:
    """Return the configured protection; visual media wins over images.

    Raises:
        ConfigurationError: one of the two settings has an unknown value.
    """
    images = IMAGE_DELIVERY.read(environment, extra) == "trusted-only"
    visual = VISUAL_DELIVERY.read(environment, extra) == "trusted-only"
    return "visual" if visual else "images" if images else "none"


def declared(attachment: Mapping[str, Any]) -> Declared:
    """Read an attachment object (canon-wire §6.4); fields of the wrong type are absent."""
    url = string(attachment.get("url"))
    kind = attachment.get("kind")
    name = _component(attachment.get("fileName")) or _url_name(url)
    size = attachment.get("sizeBytes")
    return Declared(
        url,
        bare_mime(attachment.get("mimeType")),
        kind.lower() if isinstance(kind, str) else "",
        name,
        size if type(size) is int and 0 <= size < MAX_DECLARED_BYTES else None,
    )


def is_protected(policy: Protection, facts: Declared, response_mime: str | None, data: bytes) -> bool:
    """Tell whether a downloaded attachment must be kept from the model."""
    if policy == "none":
        return False
    mimes = {facts.mime, bare_mime(response_mime), resolved_mime(facts, response_mime, data)}
    if _says_image(facts) or any(mime.startswith("image/") for mime in mimes) or looks_like_image(data):
        return True
    if policy == "images":
        return False
    return "application/pdf" in mimes or facts.extension == ".pdf" or looks_like_pdf(data)


def may_be_protected(policy: Protection, facts: Declared) -> bool:
    """Tell whether an attachment that was not obtained counts as protected; what says nothing counts (H22)."""
    return policy == "visual" or (policy == "images" and (_says_image(facts) or not _says_other(facts)))


def resolved_mime(facts: Declared, response_mime: str | None, data: bytes) -> str:
    """Return the MIME type: proven by an image's bytes, else declared, else the response's, else by name."""
    proven = image_mime(data)
    return proven or facts.mime or bare_mime(response_mime) or _mime_by_name(facts) or "application/octet-stream"


def family_of(mime: str) -> MediaFamily:
    """Return the host's family of files for a MIME type."""
    family = mime.partition("/")[0]
    return cast("MediaFamily", family) if family in {"image", "audio", "video"} else "document"


def file_name(facts: Declared, mime: str) -> str:
    """Return a name for the attachment's bytes: its own, or one that fits the type.

    The extension of an image follows its type, so that a PNG named ``.webp`` is kept as what it is.
    """
    extension = _TYPES.guess_extension(mime) or _EXTENSION_OF.get(mime, ".bin")
    if facts.name and mime.startswith("image/") and _mime_by_name(facts) not in {"", mime}:
        return facts.name[: -len(facts.extension)][: NAME_CHARS - len(extension)] + extension
    return facts.name or f"canon-media{extension}"


def bare_mime(value: object) -> str:
    """Return a content type without parameters, lower-cased; nothing when it is not one."""
    mime = value.partition(";")[0].strip().lower() if isinstance(value, str) else ""
    return mime if "/" in mime and len(mime) <= NAME_CHARS and mime.isprintable() else ""


def markers(policy: Protection, outcome: Outcome) -> str:
    """Return what the message says about attachments the model does not see; nothing when there are none (turns §9.4).

    Never a name, path or URL.
    """
    scope = "visual" if policy == "visual" else "image"
    handling = "vision and document" if policy == "visual" else "vision"
    lines: list[str] = []
    if outcome.available:
        are = "is" if outcome.available == 1 else "are"
        lines.append(
            f"[{_count(outcome.available, scope)} {are} available to trusted Canon tools only and did not go through "
            f"the generic {handling} handling.]"
        )
    if outcome.withheld:
        them = "it" if outcome.withheld == 1 else "them"
        lines.append(
            f"[{_count(outcome.withheld, scope)} could not be delivered safely because of an error or a size limit. "
            f"Ask the sender to send {them} again.]"
        )
    return "\n".join(lines)


def _says_image(facts: Declared) -> bool:
    return facts.kind == "image" or facts.mime.startswith("image/") or facts.extension in IMAGE_EXTENSIONS


def _says_other(facts: Declared) -> bool:
    """Tell whether the metadata positively names something that is no image."""
    if facts.mime and facts.mime not in _OPAQUE:
        return True
    return facts.kind in {"audio", "video"} or bool(_mime_by_name(facts))


def _mime_by_name(facts: Declared) -> str:
    return _EXTRA_TYPES.get(facts.extension) or _TYPES.guess_type(f"x{facts.extension}")[0] or ""


def _component(value: object) -> str:
    """Return the last path component of a name, one line of at most 255 characters; nothing for the dot names."""
    text = inert(value, 4 * NAME_CHARS).replace("\\", "/").rpartition("/")[2].strip()
    if len(text) > NAME_CHARS:
        stem, dot, extension = text.rpartition(".")
        keep = dot + extension if dot and len(extension) <= 15 else ""  # noqa: PLR2004 - longer is no extension
        text = (stem or text)[: NAME_CHARS - len(keep)] + keep
    return "" if text in {".", ".."} else text


def _url_name(url: str | None) -> str:
    if url is None:
        return ""
    try:
        path = urlsplit(url).path
    except ValueError:
        return ""
    name = _component(unquote(path))
    return name if "." in name else ""


def _count(number: int, scope: str) -> str:
    return f"{number} {scope} attachment" if number == 1 else f"{number} {scope} attachments"
