"""A thousand seeds of the composed plugin in bad weather, and proof that the rules are really looked at."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from canon_hermes_plugin.domain.approvals import outcomes
from canon_hermes_plugin.domain.inbound.claims import Claims
from canon_hermes_plugin.domain.inbound.lanes import Lanes
from canon_hermes_plugin.domain.turns import coordinator, dispatch, ending, settling
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.memory.lanes import MemoryLanes

from .network import FATES, HARMFUL, HARMLESS
from .world import KINDS, World

SEEDS = int(os.environ.get("CANON_SIMULATION_SEEDS", "1000"))
AT_ONCE = 50
REPLAY = "CANON_SIMULATION_SEED={seed} python -m pytest tests/simulation -k replay"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    """The HTTP client would build a pool for each proxy the environment names."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def report(seed: int, findings: list[str]) -> str:
    return "\n".join([f"seed {seed} breaks {len(findings)} rule(s):", *findings, "Replay: " + REPLAY.format(seed=seed)])


def first_finding(seeds: range) -> str:
    for seed in seeds:
        findings = World(seed).run()
        if findings:
            return report(seed, findings)
    return ""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_no_weather_breaks_a_rule(first):
    assert first_finding(range(first, first + AT_ONCE)) == ""


@pytest.mark.skipif("CANON_SIMULATION_SEED" not in os.environ, reason="names no seed")
def test_replay_of_one_seed():
    seed = int(os.environ["CANON_SIMULATION_SEED"])
    world = World(seed)
    findings = world.run()
    assert not findings, "\n".join([report(seed, findings), *world.story()])


def test_a_seed_is_the_same_run_every_time():
    def run(seed):
        world = World(seed)
        world.run()
        return world.story()

    assert run(11) == run(11)
    assert run(11) != run(12)


def test_every_kind_of_weather_and_every_kind_of_turn_occurs():
    worlds = [World(seed) for seed in range(60)]
    for world in worlds:
        assert world.run() == []
    seen = set().union(*(world.weather.seen | world.disk.seen for world in worlds))
    disk, lives = {"disk full", "kept, not told"}, {"reconnect", "stop", "kill"}
    assert seen == {*HARMLESS, *HARMFUL, *FATES, "slow", *disk, *lives}
    assert {act.kind for world in worlds for act in world.acts if act.done} == set(KINDS) - {"fail"}
    assert sum(len(world.truth) for world in worlds) > 10
    assert sum(len(world.card_answers) for world in worlds) > 5


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
