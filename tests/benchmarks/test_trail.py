"""What the activity trail costs, whatever a tool was given: it is written while others wait for the turn."""

from __future__ import annotations

import time

import pytest
from canon_hermes_plugin.domain.turns.model import ToolStart
from canon_hermes_plugin.domain.turns.redaction import redact_text
from canon_hermes_plugin.domain.turns.trail import Trail

pytestmark = pytest.mark.bench

HOSTILE = ["a-", "sk-", "api-", "token", "eyJ-", "eyJaaaaaaaa.", "bearer ", "://a:", 'secret="', "-----BEGIN ", "word "]


def best(work, rounds=5):
    seen = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        seen.append(time.process_time() - start)
    return min(seen)


@pytest.mark.parametrize("unit", HOSTILE)
def test_h15_redacting_takes_time_in_proportion_to_the_text(unit, record_property):
    short, long = ((unit * size)[:size] for size in (20_000, 160_000))
    ratio = best(lambda: redact_text(long)) / best(lambda: redact_text(short))
    record_property("ratio", ratio)
    assert ratio <= 3 * 8


def test_field_71_a_tool_call_with_megabytes_costs_what_a_small_one_costs(record_property):
    def started(text):
        return lambda: Trail("t", contents=True).tool_started(ToolStart("write", "call_1", {"content": text}))

    line = "The supplier wrote again; see invoice A-4711.\n"
    ratio = best(started(line * 50_000)) / best(started(line * 100))
    record_property("ratio", ratio)
    assert ratio <= 3
