"""Verbosity and its setting (turns §8)."""

from __future__ import annotations

from typing import Any, cast

import pytest
from canon_hermes_plugin.domain.verbosity import TURN_VERBOSITY, resolve_verbosity
from canon_hermes_plugin.ports.errors import ConfigurationError
from canon_hermes_plugin.ports.host import ConversationKind


@pytest.mark.parametrize(
    ("configured", "kind", "expected"),
    [
        ("verbose", "group", "verbose"),
        (" Quiet ", "direct", "quiet"),
        ("auto", "direct", "verbose"),
        ("auto", "group", "quiet"),
        ("auto", "unknown", "verbose"),
        (None, "group", "quiet"),
        ("nonsense", "direct", "verbose"),
        (["quiet"], "direct", "verbose"),
        ("", "some new kind", "verbose"),
    ],
)
def test_resolution(configured: object, kind: str, expected: str) -> None:
    assert resolve_verbosity(configured, cast("ConversationKind", kind)) == expected


@pytest.mark.parametrize(
    ("environment", "extra", "expected"),
    [
        ({}, {}, "auto"),
        ({"CANON_TURN_VERBOSITY": "Quiet"}, {"turn_verbosity": "verbose"}, "quiet"),
        ({"CANON_TURN_VERBOSITY": " "}, {"turn_verbosity": " VERBOSE "}, "verbose"),
        ({}, {"turn_verbosity": "", "canon_turn_verbosity": "quiet"}, "quiet"),
        ({}, {"CANON_TURN_VERBOSITY": "quiet"}, "quiet"),
        ({}, {"turn_verbosity": None}, "auto"),
    ],
)
def test_lookup(environment: dict[str, str], extra: dict[str, Any], expected: str) -> None:
    assert TURN_VERBOSITY.read(environment, extra) == expected


@pytest.mark.parametrize("value", ["loud", True, 3, ["quiet"]])
def test_an_unknown_value_is_refused_with_setting_and_values_but_without_itself(value: object) -> None:
    with pytest.raises(ConfigurationError) as error:
        TURN_VERBOSITY.read({}, {"turn_verbosity": value})
    text = str(error.value)
    assert all(word in text for word in ("CANON_TURN_VERBOSITY", "auto", "verbose", "quiet"))
    assert "loud" not in text
