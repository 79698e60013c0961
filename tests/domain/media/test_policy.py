"""What is protected, what files are called and what a message says about them (turns §9.1, §9.3, §9.4, H22)."""

from __future__ import annotations

from typing import Any

import pytest
from canon_hermes_plugin.domain.media.policy import (
    Outcome,
    Protection,
    declared,
    family_of,
    file_name,
    is_protected,
    markers,
    may_be_protected,
    protection,
    resolved_mime,
)
from canon_hermes_plugin.domain.media.signatures import image_mime, looks_like_image, looks_like_pdf
from canon_hermes_plugin.ports.errors import ConfigurationError
from hypothesis import given
from hypothesis import strategies as st

IMAGES = {
    "jpeg": b"\xff\xd8\xff\xe0" + b"\0" * 20,
    "png": b"\x89PNG\r\n\x1a\n",
    "gif": b"GIF89a",
    "webp": b"RIFF\x10\0\0\0WEBPVP8 ",
    "tiff": b"II*\x00",
    "bmp": b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0" + b"\0" * 40,
    "heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
    "heif by a compatible brand": b"\0\0\0\x18ftypmp42\0\0\0\0mp42mif1",
    "avif": b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf",
    "jxl": b"\xff\x0a\0\0",
    "jxl container": b"\0\0\0\x0cJXL \r\n\x87\n",
    "svg": b"<?xml version='1.0'?>\n<!-- x -->\n<svg xmlns='...'>",
    "svg in utf-16": "\ufeff<svg></svg>".encode("utf-16-le"),
    "bare svg": b"\xef\xbb\xbf  <SVG width='1'>",
}


@pytest.mark.parametrize("data", IMAGES.values(), ids=IMAGES.keys())
@pytest.mark.parametrize("policy", ["images", "visual"])
def test_h22_images_are_known_by_their_bytes_whatever_is_declared(data: bytes, policy: Protection) -> None:
    assert image_mime(data) is not None
    facts = declared({"url": "https://x/a.txt", "mimeType": "text/plain", "kind": "file", "fileName": "a.txt"})
    assert is_protected(policy, facts, "text/plain", data)
    assert not is_protected("none", facts, "text/plain", data)


@pytest.mark.parametrize("data", [b"BM", b"\x00\x00\x01\x00\x01\x00", b"P6 1 1", b"<html><svg/></html>"])
def test_weak_signatures_protect_but_prove_nothing(data: bytes) -> None:
    assert image_mime(data) is None
    assert looks_like_image(data)
    assert is_protected("images", declared({"mimeType": "text/plain"}), None, data)


