"""Proof that the rules are really looked at: each is broken on purpose, and the seeds find it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from canon_hermes_plugin.domain.approvals import outcomes
from canon_hermes_plugin.domain.inbound.claims import Claims
from canon_hermes_plugin.domain.inbound.lanes import Lanes
from canon_hermes_plugin.domain.turns import coordinator, dispatch, ending, settling
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.memory.lanes import MemoryLanes

from .seeds import first_finding

pytestmark = pytest.mark.timeout(600)
"""Hundreds of worlds may pass before the one that shows it."""


def test_silence_that_is_not_kept_is_found(monkeypatch):
    monkeypatch.setattr(Turn, "silence", lambda _turn: True)
    assert "turn_complete" in first_finding(range(40))


def test_a_node_cleared_before_it_is_blank_is_found(monkeypatch):
    async def hasty(_ending, turn, node):
        if turn.silenced:
            await node.write(turn, turn.blank(), last=True)
        node._shown = []
        return await node.clear(turn)

    monkeypatch.setattr(ending.TurnEnding, "_cleared", hasty)
    assert "was said after silence" in first_finding(range(300))


def test_a_decision_of_the_wrong_person_is_found(monkeypatch):
    judge = outcomes._read_decision

    def credulous(entry, answer, event):
        return judge({**entry, "responseUserId": None}, answer, event)

    monkeypatch.setattr(outcomes, "_read_decision", credulous)
    assert "true is None" in first_finding(range(200))


def test_a_replay_under_another_id_is_found(monkeypatch):
    send_on = settling.transmit

    async def forgetful(sink, operation):
        operation.messages = tuple(
            replace(message, message_id=f"{message.message_id}-again") for message in operation.messages
        )
        await send_on(sink, operation)

    monkeypatch.setattr(settling, "transmit", forgetful)
    found = first_finding(range(300))
    assert "stored otherwise than once" in found
    assert "Replay: CANON_SIMULATION_SEED=" in found


def test_a_restart_that_forgets_what_waited_is_found(monkeypatch):
    monkeypatch.setattr(MemoryLanes, "waiting", lambda _lanes: frozenset())
    assert "became no turn" in first_finding(range(400, 1000))  # a death while something waits is rare


def test_a_restart_that_repeats_what_began_is_found(monkeypatch):
    monkeypatch.setattr(Claims, "remember", lambda *_: None)
    assert "became 2 turns" in first_finding(range(200))


def test_field_90_an_answer_that_is_not_kept_is_found(monkeypatch):
    async def forgetful(_dispatch, _operation, _turn):
        return

    monkeypatch.setattr(dispatch.Dispatch, "_keep", forgetful)
    assert "stored otherwise than once" in first_finding(range(200))


def test_field_90_what_is_kept_and_not_forgotten_is_found(monkeypatch):
    async def hoarding(_dispatch, _operation):
        return

    monkeypatch.setattr(dispatch.Dispatch, "forget", hoarding)
    assert "still in the outbox" in first_finding(range(40))


def test_a_message_taken_twice_is_found(monkeypatch):
    monkeypatch.setattr(Claims, "claim", lambda *_: True)
    monkeypatch.setattr(Claims, "known", lambda *_: False)
    assert "became 2 turns" in first_finding(range(100))


def test_a_log_line_with_a_message_in_it_is_found(monkeypatch):
    take = coordinator.TurnCoordinator.text

    async def talkative(self, turn, text):
        coordinator._log.info("got %s", text.content)
        return await take(self, turn, text)

    monkeypatch.setattr(coordinator.TurnCoordinator, "text", talkative)
    assert "tells too much" in first_finding(range(10))


def test_a_stream_that_leaves_its_workers_behind_is_found(monkeypatch):
    async def hasty(self, _grace=0.0):
        self._closed = True

    monkeypatch.setattr(Lanes, "close", hasty)
    assert "task left: canon-lane-worker" in first_finding(range(30))
