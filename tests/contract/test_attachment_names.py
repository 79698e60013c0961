"""What becomes of an attachment's name: harmless in the host's real cache, and the same in the test kit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from canon_hermes_plugin import current_canon_inbound_media
from canon_hermes_plugin.domain.media.captures import CaptureStore
from canon_hermes_plugin.domain.media.intake import MediaIntake
from canon_hermes_plugin.infrastructure.hermes.media import HermesMediaCache
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaFetcher
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.ports.media import FetchedMedia

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40
NAMES = {
    "../a.png": "a.png",
    "..\\..\\a.pdf": "a.pdf",
    "/etc/passwd": "passwd",
    "C:\\Users\\x\\a.pdf": "a.pdf",
    "..": "canon-media.bin",
    "a/": "canon-media.bin",
    "\x00": "canon-media.bin",
    "a\x00b\r\nc\u2028d.pdf": "a b c d.pdf",
    "lone \ud83d.pdf": "lone .pdf",
    "x" * 4000 + ".pdf": None,
    "\u00e9" * 255: None,
    "\u00e9" * 240 + ".pdf": "\u00e9" * 240 + ".pdf",
    "a." + "x" * 250: "a." + "x" * 250,
    "a.p:g<>|?*": "a.p:g<>|?*",
    "report:hidden.txt": "report:hidden.txt",
    "CON": "CON",
    "nul.txt": "nul.txt",
    "~root": "~root",
    "$(reboot).sh": "$(reboot).sh",
}
"""Names as they are sent, and the public ``file_name``; ``None`` where the rule alone is looked at."""


def bytes_for(name: str) -> bytes:
    return PNG if name.endswith(".png") else b"%PDF-1.7 seven"


def check(name: str, public: str) -> None:
    expected = NAMES[name]
    assert expected in {None, public}
    assert 1 <= len(public) <= 255
    assert not set("/\\\x00\r\n") & set(public)
    assert public not in {".", ".."}


async def taken(attachment: dict[str, Any], data: bytes) -> tuple[list[Path], list[str]]:
    """Take one attachment in with the host's cache; return its files and its public names."""
    captures, clock = CaptureStore(lambda: 0.0), VirtualClock()
    fetcher = MemoryMediaFetcher({str(attachment["url"]): FetchedMedia(data)})
    result = await MediaIntake(fetcher, HermesMediaCache(), captures, clock).take("c", "m", [attachment])
    return [Path(item.path) for item in result.media], [item.file_name for item in captures.read("c", "m")]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:24])
async def test_a_name_never_leads_out_of_the_hosts_cache_and_costs_nobody_the_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    data = bytes_for(name)
    (path,), (public,) = await taken({"url": "https://x/file", "fileName": name}, data)
    assert tmp_path in path.resolve().parents
    assert path.read_bytes() == data
    assert not set('<>:"|?*\\') & set(path.name), "another meaning on Windows"
    check(name, public)


@pytest.mark.parametrize("family", ["image/png", "audio/mpeg", "video/mp4"])
async def test_an_odd_suffix_costs_nobody_the_file(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    for suffix in ("x" * 250, "p:g", "../../x"):
        attachment = {"url": "https://x/file", "fileName": "a." + suffix, "mimeType": family}
        (path,), _ = await taken(attachment, PNG if family == "image/png" else b"ID3")
        assert tmp_path in path.resolve().parents
        assert len(path.name) < 80


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:24])
def test_the_test_kit_gives_the_same_name(name: str, canon_turn: Any) -> None:
    canon_turn("here", attachments=[(name, bytes_for(name))])
    (media,) = current_canon_inbound_media()
    check(name, media.file_name)
    assert media.data == bytes_for(name)
