"""Silence and reports from tool threads: the turn of the calling context, never a guess (interactions §5.7)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.model import TurnStart
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.hermes import live
from canon_hermes_plugin.infrastructure.hermes.live import LiveAdapter, LiveAdapters, SilenceReport, TurnSilencer
from canon_hermes_plugin.infrastructure.memory.session import MemorySession
from canon_hermes_plugin.ports.errors import CanonApiError
from canon_hermes_plugin.ports.host import SessionSnapshot


class Turns:
    def __init__(self, *turns: Turn) -> None:
        self.turns = turns
        self.silenced: list[Turn] = []

    def open_turns(self, conversation_id):
        return tuple(turn for turn in self.turns if turn.conversation_id == conversation_id)

    def silence(self, turn):
        if turn not in self.turns:
            return False
        self.silenced.append(turn)
        return True


class Access:
    def __init__(self, error: Exception | None = None, hang: bool = False) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.seconds: list[float] = []
        self.error, self.hang = error, hang

    @asynccontextmanager
    async def brief(self, seconds):
        self.seconds.append(seconds)
        yield self

    async def call_verb(self, verb, *, envelope, value):
        self.calls.append((verb, envelope, value))
        if self.hang:
            await asyncio.sleep(60)
        if self.error is not None:
            raise self.error
        return {}


SESSION = SessionSnapshot("canon", "cv", session_key="key1")


def turn(name: str, key: str = "key1", conversation: str = "cv") -> Turn:
    return Turn(name, TurnStart(conversation, key), 0, seal_bytes=100)


def adapter(turns: Turns, access: Access | None = None) -> LiveAdapter:
    unused: Any = None
    return LiveAdapter(turns, unused, unused, unused, unused, access or Access())


@pytest.fixture
def adapters():
    return LiveAdapters()


def test_only_the_calling_contexts_turn_falls_silent(adapters):
    mine, other = turn("hermes-1"), turn("hermes-2", "key2")
    turns = Turns(mine, other)
    adapters.add(adapter(turns))
    token = current_turn.set(mine)
    try:
        assert TurnSilencer(adapters, MemorySession(SESSION)).silence("cv") is True
        assert TurnSilencer(adapters, MemorySession(SESSION)).silence("cv_other") is False
    finally:
        current_turn.reset(token)
    assert turns.silenced == [mine]


def test_h6_a_turn_of_another_conversation_is_not_silenced_by_name(adapters):
    turns = Turns(turn("hermes-1"), elsewhere := turn("hermes-2", conversation="cv_other"))
    adapters.add(adapter(turns))
    token = current_turn.set(elsewhere)
    try:
        assert TurnSilencer(adapters, MemorySession(SESSION)).silence("cv") is False
    finally:
        current_turn.reset(token)
    assert turns.silenced == []


def test_without_a_context_the_session_key_names_the_turn(adapters):
    mine, other = turn("hermes-1"), turn("hermes-2", "key2")
    turns = Turns(mine, other)
    adapters.add(adapter(turns))
    assert TurnSilencer(adapters, MemorySession(SESSION)).silence("cv") is True
    assert turns.silenced == [mine]


def test_a_guess_is_never_made(adapters):
    turns = Turns(turn("hermes-1"), turn("hermes-2"))
    adapters.add(adapter(turns))
    session = MemorySession(SESSION)
    assert TurnSilencer(adapters, session).silence("cv") is False
    session.outside = SessionSnapshot()
    assert TurnSilencer(adapters, session).silence("cv") is False
    assert TurnSilencer(LiveAdapters(), session).silence("cv") is False
    assert turns.silenced == []


@pytest.mark.parametrize(
    ("message", "reasoned", "envelope", "value"),
    [
        ("m", True, {"conversationId": "cv", "messageId": "m"}, {"reason": "given"}),
        (None, False, {"conversationId": "cv"}, {}),
    ],
)
async def test_the_report_carries_ids_and_a_fixed_word(adapters, message, reasoned, envelope, value):
    access = Access()
    adapters.add(adapter(Turns(turn("hermes-1")), access))
    await SilenceReport(adapters).report("cv", message, reasoned=reasoned)
    assert access.calls == [("no_reply", envelope, value)]
    assert access.seconds == [3.0]


async def test_zero_or_several_owners_report_nothing(adapters):
    await SilenceReport(adapters).report("cv", "m", reasoned=True)
    accesses = [Access(), Access()]
    for access in accesses:
        adapters.add(adapter(Turns(turn("hermes-1")), access))
    await SilenceReport(adapters).report("cv", "m", reasoned=True)
    assert [access.calls for access in accesses] == [[], []]


async def test_a_failing_or_hanging_report_is_swallowed_in_time(adapters, monkeypatch):
    monkeypatch.setattr(live, "REPORT_SECONDS", 0.05)
    for access in (Access(CanonApiError(500)), Access(hang=True)):
        item = adapter(Turns(turn("hermes-1")), access)
        adapters.add(item)
        await SilenceReport(adapters).report("cv", "m", reasoned=False)
        assert len(access.calls) == 1
        adapters.remove(item)


def test_an_adapter_is_known_once_and_forgotten_on_removal(adapters):
    item = adapter(Turns())
    adapters.add(item)
    adapters.add(item)
    assert adapters.all() == [item]
    adapters.remove(item)
    adapters.remove(item)
    assert adapters.all() == []


@pytest.mark.parametrize(("surface", "heard"), [("gateway", 1), ("smart", 0), ("cli", 0)])
def test_only_the_gateways_own_approvals_are_reported(adapters, surface, heard):
    seen = []

    class Prompts:
        def approval_closed(self, session_key, command):
            seen.append((session_key, command))

    unused: Any = None
    adapters.add(LiveAdapter(Turns(), Prompts(), unused, unused, unused, Access()))
    adapters.approval_closed(command="rm a", session_key="key", surface=surface, choice="deny", telemetry="x")
    assert seen == [("key", "rm a")] * heard
