"""Runs seeds and tells how to replay one that breaks a rule."""

from __future__ import annotations

from .world import World

REPLAY = "CANON_SIMULATION_SEED={seed} python -m pytest tests/simulation -k replay"


def report(seed: int, findings: list[str]) -> str:
    return "\n".join([f"seed {seed} breaks {len(findings)} rule(s):", *findings, "Replay: " + REPLAY.format(seed=seed)])


def first_finding(seeds: range) -> str:
    for seed in seeds:
        findings = World(seed).run()
        if findings:
            return report(seed, findings)
    return ""
