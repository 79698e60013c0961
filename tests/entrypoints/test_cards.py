"""The public module for cards: the same objects at both places, and nothing but the standard library behind them."""

from __future__ import annotations

import copy
import json
import operator
import pickle
import subprocess
import sys

import canon_hermes_plugin
import pytest
from canon_hermes_plugin import cards

ALONE = """
import sys
before = {name.split(".")[0] for name in sys.modules}
for name in ("gateway", "hermes_cli", "tools", "agent", "httpx", "click", "rich", "dependency_injector"):
    sys.modules[name] = None  # importing it fails
from canon_hermes_plugin.cards import validate_card
assert validate_card({})["ok"] is False
loaded = {name.split(".")[0] for name, module in sys.modules.items() if module is not None}
print(*loaded - before - set(sys.stdlib_module_names))
"""


def test_the_root_and_the_module_offer_the_same_objects():
    assert canon_hermes_plugin.validate_card is cards.validate_card
    assert canon_hermes_plugin.RUNTIME_CARD_LIMITS is cards.RUNTIME_CARD_LIMITS
    assert {"validate_card", "RUNTIME_CARD_LIMITS"} <= set(canon_hermes_plugin.__all__)
    assert cards.MAX_CARD_BYTES == 32768
    assert len(cards.RUNTIME_CARD_LIMITS) == 15


@pytest.mark.parametrize(
    "change",
    [
        lambda limits: limits.update(blocks=1),
        lambda limits: limits.__setitem__("blocks", 1),
        lambda limits: limits.__delitem__("blocks"),
        lambda limits: limits.pop("blocks"),
        lambda limits: limits.popitem(),
        lambda limits: limits.setdefault("mine", 1),
        lambda limits: limits.clear(),
        lambda limits: operator.ior(limits, {"blocks": 1}),
    ],
)
def test_nobody_changes_the_limits_of_everybody(change):
    limits = cards.RUNTIME_CARD_LIMITS
    with pytest.raises(TypeError, match="dict\\(RUNTIME_CARD_LIMITS\\)"):
        change(limits)
    assert (len(limits), limits["blocks"]) == (15, 24)
    assert all(type(value) is int for value in limits.values())


def test_the_limits_are_a_dictionary_that_can_be_copied_and_written_as_json():
    limits = cards.RUNTIME_CARD_LIMITS
    assert isinstance(limits, dict)
    assert json.loads(json.dumps(limits)) == json.loads(json.dumps(dict(limits))) == limits
    for made in (
        dict(limits),
        limits | {},
        copy.copy(limits),
        copy.deepcopy(limits),
        pickle.loads(pickle.dumps(limits)),
    ):
        assert made == limits
        made["blocks"] = 1
    assert limits["blocks"] == 24


def test_cards_need_the_standard_library_alone():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.split() == ["canon_hermes_plugin"]


def test_a_caller_deep_in_a_stack_gets_the_same_verdict():
    deep: object = 1
    for _ in range(250):
        deep = [deep]
    values = ({"x": deep}, {"x": [[deep] * 9] * 9}, {"title": "x"})

    def at(level):
        return at(level - 1) if level else [cards.validate_card(value) for value in values]

    assert at(500) == at(0)
