"""Tells from the first bytes what a file is; the bytes win over what anybody says about them (field fault 84, H22).

Two questions with two answers: :func:`image_mime` names an image it is sure of, :func:`looks_like_image` also takes
weak signatures, because it guards what must not be shown. It refuses to know policies and declared types.
"""

from __future__ import annotations

from typing import Final

_TEXT_HEAD: Final = 4096
_PDF_HEAD: Final = 1024
_PREFIXES: Final = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"II+\x00", "image/tiff"),
    (b"MM\x00+", "image/tiff"),
    (b"\x00\x00\x00\x0cJXL \r\n\x87\n", "image/jxl"),
    (b"\xff\x0a", "image/jxl"),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "image/jp2"),
    (b"\xff\x4f\xff\x51", "image/jp2"),
    (b"8BPS", "image/vnd.adobe.photoshop"),
)
_WEAK_PREFIXES: Final = (b"BM", b"\x00\x00\x01\x00", b"\x00\x00\x02\x00", b"\xd7\xcd\xc6\x9a", b"P1", b"P2", b"P3", b"P4", b"P5", b"P6")  # fmt: skip  # noqa: E501
_BRANDS: Final = {
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"hevm", b"hevs"), "image/heic"),
    **dict.fromkeys((b"mif1", b"msf1", b"mif2"), "image/heif"),
    **dict.fromkeys((b"avif", b"avis"), "image/avif"),
}


def image_mime(data: bytes) -> str | None:
    """Return the MIME type of an image that its bytes prove, or ``None``."""
    for prefix, mime in _PREFIXES:
        if data.startswith(prefix):
            return mime
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[:2] == b"BM" and len(data) >= 26 and data[6:10] == b"\x00" * 4 and data[14:18] in _BMP_HEADERS:  # noqa: PLR2004
        return "image/bmp"
    return _brand(data) or ("image/svg+xml" if _is_svg(data) else None)


def looks_like_image(data: bytes) -> bool:
    """Tell whether the bytes may be an image; errs towards yes."""
    return image_mime(data) is not None or data.startswith(_WEAK_PREFIXES) or b"<svg" in _text_head(data)


def looks_like_pdf(data: bytes) -> bool:
    """Tell whether the bytes may be a PDF: its mark stands within the first 1,024."""
    return b"%PDF-" in data[:_PDF_HEAD]


_BMP_HEADERS: Final = frozenset(size.to_bytes(4, "little") for size in (12, 16, 40, 52, 56, 64, 108, 124))


def _brand(data: bytes) -> str | None:
    """Return the image type of an ISO media file by its major or compatible brands."""
    if data[4:8] != b"ftyp":
        return None
    size = min(int.from_bytes(data[:4], "big"), 256)
    brands = [data[8:12], *(data[at : at + 4] for at in range(16, size, 4))]
    return next((_BRANDS[brand] for brand in brands if brand in _BRANDS), None)


def _is_svg(data: bytes) -> bool:
    head = _text_head(data).lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    return head.startswith(b"<svg") or (head.startswith((b"<?xml", b"<!--", b"<!doctype svg")) and b"<svg" in head)


def _text_head(data: bytes) -> bytes:
    """Return the start as lower-case ASCII text, the zero bytes of UTF-16 gone."""
    return data[:_TEXT_HEAD].replace(b"\x00", b"").lower()