@pytest.mark.parametrize(
    "data", [b"", b"plain text", b"PK\x03\x04", b"RIFF....WAVE", b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", b"ID3"]
)
def test_other_bytes_are_no_image(data: bytes) -> None:
    assert image_mime(data) is None
    assert not looks_like_image(data)


@pytest.mark.parametrize(
    "attachment",
    [
        {"mimeType": "Image/PNG; x=1"},
        {"kind": "image"},
        {"fileName": "IMG_0001.HEIC", "mimeType": "application/octet-stream"},
        {"fileName": "a.svg", "mimeType": "text/plain"},
        {"fileName": "scan.TIFF"},
        {"fileName": "x.avif"},
        {"url": "https://x/y/pic.webp?sig=1"},
        {"fileName": "x.bmp"},
    ],
)
def test_h22_metadata_alone_protects(attachment: dict[str, Any]) -> None:
    facts = declared(attachment)
    assert is_protected("images", facts, None, b"bytes")
    assert may_be_protected("images", facts)


def test_the_responses_type_protects_too() -> None:
    assert is_protected("images", declared({"fileName": "a.bin"}), "image/x-new; q=1", b"x")
    assert not is_protected("images", declared({"fileName": "a.pdf"}), "application/pdf", b"%PDF-1")
    assert is_protected("visual", declared({"fileName": "a.bin"}), None, b"\n\n%PDF-1")
    assert is_protected("visual", declared({"fileName": "a.PDF"}), None, b"x")
    assert not looks_like_pdf(b" " * 1024 + b"%PDF-")


@pytest.mark.parametrize(
    ("attachment", "images"),
    [
        ({}, True),
        ({"kind": "file"}, True),
        ({"mimeType": "application/octet-stream"}, True),
        ({"mimeType": "audio/ogg"}, False),
        ({"kind": "audio"}, False),
        ({"fileName": "notes.pdf"}, False),
        ({"fileName": "notes.unheard"}, True),
    ],
)
def test_h22_unknown_and_not_obtained_counts_as_protected(attachment: dict[str, Any], images: bool) -> None:
    facts = declared(attachment)
    assert may_be_protected("images", facts) is images
    assert may_be_protected("visual", facts)
    assert not may_be_protected("none", facts)


@pytest.mark.parametrize(
    ("attachment", "response", "data", "mime"),
    [
        ({"mimeType": "Audio/OGG; codecs=opus"}, "text/html", b"x", "audio/ogg"),
        ({}, "Text/HTML; charset=utf-8", b"x", "text/html"),
        ({"fileName": "a.m4a"}, None, b"x", "audio/mp4"),
        ({"fileName": "a.opus"}, None, b"x", "audio/ogg"),
        ({"fileName": "a"}, None, b"x", "application/octet-stream"),
        ({"mimeType": "image/webp"}, "image/webp", IMAGES["png"], "image/png"),
        ({"mimeType": ["x"]}, None, b"x", "application/octet-stream"),
    ],
)
def test_mime_resolution(attachment: dict[str, Any], response: str | None, data: bytes, mime: str) -> None:
    assert resolved_mime(declared(attachment), response, data) == mime


@pytest.mark.parametrize(
    ("attachment", "mime", "name"),
    [
        ({"fileName": "..\\..\\etc/passwd"}, "text/plain", "passwd"),
        ({"fileName": ".."}, "application/pdf", "canon-media.pdf"),
        ({"fileName": "a\nb\x00.txt"}, "text/plain", "a b .txt"),
        ({"url": "https://x/dir/r%C3%A9sum%C3%A9.pdf?sig=2"}, "application/pdf", "r\u00e9sum\u00e9.pdf"),
        ({"url": "https://x/dir/noext"}, "application/pdf", "canon-media.pdf"),
        ({"url": "https://x/a%2F..%2Fb.txt"}, "text/plain", "b.txt"),
        ({}, "application/x-unheard", "canon-media.bin"),
        ({"fileName": "a.webp"}, "image/png", "a.png"),
        ({"fileName": "a.jpeg"}, "image/jpeg", "a.jpeg"),
        ({"url": "http://[bad"}, "text/plain", "canon-media.txt"),
    ],
)
def test_names(attachment: dict[str, Any], mime: str, name: str) -> None:
    assert file_name(declared(attachment), mime) == name


@given(st.text(max_size=600), st.text(max_size=60))
def test_a_name_is_one_harmless_component(name: str, path: str) -> None:
    found = file_name(declared({"fileName": name, "url": "https://x/" + path}), "application/pdf")
    assert 1 <= len(found) <= 255
    assert "/" not in found
    assert "\\" not in found
    assert found not in {".", ".."}
    assert len(found.splitlines()) == 1


def test_families() -> None:
    assert [family_of(m) for m in ("image/png", "audio/ogg", "video/mp4", "text/plain", "")] == [
        "image", "audio", "video", "document", "document",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "extra", "expected"),
    [
        ({}, {}, "none"),
        ({"CANON_INBOUND_IMAGE_DELIVERY": " Trusted-Only "}, {}, "images"),
        ({}, {"inbound_visual_media_delivery": "trusted-only", "inbound_image_delivery": "trusted-only"}, "visual"),
        ({"CANON_INBOUND_VISUAL_MEDIA_DELIVERY": "model"}, {"inbound_visual_media_delivery": "trusted-only"}, "none"),
    ],
)
def test_protection_setting(environment: dict[str, str], extra: dict[str, Any], expected: str) -> None:
    assert protection(environment, extra) == expected


def test_an_unknown_protection_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"CANON_INBOUND_IMAGE_DELIVERY.*model, trusted-only"):
        protection({"CANON_INBOUND_IMAGE_DELIVERY": "hidden"}, {})


def test_markers_available_first_and_nothing_for_nothing() -> None:
    assert markers("images", Outcome()) == ""
    first, second = markers("visual", Outcome(hidden=3, unavailable=1, available=3)).split("\n")
    assert first.startswith("[3 visual attachments are available")
    assert second.startswith("[1 visual attachment could not")
    assert "send it again" in second
    assert Outcome(hidden=2, unavailable=1, available=0).withheld == 3
