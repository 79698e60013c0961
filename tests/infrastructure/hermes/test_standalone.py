"""The standalone sender: whole text, an identity of its own, errors as results, nothing raised."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from canon_hermes_plugin.infrastructure.hermes.standalone import (
    MAX_MEDIA_BYTES,
    Notification,
    StandaloneError,
    deliver,
    media_path,
)
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import SeededIds
from canon_hermes_plugin.plugin import send_standalone
from canon_hermes_plugin.ports.errors import CanonError


def send(canon: MemoryCanon, text: str, seed: int = 1, **options: Any) -> str:
    options.setdefault("target", "c1")
    return asyncio.run(deliver(canon, SeededIds(seed), Notification(text, **options)))


def test_field_16_a_long_text_goes_whole_in_ordered_parts() -> None:
    canon = MemoryCanon()
    text = " ".join(f"word{number:05d}" for number in range(1500))
    send(canon, text, reply_to="msg_7")
    *leading, final = canon.messages
    assert " ".join(message.text for message in canon.messages) == text
    assert {message.metadata["turnSemantics"] for message in leading} == {"progress"}
    assert final.metadata["turnSemantics"] == "turn_complete"
    assert "turnId" not in final.metadata
    assert {message.reply_to for message in canon.messages} == {"msg_7"}


def test_field_33_two_invocations_never_share_an_id() -> None:
    canon = MemoryCanon()
    assert send(canon, "the same text", 1) != send(canon, "the same text", 2)
    assert len(canon.messages) == 2


def test_the_environment_is_proven_first() -> None:
    canon = MemoryCanon()
    canon.faults.fail_next("verify", Fault.unreachable())
    with pytest.raises(CanonError):
        send(canon, "text")
    assert canon.operations() == ["verify"]


def test_files_ride_on_the_last_part(tmp_path: Path) -> None:
    canon = MemoryCanon()
    picture, sheet = tmp_path / "picture.png", tmp_path / "sheet.csv"
    picture.write_bytes(b"png")
    sheet.write_bytes(b"csv")
    send(canon, "x" * 5000, files=[picture, sheet])
    *leading, final = canon.messages
    assert [len(message.attachments) for message in canon.messages] == [0] * len(leading) + [2]
    assert final.content_type == "image"
    assert [upload.file_name for upload in canon.uploads] == ["picture.png", "sheet.csv"]


@pytest.mark.parametrize("size", [None, MAX_MEDIA_BYTES + 1])
def test_an_unusable_file_posts_nothing(tmp_path: Path, size: int | None) -> None:
    canon, path = MemoryCanon(), tmp_path / "file.bin"
    if size is not None:
        path.write_bytes(b"x" * size)
    with pytest.raises(StandaloneError, match=r"file\.bin"):
        send(canon, "text", files=[path])
    assert canon.messages == []


def test_without_a_destination_nothing_is_contacted() -> None:
    canon = MemoryCanon()
    with pytest.raises(StandaloneError, match="home channel"):
        send(canon, "text", target=None)
    assert canon.operations() == []


def test_media_items_are_paths_or_the_hosts_pairs() -> None:
    assert media_path("/tmp/a") == media_path(("/tmp/a", True)) == Path("/tmp/a")
    assert media_path("~/a") == Path.home() / "a"


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"GATEWAY_MULTIPLEX_PROFILES": "true"}, "multiplex_profiles"),
        ({}, "no Canon credentials"),
        ({"CANON_API_KEY": "agk"}, "CANON_ENVIRONMENT_ID"),
    ],
)
def test_field_35_the_narrow_call_of_the_scheduler_gets_an_error_as_a_result(
    env: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("CANON_API_KEY", "CANON_AGENT", "CANON_ENVIRONMENT_ID", "GATEWAY_MULTIPLEX_PROFILES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CANON_HOME", str(tmp_path))
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    config = SimpleNamespace(extra={})
    result = asyncio.run(send_standalone(config, "c1", "text"))
    assert set(result) == {"error"}
    assert words in result["error"]
    assert "\n" not in result["error"]
