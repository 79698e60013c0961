"""Reads the platform's settings from the environment and the host's platform section (turns §8, §9.1; canon-wire §4.5).

Decides precedence (environment before configuration, blank is unset) and refuses unknown values with one line that
names the setting and what it accepts. Credentials are not its business.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from canon_hermes_plugin.domain.media.policy import Protection, protection
from canon_hermes_plugin.domain.verbosity import TURN_VERBOSITY, VerbositySetting

PLATFORM = "canon"
ALLOW_ALL_ENV = "CANON_ALLOW_ALL_USERS"
ALLOWED_USERS_ENV = "CANON_ALLOWED_USERS"
HOME_CHANNEL_ENV = "CANON_HOME_CHANNEL"
HOME_CHANNEL_NAME_ENV = "CANON_HOME_CHANNEL_NAME"
HOME_CHANNEL_LABEL = "Canon Home"

_TRUE = frozenset({"1", "true", "yes", "on"})


@dataclass(frozen=True, slots=True)
class Access:
    """Who may wake the agent, as far as this plugin decides it (hermes-host §4.2).

    Attributes:
        everyone: the operator opened the agent to every member of its conversations.
        allowed: sender ids that may wake it, ``*`` for all; ``None`` when no list is configured.
    """

    everyone: bool = False
    allowed: frozenset[str] | None = None

    @property
    def decided_here(self) -> bool:
        """Whether the intake decides; otherwise every decision stays with the host, pairing included."""
        return self.everyone or self.allowed is not None

    def admits(self, sender_id: str | None) -> bool:
        """Whether a sender, human or agent, may wake the agent. Meaningful only when :attr:`decided_here`."""
        if self.everyone:
            return True
        allowed = self.allowed or frozenset[str]()
        return "*" in allowed or (sender_id is not None and sender_id in allowed)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator chose for the platform, validated.

    Attributes:
        verbosity: ``auto`` follows the kind of conversation.
        protection: which inbound attachments are kept from the model.
        access: who may wake the agent.
        home_channel: the conversation of scheduled deliveries without a target.
        group_sessions_per_user: one session for each person of a group (the host's default).
        thread_sessions_per_user: the host's switch for threads.
    """

    verbosity: VerbositySetting = "auto"
    protection: Protection = "none"
    access: Access = Access()
    home_channel: str | None = None
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False


def load_settings(extra: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Settings:
    """Return the validated settings.

    Raises:
        ConfigurationError: a setting has an unknown value; the text names it and the accepted values.
    """
    env = os.environ if environ is None else environ
    return Settings(
        verbosity=cast("VerbositySetting", TURN_VERBOSITY.read(env, extra)),
        protection=protection(env, extra),
        access=load_access(env),
        home_channel=_text(env.get(HOME_CHANNEL_ENV)),
        group_sessions_per_user=_switch(extra.get("group_sessions_per_user"), default=True),
        thread_sessions_per_user=_switch(extra.get("thread_sessions_per_user"), default=False),
    )


def load_access(environ: Mapping[str, str] | None = None) -> Access:
    """Return who may wake the agent, from the plugin's variables and the host's gateway-wide ones."""
    env = os.environ if environ is None else environ
    lists = [env.get(name, "") for name in (ALLOWED_USERS_ENV, "GATEWAY_ALLOWED_USERS")]
    allowed = frozenset(item.strip() for text in lists for item in text.split(",") if item.strip())
    open_to_all = _is_true(env.get(ALLOW_ALL_ENV)) or (not allowed and _is_true(env.get("GATEWAY_ALLOW_ALL_USERS")))
    return Access(everyone=open_to_all, allowed=allowed or None)


def home_channel_seed(environ: Mapping[str, str] | None = None) -> dict[str, Any] | None:
    """Return the host's seed for the home channel; only what the environment really holds (hermes-host §2.1)."""
    env = os.environ if environ is None else environ
    channel = _text(env.get(HOME_CHANNEL_ENV))
    if channel is None:
        return None
    name = _text(env.get(HOME_CHANNEL_NAME_ENV)) or HOME_CHANNEL_LABEL
    return {"home_channel": {"chat_id": channel, "name": name}}


def _text(value: object) -> str | None:
    text = value.strip() if isinstance(value, str) else ""
    return text or None


def _switch(value: object, *, default: bool) -> bool:
    if isinstance(value, bool):
        return value
    return _is_true(value) if isinstance(value, str) else default


def _is_true(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() in _TRUE
