"""What it costs to keep what is being delivered: one small file for each answer, whatever its length, and none left."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from canon_hermes_plugin.infrastructure.files.disk import OsDisk
from canon_hermes_plugin.infrastructure.files.outbox import DIRECTORY, FileOutbox

pytestmark = pytest.mark.bench

TURNS = 300
SIDE_BY_SIDE = 20


class CountingDisk:
    """The real disk; counts what changes it."""

    def __init__(self):
        self.counts = Counter()
        self._disk = OsDisk()

    def __getattr__(self, name):
        call = getattr(self._disk, name)

        def counted(*arguments):
            self.counts[name] += 1
            return call(*arguments)

        return counted


async def answer(rig, conversation, text):
    turn = await rig.open(conversation)
    await rig.stream(turn, [text[: len(text) // 2], text])
    await rig.turns.complete(turn, "success")


async def answers(rig, each):
    """Hold ``each`` turns in every one of a few conversations side by side."""
    texts = ["Short.", "Middle. " * 100, "Long. " * 2000]

    async def talk(number):
        conversation = rig.conversation()
        for turn in range(each):
            await answer(rig, conversation, texts[(number + turn) % 3])

    await asyncio.gather(*(talk(number) for number in range(SIDE_BY_SIDE)))


async def test_300_turns_write_and_remove_one_file_each_and_leave_none(rig, homes, record_property):
    disk = CountingDisk()
    rig.compose(outbox=FileOutbox(homes / "canon", "one", disk=disk))
    await answers(rig, TURNS // SIDE_BY_SIDE)
    await rig.settle()
    assert len([message for message in rig.canon.messages() if message.final]) == TURNS
    changes = {name: disk.counts[name] for name in ("create", "replace", "sync_file", "remove")}
    assert changes == dict.fromkeys(changes, TURNS)
    assert disk.counts["sync_directory"] <= TURNS + 3
    assert [path for path in (homes / "canon" / DIRECTORY).rglob("*") if path.is_file()] == []
    record_property("figures", dict(disk.counts))
