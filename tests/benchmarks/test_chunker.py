"""What splitting costs: a small multiple of one UTF-8 encoding, and the same per byte at ten times the size."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from canon_hermes_plugin.domain.chunker import split

pytestmark = pytest.mark.bench

MIB = 2**20
HEBREW = "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd"
JAPANESE = "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0"
EMOJI = "\u2764\ufe0f \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea"
PARAGRAPH = "A plain paragraph with a few words of everyday text, long enough to look like an answer.\n\n"
FOREIGN = f"{HEBREW}, {JAPANESE}; caf\u00e9 na\u00efve `inline code` {EMOJI} e\u0301.\n"
CODE = "\n```python\n" + "value = compute(value)  # again\n" * 20 + "```\n\n"
MIXED = (PARAGRAPH + FOREIGN) * 12 + CODE + JAPANESE * 100 + "\n"
UNITS = [
    "```\n", "~~~x ", "`` ``` ", "~~~\n", " \u0301", "\u0301", "\U0001f1e9\U0001f1ea", "\r\n", "\n", " ", "\u200d",
    "x" * 5000 + "\n", "\u0600 ",
]  # fmt: skip


def mixed(size: int) -> str:
    return MIXED * (size // len(MIXED.encode()) + 1)


def fastest(run: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def relative_cost(text: str, rounds: int) -> float:
    return fastest(lambda: split(text), rounds) / fastest(text.encode, rounds)


def test_one_mib_of_mixed_text_costs_at_most_eight_encodings() -> None:
    assert relative_cost(mixed(MIB), 15) <= 8


def test_ten_mib_cost_the_same_per_byte() -> None:
    small, large = mixed(MIB), mixed(10 * MIB)
    per_byte = fastest(lambda: split(small), 9) / len(small.encode())
    per_byte_large = fastest(lambda: split(large), 5) / len(large.encode())
    assert relative_cost(large, 5) <= 8
    assert per_byte_large <= 2.5 * per_byte  # fresh memory costs page faults, for an encoding too


@pytest.mark.parametrize("unit", UNITS, ids=ascii)
def test_no_input_makes_it_worse_than_linear(unit: str) -> None:
    def seconds(size: int) -> float:
        text = "a" + unit * (size // len(unit.encode())) + "b"
        return fastest(lambda: split(text), 3)

    assert seconds(MIB) <= 16 * seconds(MIB // 8)
