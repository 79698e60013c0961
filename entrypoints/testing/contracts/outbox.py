"""The outbox: what every :class:`canon_hermes_plugin.ports.outbox.Outbox` promises (turns §4.3; field fault 90)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Protocol

import pytest
from canon_hermes_plugin.ports.canon import OutboundMessage
from canon_hermes_plugin.ports.errors import OutboxError
from canon_hermes_plugin.ports.outbox import Outbox, OutboxEntry
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop

NOW = 1_900_000_000_000


class OutboxDriver(Driver, Protocol):
    """The subject, and what a new process would find.

    Attributes:
        store: the subject.
    """

    store: Outbox

    def reopened(self) -> Outbox:
        """Return the same outbox as a new process of the same agent opens it."""
        ...

    def other_agent(self) -> Outbox | None:
        """Return the outbox of another agent that shares the place; ``None`` when a place holds one agent only."""
        ...

    def damage(self, operation_id: str, keep_bytes: int) -> None:
        """Cut the stored form of an operation to its first ``keep_bytes`` bytes."""
        ...

    def stored(self, operation_id: str) -> bytes | None:
        """Return the stored form of an operation, ``None`` when there is none."""
        ...


def entry(name: str = "a", *, parts: int = 1, conversation_id: str = "cv") -> OutboxEntry:
    """Return an operation of ``parts`` messages."""
    messages = tuple(
        OutboundMessage(conversation_id, f"{name} {number}", message_id=f"hermes-final-{name}-part-{number}")
        for number in range(1, parts + 1)
    )
    return OutboxEntry(f"hermes-final-{name}", messages, NOW, f"turn-{name}", NOW - 5, f"session-{name}")


def rich() -> OutboxEntry:
    """Return an operation that uses every field."""
    attachment = {"kind": "image", "url": "https://media.example/1", "sizeBytes": 3, "deep": [None, True, 1.5]}
    last = OutboundMessage(
        "cv",
        "Zürich 👩‍👩‍👧 \ud800 \x00 \u2028",
        message_id="hermes-final-r",
        reply_to="msg_1",
        metadata={"turnSemantics": "turn_complete", "turnTrail": [{"b": 1, "a": [{}]}], "z": 1, "a": "ö"},
        content_type="image",
        attachments=(attachment,),
    )
    return OutboxEntry("hermes-final-r", (OutboundMessage("cv", "one", message_id="hermes-final-r-1"), last), NOW)


class OutboxContract(Contract[OutboxDriver]):
    """The suite."""

    @on_a_loop
    async def test_an_absent_outbox_is_empty(self, rig: OutboxDriver) -> None:
        assert list(await rig.store.leftover()) == []
        await rig.store.forget("hermes-final-unknown")

    @on_a_loop
    async def test_field_90_a_new_process_finds_what_was_kept_in_the_order_kept(self, rig: OutboxDriver) -> None:
        kept = [entry(name, parts=3) for name in ("c", "a", "b")]
        for item in kept:
            await rig.store.keep(item)
        assert list(await rig.reopened().leftover()) == kept

    @on_a_loop
    async def test_field_90_every_field_comes_back_as_it_was_the_order_of_keys_included(
        self, rig: OutboxDriver
    ) -> None:
        await rig.store.keep(rich())
        (found,) = await rig.reopened().leftover()
        assert found == rich()
        assert list(found.messages[1].metadata) == list(rich().messages[1].metadata)
        assert found.conversation_id == "cv"

    @on_a_loop
    async def test_what_is_forgotten_is_gone_and_the_rest_stays(self, rig: OutboxDriver) -> None:
        for name in ("a", "b"):
            await rig.store.keep(entry(name))
        for _ in range(2):
            await rig.store.forget(entry("a").operation_id)
        assert list(await rig.reopened().leftover()) == [entry("b")]

    @on_a_loop
    async def test_keeping_again_replaces_and_goes_to_the_end(self, rig: OutboxDriver) -> None:
        for item in (entry("a"), entry("b"), entry("a", parts=2)):
            await rig.store.keep(item)
        assert list(await rig.reopened().leftover()) == [entry("b"), entry("a", parts=2)]

    @on_a_loop
    async def test_what_a_later_process_keeps_comes_after_what_was_there(self, rig: OutboxDriver) -> None:
        await rig.store.keep(entry("b"))
        later = rig.reopened()
        await later.keep(entry("a"))
        assert list(await later.leftover()) == [entry("b"), entry("a")]

    @pytest.mark.parametrize("keep_bytes", [0, 1, 40])
    @on_a_loop
    async def test_a_cut_entry_is_left_out_left_there_and_hinders_nothing(
        self, rig: OutboxDriver, keep_bytes: int
    ) -> None:
        for name in ("a", "b"):
            await rig.store.keep(entry(name))
        rig.damage(entry("a").operation_id, keep_bytes)
        before = rig.stored(entry("a").operation_id)
        store = rig.reopened()
        assert list(await store.leftover()) == [entry("b")]
        assert rig.stored(entry("a").operation_id) == before
        await store.keep(entry("a"))
        assert list(await store.leftover()) == [entry("b"), entry("a")]

    @on_a_loop
    async def test_what_cannot_be_stored_is_refused_and_stores_nothing(self, rig: OutboxDriver) -> None:
        whole = OutboundMessage("cv", "text", message_id="hermes-final-o")
        refused = {
            "metadata that JSON cannot hold": (replace(whole, metadata={"no json": object()}),),
            "a message without an id": (replace(whole, message_id=None),),
            "no message at all": (),
        }
        for what, messages in refused.items():
            try:
                await rig.store.keep(OutboxEntry("hermes-final-o", messages, NOW))
            except OutboxError:
                continue
            pytest.fail(f"keep() took {what}; it must raise OutboxError")
        assert list(await rig.reopened().leftover()) == []

    @on_a_loop
    async def test_agents_that_share_a_place_see_nothing_of_each_other(self, rig: OutboxDriver) -> None:
        other = rig.other_agent()
        if other is None:
            return
        await rig.store.keep(entry("a"))
        await other.keep(entry("b"))
        await other.forget(entry("a").operation_id)
        assert list(await other.leftover()) == [entry("b")]
        assert list(await rig.reopened().leftover()) == [entry("a")]

    @on_a_loop
    async def test_many_at_once_are_all_kept(self, rig: OutboxDriver) -> None:
        kept = [entry(f"n{number}") for number in range(40)]
        await asyncio.gather(*(rig.store.keep(item) for item in kept))
        assert list(await rig.reopened().leftover()) == kept
        await asyncio.gather(*(rig.store.forget(item.operation_id) for item in kept))
        assert list(await rig.reopened().leftover()) == []

    @on_a_loop
    async def test_cancelling_the_caller_leaves_the_entry_whole_or_absent(self, rig: OutboxDriver) -> None:
        task = asyncio.create_task(rig.store.keep(entry("a", parts=9)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await rig.store.keep(entry("b"))
        assert list(await rig.reopened().leftover()) in ([entry("a", parts=9), entry("b")], [entry("b")])
