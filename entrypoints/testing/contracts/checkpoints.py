"""The place on the stream: what every :class:`canon_hermes_plugin.ports.checkpoints.CheckpointStore` promises."""

from __future__ import annotations

from typing import Protocol

import pytest
from canon_hermes_plugin.ports.checkpoints import Checkpoint, CheckpointStore
from canon_hermes_plugin.ports.errors import CheckpointError
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop

FIRST = Checkpoint("evt_1", ("msg_1", "msg_2"), 1_900_000_000_000)
SECOND = Checkpoint("evt_9", ("msg_2", "msg_3"), 1_900_000_060_000)


class CheckpointDriver(Driver, Protocol):
    """The subject, and its next process.

    Attributes:
        store: the subject; nothing was saved yet.
    """

    store: CheckpointStore

    def restart(self) -> CheckpointStore:
        """Return the store as the next process finds it."""
        ...

    def fill_up(self) -> None:
        """Let every further save fail, as a full disk does."""
        ...


class CheckpointStoreContract(Contract[CheckpointDriver]):
    """The suite."""

    @on_a_loop
    async def test_at_first_there_is_none(self, rig: CheckpointDriver) -> None:
        assert await rig.store.load() is None

    @on_a_loop
    async def test_the_next_process_finds_what_was_saved_last(self, rig: CheckpointDriver) -> None:
        await rig.store.save(FIRST)
        await rig.store.save(SECOND)
        assert await rig.restart().load() == SECOND

    @pytest.mark.parametrize(
        "checkpoint",
        [
            Checkpoint(None, (), 0),
            Checkpoint("é☃\u2028\ud83c🎉", ("", "ü" * 400, '"}{', "\n"), 1),
            Checkpoint("e", tuple(f"message-{number}" for number in range(1024)), 2**53),
        ],
    )
    @on_a_loop
    async def test_it_comes_back_as_it_was(self, rig: CheckpointDriver, checkpoint: Checkpoint) -> None:
        await rig.store.save(checkpoint)
        assert await rig.restart().load() == checkpoint

    @on_a_loop
    async def test_reading_changes_nothing(self, rig: CheckpointDriver) -> None:
        await rig.store.save(FIRST)
        assert [await rig.store.load(), await rig.store.load()] == [FIRST, FIRST]

    @on_a_loop
    async def test_a_failed_save_is_told_and_leaves_the_one_before(self, rig: CheckpointDriver) -> None:
        await rig.store.save(FIRST)
        rig.fill_up()
        with pytest.raises(CheckpointError):
            await rig.store.save(SECOND)
        assert await rig.restart().load() == FIRST
