"""A thousand seeds of the composed plugin in bad weather."""

from __future__ import annotations

import os

import pytest

from .network import FATES, HARMFUL, HARMLESS
from .seeds import first_finding, report
from .world import KINDS, World

SEEDS = int(os.environ.get("CANON_SIMULATION_SEEDS", "1000"))
AT_ONCE = 50


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
