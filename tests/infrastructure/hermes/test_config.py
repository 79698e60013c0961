"""Settings: precedence, blanks, refusals in one line, and who may wake the agent."""

from __future__ import annotations

from typing import Any

import pytest
from canon_hermes_plugin.infrastructure.hermes.config import (
    Access,
    home_channel_seed,
    load_access,
    load_settings,
)
from canon_hermes_plugin.ports.errors import ConfigurationError


@pytest.mark.parametrize(
    ("env", "extra", "expected"),
    [
        ({}, {}, "auto"),
        ({"CANON_TURN_VERBOSITY": "  "}, {"turn_verbosity": "quiet"}, "quiet"),
        ({"CANON_TURN_VERBOSITY": "VERBOSE"}, {"turn_verbosity": "quiet"}, "verbose"),
        ({}, {"canon_turn_verbosity": "quiet"}, "quiet"),
        ({}, {"CANON_TURN_VERBOSITY": "quiet"}, "quiet"),
    ],
)
def test_the_environment_wins_and_blank_is_unset(env: Any, extra: Any, expected: str) -> None:
    assert load_settings(extra, env).verbosity == expected


@pytest.mark.parametrize(
    "name", ["CANON_TURN_VERBOSITY", "CANON_INBOUND_IMAGE_DELIVERY", "CANON_INBOUND_VISUAL_MEDIA_DELIVERY"]
)
def test_an_unknown_value_is_refused_in_one_line_that_names_the_setting(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings({}, {name: "loud\nand clear"})
    text = str(caught.value)
    assert name in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, "none"),
        ({"CANON_INBOUND_IMAGE_DELIVERY": "trusted-only"}, "images"),
        (
            {"CANON_INBOUND_IMAGE_DELIVERY": "trusted-only", "CANON_INBOUND_VISUAL_MEDIA_DELIVERY": "trusted-only"},
            "visual",
        ),
    ],
)
def test_visual_media_wins_over_images(env: Any, expected: str) -> None:
    assert load_settings({}, env).protection == expected


def test_the_hosts_session_switches_come_from_the_section() -> None:
    settings = load_settings({"group_sessions_per_user": False, "thread_sessions_per_user": "true"}, {})
    assert (settings.group_sessions_per_user, settings.thread_sessions_per_user) == (False, True)
    assert load_settings({"group_sessions_per_user": "false"}, {}).group_sessions_per_user is False


@pytest.mark.parametrize(
    ("env", "decided", "dana", "agent", "nobody"),
    [
        ({}, False, False, False, False),
        ({"CANON_ALLOW_ALL_USERS": "true"}, True, True, True, True),
        ({"CANON_ALLOW_ALL_USERS": "no"}, False, False, False, False),
        ({"GATEWAY_ALLOW_ALL_USERS": "1"}, True, True, True, True),
        ({"CANON_ALLOWED_USERS": " dana , "}, True, True, False, False),
        ({"CANON_ALLOWED_USERS": "dana,agent"}, True, True, True, False),
        ({"CANON_ALLOWED_USERS": "*"}, True, True, True, True),
        ({"GATEWAY_ALLOWED_USERS": "dana"}, True, True, False, False),
        # A list is a decision: the gateway-wide switch does not open it again.
        ({"CANON_ALLOWED_USERS": "dana", "GATEWAY_ALLOW_ALL_USERS": "true"}, True, True, False, False),
    ],
)
def test_who_may_wake_the_agent(env: Any, decided: bool, dana: bool, agent: bool, nobody: bool) -> None:
    access = load_access(env)
    assert access.decided_here is decided
    assert (access.admits("dana"), access.admits("agent"), access.admits(None)) == (dana, agent, nobody)


def test_nobody_is_admitted_by_default() -> None:
    assert not Access().admits("dana")


def test_the_seed_holds_only_what_the_environment_says() -> None:
    """The host lets the seed override the operator's file (hermes-host §17.9)."""
    assert home_channel_seed({}) is None
    assert home_channel_seed({"CANON_HOME_CHANNEL": " "}) is None
    assert home_channel_seed({"CANON_HOME_CHANNEL": "c1"}) == {"home_channel": {"chat_id": "c1", "name": "Canon Home"}}
    named = home_channel_seed({"CANON_HOME_CHANNEL": "c1", "CANON_HOME_CHANNEL_NAME": "Ops"})
    assert named == {"home_channel": {"chat_id": "c1", "name": "Ops"}}
