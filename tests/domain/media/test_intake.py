"""Attachments of one message: side by side, bounded, fail closed (turns §9.2, §9.4, §13 no. 49, 50; H21, H22)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from canon_hermes_plugin.domain.media.captures import CaptureStore
from canon_hermes_plugin.domain.media.intake import ATTACHMENTS, DEADLINE_SECONDS, PARALLEL, MediaIntake
from canon_hermes_plugin.domain.media.policy import Protection
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaCache, MemoryMediaFetcher
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock, settle
from canon_hermes_plugin.ports.media import FetchedMedia, MediaFile
from hypothesis import given
from hypothesis import strategies as st

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40
PDF = b"%PDF-1.7 ..."


class Bench:
    """One intake with its twins."""

    def __init__(self, protection: Protection = "none") -> None:
        self.clock = VirtualClock()
        self.fetcher = MemoryMediaFetcher()
        self.cache = MemoryMediaCache()
        self.captures = CaptureStore(self.clock.monotonic)
        self.intake = MediaIntake(self.fetcher, self.cache, self.captures, self.clock, protection)

    def serve(self, name: str, data: bytes, mime: str | None = None, **fields: Any) -> dict[str, Any]:
        url = f"https://files.test/{name}?sig=1"
        self.fetcher.files[url] = FetchedMedia(data, mime)
        return {"url": url, "fileName": name, **fields}

    def held(self) -> list[int]:
        return [item.index for item in self.captures.read("c", "m")]


async def test_everything_reaches_the_model_and_is_kept_for_tools() -> None:
    bench = Bench()
    items = [
        bench.serve("a.png", PNG),
        bench.serve("b.pdf", PDF),
        bench.serve("c.mp3", b"ID3"),
        bench.serve("d.mp4", b"\0"),
    ]
    result = await bench.intake.take("c", "m", items)
    assert result.kinds == ("photo", "document", "voice", "video")
    assert [media.mime_type for media in result.media] == ["image/png", "application/pdf", "audio/mpeg", "video/mp4"]
    assert result.markers == ""
    assert not result.stranded
    assert bench.held() == [0, 1, 2, 3]


async def test_a_failed_attachment_is_skipped_and_says_nothing_in_model_mode() -> None:
    bench = Bench()
    items = [
        {"url": "https://gone.test/x"},
        bench.serve("a.png", b"<html>", "image/png"),
        {},
        "junk",
        bench.serve("b.png", PNG),
    ]
    result = await bench.intake.take("c", "m", items)
    assert len(result.media) == 1
    assert result.markers == ""
    assert bench.held() == [4]


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


async def test_attachments_that_did_not_arrive_leave_one_line_with_ids_sizes_and_reasons(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    gone = {"url": "https://gone.test/private-name.pdf", "fileName": "private-name.pdf", "sizeBytes": 8}
    await bench.intake.take("c", "m", [bench.serve("a.png", PNG), gone, {}, bench.serve("empty.txt", b"")])
    (line,) = warned(caplog)
    assert line.startswith("message m of c: 3 of 4 attachments did not arrive: no. 2 (8 bytes): ")
    assert "no. 3 (size unknown): it has no address; no. 4 (size unknown): it has 0 bytes; 1 to " in line
    assert "test" not in line
    assert "private-name" not in line


@pytest.mark.parametrize("size", ["8", True, -1, 10**400, 1.5, None])
async def test_a_size_that_is_none_is_unknown(caplog: pytest.LogCaptureFixture, size: object) -> None:
    await Bench().intake.take("c", "m", [{"sizeBytes": size}])
    assert "no. 1 (size unknown): it has no address" in warned(caplog)[0]


async def test_the_line_about_many_missing_attachments_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    await Bench().intake.take("c", "m", [{}] * 5_000)
    (line,) = warned(caplog)
    assert line.count("no. ") == 4
    assert line.endswith("; and 4996 more")


async def test_attachments_that_arrive_leave_no_line(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    await bench.intake.take("c", "m", [bench.serve("a.png", PNG), bench.serve("b.pdf", PDF)])
    assert caplog.records == []


async def test_an_image_the_host_does_not_take_stays_a_file_of_the_sender() -> None:
    bench = Bench()
    heic = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"
    result = await bench.intake.take(
        "c", "m", [bench.serve("IMG_1.HEIC", heic, "image/heic"), bench.serve("a.svg", b"<svg/>")]
    )
    assert result.kinds == ("document", "document")
    assert {media.mime_type for media in result.media} == {"application/octet-stream"}
    assert [file.name for file in bench.cache.stored] == ["IMG_1.HEIC", "a.svg"]
    assert [item.mime_type for item in bench.captures.read("c", "m")] == ["image/heic", "image/svg+xml"]


async def test_images_are_hidden_and_others_keep_their_path() -> None:
    bench = Bench("images")
    result = await bench.intake.take("c", "m", [bench.serve("a.png", PNG), bench.serve("b.pdf", PDF)])
    assert result.kinds == ("document",)
    assert result.stranded
    assert result.markers == (
        "[1 image attachment is available to trusted Canon tools only and did not go through the generic "
        "vision handling.]"
    )
    assert [file.family for file in bench.cache.stored] == ["document"]
    assert bench.held() == [0, 1]


async def test_visual_mode_hides_pdfs_too() -> None:
    bench = Bench("visual")
    result = await bench.intake.take("c", "m", [bench.serve("a.png", PNG), bench.serve("x.bin", b"\n" + PDF)])
    assert result.media == ()
    assert "2 visual attachments are available" in result.markers
    assert "vision and document" in result.markers


@pytest.mark.parametrize("protection", ["images", "visual"])
@pytest.mark.parametrize(
    "missing",
    [{"url": "https://gone.test/x", "kind": "image"}, {"kind": "image"}, {"url": "https://gone.test/y"}, "junk"],
)
async def test_one_missing_protected_attachment_and_no_bytes_are_readable(
    protection: Protection, missing: object
) -> None:
    bench = Bench(protection)
    result = await bench.intake.take("c", "m", [bench.serve("a.png", PNG), missing])
    assert result.media == ()
    assert bench.held() == []
    assert not result.stranded
    assert result.markers.startswith("[2 ")
    assert "could not be delivered safely" in result.markers


async def test_h22_a_missing_attachment_that_is_surely_no_image_is_skipped_in_image_mode() -> None:
    bench = Bench("images")
    result = await bench.intake.take(
        "c", "m", [bench.serve("a.png", PNG), {"url": "https://gone.test/x", "mimeType": "audio/ogg"}]
    )
    assert bench.held() == [0]
    assert "could not" not in result.markers


async def test_without_a_message_id_nothing_is_available() -> None:
    bench = Bench("images")
    result = await bench.intake.take("c", None, [bench.serve("a.png", PNG)])
    assert "could not be delivered safely" in result.markers
    assert bench.captures.usage() == (0, 0)


async def test_over_the_bounds_nothing_is_kept_and_nothing_protected_is_shown() -> None:
    bench = Bench("images")
    result = await bench.intake.take("c", "m", [bench.serve(f"{n}.png", PNG) for n in range(17)])
    assert result.media == ()
    assert bench.held() == []
    assert result.markers.startswith("[17 image attachments could not")
    big = Bench()
    result = await big.intake.take("c", "m", [big.serve(f"{n}.bin", bytes(9 * 2**20)) for n in range(4)])
    assert len(result.media) == 4
    assert big.held() == []


@pytest.mark.parametrize("data", [b"", bytes(10 * 2**20 + 1)])
async def test_empty_and_oversized_attachments_are_failures(data: bytes) -> None:
    bench = Bench("images")
    result = await bench.intake.take("c", "m", [bench.serve("a.png", data)])
    assert "[1 image attachment could not" in result.markers
    assert bench.held() == []


async def test_text_files_are_read_out_as_the_host_tells_the_model() -> None:
    bench = Bench()
    names = {
        "a b!.txt": b"\xef\xbb\xbfalpha",
        "b.csv": b"x;y",
        "c.json": b"{}",
        "d.txt": b"\xff\xfe",
        "e.txt": b"z\x00",
    }
    result = await bench.intake.take("c", "m", [bench.serve(name, data) for name, data in names.items()])
    assert result.documents == "[Content of a b_.txt]:\nalpha\n\n[Content of b.csv]:\nx;y"
    assert [media.mime_type for media in result.media] == [
        "text/plain", "text/csv", "application/json", "application/octet-stream", "application/octet-stream",
    ]  # fmt: skip


async def test_documents_are_read_out_within_a_bound_and_the_others_stay_files() -> None:
    bench = Bench()
    sizes = {"a.txt": 60, "b.txt": 60, "c.txt": 30, "d.txt": 101}
    result = await bench.intake.take("c", "m", [bench.serve(name, b"x" * 1024 * kib) for name, kib in sizes.items()])
    assert [line for line in result.documents.split("\n") if line.startswith("[")] == [
        "[Content of a.txt]:",
        "[Content of c.txt]:",
    ]
    assert [media.mime_type[:4] for media in result.media] == ["text", "appl", "text", "appl"]


async def test_an_empty_file_does_not_cost_the_others_their_bytes() -> None:
    bench = Bench()
    result = await bench.intake.take("c", "m", [bench.serve("a.txt", b""), bench.serve("b.txt", b"x")])
    assert [media.path for media in result.media] == ["/media/1/b.txt"]
    assert bench.held() == [1]


async def test_h21_ten_attachments_download_side_by_side_in_the_messages_order() -> None:
    bench = Bench()
    bench.fetcher.gate.clear()
    taking = asyncio.create_task(bench.intake.take("c", "m", [bench.serve(f"{n}.png", PNG) for n in range(12)]))
    await settle()
    assert bench.fetcher.peak == PARALLEL == 10
    bench.fetcher.gate.set()
    result = await taking
    assert [media.path.rsplit("/", 1)[1] for media in result.media] == [f"{n}.png" for n in range(12)]
    assert bench.held() == list(range(12))


async def test_h21_the_deadline_ends_slow_downloads_and_fails_closed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    bench = Bench("images")
    slow, item = asyncio.Event(), bench.serve("a.png", PNG)
    fetch = bench.fetcher.fetch

    class Slow:
        async def fetch(self, url: str) -> FetchedMedia:
            if "slow" in url:
                await slow.wait()
            return await fetch(url)

    intake = MediaIntake(Slow(), bench.cache, bench.captures, bench.clock, "images")
    taking = asyncio.create_task(intake.take("c", "m", [item, {"url": "https://slow.test/b.png"}]))
    await bench.clock.advance(DEADLINE_SECONDS - 1)
    assert not taking.done()
    await bench.clock.advance(1)
    result = await taking
    assert "[2 image attachments could not" in result.markers
    assert "no. 2 (size unknown): it took longer than 60 s" in warned(caplog)[0]
    assert bench.held() == []
    assert bench.clock.sleepers == 0
    assert len(asyncio.all_tasks()) == 1


async def test_cancelling_the_intake_cancels_its_downloads() -> None:
    bench = Bench()
    bench.fetcher.gate.clear()
    taking = asyncio.create_task(bench.intake.take("c", "m", [bench.serve("a.png", PNG)]))
    await settle()
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    assert len(asyncio.all_tasks()) == 1


async def test_field_98_a_programming_error_surfaces() -> None:
    bench = Bench()

    class Broken:
        async def store(self, file: MediaFile) -> Any:
            raise AttributeError(file.family)

    intake = MediaIntake(bench.fetcher, Broken(), bench.captures, bench.clock)
    with pytest.raises(AttributeError):
        await intake.take("c", "m", [bench.serve("a.png", PNG)])


async def test_only_so_many_attachments_are_looked_at() -> None:
    bench = Bench("images")
    result = await bench.intake.take("c", "m", [bench.serve(f"{n}.png", PNG) for n in range(ATTACHMENTS + 3)])
    assert len(bench.fetcher.fetched) == ATTACHMENTS
    assert result.markers.startswith(f"[{ATTACHMENTS + 3} image attachments could not")


kinds = st.sampled_from(["png", "pdf", "text", "gone", "junk", "empty"])


@given(st.lists(kinds, max_size=20), st.sampled_from(["images", "visual"]))
async def test_a_protected_mode_never_shows_what_it_protects(sorts: list[str], protection: Protection) -> None:
    bench = Bench(protection)
    data = {"png": PNG, "pdf": PDF, "text": b"plain", "empty": b""}
    items = [
        {"url": "https://gone.test/a.png"}
        if sort == "gone"
        else "junk"
        if sort == "junk"
        else bench.serve(f"{n}.dat", data[sort])
        for n, sort in enumerate(sorts)
    ]
    result = await bench.intake.take("c", "m", items)
    shown = [file.data for file in bench.cache.stored]
    assert PNG not in shown
    assert protection == "images" or PDF not in shown
    assert len(result.media) == len(shown)
    if {"gone", "junk", "empty"} & set(sorts):
        assert bench.held() == []
    elif len(sorts) <= 16:
        assert bench.held() == list(range(len(sorts)))
    else:
        assert bench.held() == []
