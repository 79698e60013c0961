"""The queued shelf: released in the background, tried again after 2, 8 and 30 s, given up with one warning."""

from __future__ import annotations

import logging

import pytest
from canon_hermes_plugin.infrastructure.hermes.shelf import Shelf
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.infrastructure.system import BackgroundTasks
from canon_hermes_plugin.ports.errors import CanonTransportError
from canon_hermes_plugin.ports.host import InboundMessage


class Flaky:
    """Refuses the first releases."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.attempts: list[float] = []
        self.read: list[str] = []
        self.clock = VirtualClock()

    async def release_message(self, conversation_id: str, message_id: str) -> None:
        self.attempts.append(self.clock.monotonic())
        if len(self.attempts) <= self.failures:
            raise CanonTransportError("away", executed=False)

    async def mark_read(self, conversation_id: str) -> None:
        self.read.append(conversation_id)


def message(*, queued: bool = True) -> InboundMessage:
    return InboundMessage("c1", "text", message_id="m1", queued=queued)


async def test_a_queued_message_is_released_and_the_conversation_read() -> None:
    canon, tasks = MemoryCanon(), BackgroundTasks()
    Shelf(canon, tasks, VirtualClock()).started(message())
    await tasks.drain(1)
    assert (canon.released, canon.read) == ([("c1", "m1")], ["c1"])


async def test_a_message_that_never_was_on_the_shelf_is_only_read() -> None:
    canon, tasks = MemoryCanon(), BackgroundTasks()
    Shelf(canon, tasks, VirtualClock()).started(message(queued=False))
    await tasks.drain(1)
    assert (canon.released, canon.read) == ([], ["c1"])


@pytest.mark.parametrize(("failures", "times"), [(0, [0]), (1, [0, 2]), (3, [0, 2, 10, 40]), (9, [0, 2, 10, 40])])
async def test_releases_are_tried_again_after_2_8_and_30_seconds(
    failures: int, times: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    port, tasks = Flaky(failures), BackgroundTasks()
    with caplog.at_level(logging.WARNING):
        Shelf(port, tasks, port.clock).dropped(message())
        await port.clock.advance(100)
        await tasks.drain(1)
    assert port.attempts == times
    assert port.read == ["c1"]
    gave_up = [record for record in caplog.records if "queued shelf" in record.getMessage()]
    assert len(gave_up) == (1 if failures > 3 else 0)


async def test_whatever_becomes_of_a_message_is_told_at_once() -> None:
    told: list[str] = []
    tasks = BackgroundTasks()
    shelf = Shelf(MemoryCanon(), tasks, VirtualClock(), lambda: told.append("changed"))
    shelf.started(message())
    shelf.dropped(message(queued=False))
    assert told == ["changed", "changed"]
    await tasks.drain(1)
