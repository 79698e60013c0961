"""The one table of settings: environment variables and platform extras, what they mean and who wins.

Code reads its names from here and ``docs/operations.md`` is checked against it, so the two cannot drift apart. It knows
names and precedence; the values come in as mappings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from canon_hermes_plugin.ports.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes:
        env: the environment variable, which wins over every other place.
        extras: keys of the platform's ``extra``, the first non-blank one counts.
        meaning: one line for people.
        secret: never shown, not even in part.
        default: what holds when nothing is set, for people.
    """

    env: str
    extras: tuple[str, ...] = ()
    meaning: str = ""
    secret: bool = False
    default: str = ""

    def from_environ(self, environ: Mapping[str, str]) -> str | None:
        """Return the trimmed variable; one that holds only blanks counts as unset."""
        return environ.get(self.env, "").strip() or None

    def from_extra(self, extra: Mapping[str, Any]) -> tuple[str, str] | None:
        """Return (key, trimmed value) of the first extra that is set.

        Raises:
            ConfigurationError: the value is not a plain scalar, or still an unexpanded ``${VARIABLE}``.
        """
        for key in self.extras:
            if (value := scalar_text(extra.get(key), f"platform extra {key}")) is not None:
                return key, value
        return None

    def value(self, environ: Mapping[str, str], extra: Mapping[str, Any]) -> str | None:
        """Return the setting: the environment variable, else the extra, else ``None``."""
        found = self.from_environ(environ)
        if found is not None:
            return found
        pair = self.from_extra(extra)
        return None if pair is None else pair[1]


def scalar_text(value: object, what: str) -> str | None:
    """Return the string form of a configured scalar, ``None`` for a missing or blank one.

    Raises:
        ConfigurationError: a list, mapping or truth value, or an unexpanded ``${VARIABLE}``. Quotes nothing of it.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigurationError(f"{what} must be text")
    text = str(value).strip()
    if text.startswith("${") and text.endswith("}"):
        raise ConfigurationError(f"{what} refers to an environment variable that is not set")
    return text or None


API_KEY = Setting(
    "CANON_API_KEY",
    ("api_key", "canon_api_key", "CANON_API_KEY"),
    "Agent key for direct mode. Needs CANON_ENVIRONMENT_ID. Wins over every profile.",
    secret=True,
)
ENVIRONMENT_ID = Setting(
    "CANON_ENVIRONMENT_ID",
    ("environment_id", "canon_environment_id", "CANON_ENVIRONMENT_ID"),
    "Canon environment the direct key belongs to: canon-prod-v1 or canon-dev-v1. Never assumed.",
)
BASE_URL = Setting(
    "CANON_BASE_URL",
    ("base_url", "canon_base_url", "CANON_BASE_URL"),
    "REST address, only together with a direct key.",
    default="the environment's packaged value",
)
STREAM_URL = Setting(
    "CANON_STREAM_URL",
    ("stream_url", "canon_stream_url", "CANON_STREAM_URL"),
    "Event stream address, only together with a direct key.",
    default="the environment's packaged value",
)
RTDB_URL = Setting(
    "CANON_RTDB_URL",
    ("rtdb_url", "canon_rtdb_url", "CANON_RTDB_URL"),
    "Realtime database address, only together with a direct key. Checked, never contacted.",
    default="the environment's packaged value",
)
FIREBASE_API_KEY = Setting(
    "CANON_FIREBASE_API_KEY",
    ("firebase_api_key", "canon_firebase_api_key", "CANON_FIREBASE_API_KEY"),
    "Public web key of the environment, only together with a direct key.",
    default="the environment's packaged value",
)
AGENT = Setting(
    "CANON_AGENT",
    ("agent", "profile", "canon_agent", "CANON_AGENT"),
    "Name of the stored profile to use.",
    default="the only usable profile",
)
HOME = Setting("CANON_HOME", (), "Directory of profiles, pending registrations and ledgers.", default="~/.canon")
AGENTS_FILE = Setting(
    "CANON_AGENTS_FILE", (), "Full path of the profile file.", default="agents.json in the Canon home"
)
AGENTS_PATH = Setting("CANON_AGENTS_PATH", (), "Older name of CANON_AGENTS_FILE, which wins over it.")
BOOTSTRAP = Setting(
    "CANON_AGENTS_JSON_BOOTSTRAP",
    (),
    "Profiles to add when their names are absent: the text of a profile file, or base64 of it.",
    secret=True,
)

DIRECT_SETTINGS = (API_KEY, ENVIRONMENT_ID, BASE_URL, STREAM_URL, RTDB_URL, FIREBASE_API_KEY)
"""What together makes a direct connection."""

CREDENTIAL_SETTINGS = (
    *DIRECT_SETTINGS,
    AGENT,
    HOME,
    AGENTS_FILE,
    AGENTS_PATH,
    BOOTSTRAP,
)


ALLOWED_USERS = Setting("CANON_ALLOWED_USERS", (), "Ids of the people and agents that may wake the agent, with commas.")
ALLOW_ALL_USERS = Setting(
    "CANON_ALLOW_ALL_USERS", (), "true: everyone in the agent's conversations may wake it. install sets it when unset."
)
HOME_CHANNEL = Setting(
    "CANON_HOME_CHANNEL", (), "Conversation of scheduled deliveries without a target, and of canon-hermes send."
)
HOME_CHANNEL_NAME = Setting("CANON_HOME_CHANNEL_NAME", (), "Name shown for the home channel.", default="Canon Home")
TURN_VERBOSITY = Setting(
    "CANON_TURN_VERBOSITY",
    ("turn_verbosity", "canon_turn_verbosity", "CANON_TURN_VERBOSITY"),
    "verbose shows the growing answer and the activity, quiet only the final answer; auto: quiet in groups.",
    default="auto",
)
IMAGE_DELIVERY = Setting(
    "CANON_INBOUND_IMAGE_DELIVERY",
    ("inbound_image_delivery", "CANON_INBOUND_IMAGE_DELIVERY"),
    "trusted-only keeps inbound images from the model; trusted tools still read them. Else model.",
    default="model",
)
VISUAL_DELIVERY = Setting(
    "CANON_INBOUND_VISUAL_MEDIA_DELIVERY",
    ("inbound_visual_media_delivery", "CANON_INBOUND_VISUAL_MEDIA_DELIVERY"),
    "trusted-only keeps inbound images and PDFs from the model; wins over the image setting. Else model.",
    default="model",
)

PLATFORM_SETTINGS = (
    ALLOWED_USERS,
    ALLOW_ALL_USERS,
    HOME_CHANNEL,
    HOME_CHANNEL_NAME,
    TURN_VERBOSITY,
    IMAGE_DELIVERY,
    VISUAL_DELIVERY,
)
HOST_SETTINGS = (
    Setting("GATEWAY_ALLOWED_USERS", (), "The host's list for every platform; counts for Canon as well."),
    Setting("GATEWAY_ALLOW_ALL_USERS", (), "The host's open door for every platform, when no list is set anywhere."),
    Setting("GATEWAY_MULTIPLEX_PROFILES", (), "Must not be true: the platform refuses to serve several agents."),
    Setting("HERMES_HOME", (), "The Hermes profile that install, setup, doctor and send act on."),
    Setting("NO_COLOR", (), "Anything: the command line does not colour its output."),
)

SETTINGS = (*CREDENTIAL_SETTINGS, *PLATFORM_SETTINGS, *HOST_SETTINGS)
"""Every setting, in the order of the documentation."""


def documented() -> str:
    """Return the table of ``docs/operations.md``."""
    rows = ["| variable | platform extra | default | meaning |", "| --- | --- | --- | --- |"]
    for setting in SETTINGS:
        extras = ", ".join(f"`{key}`" for key in setting.extras) or "none"
        meaning = f"{setting.meaning} **Secret.**" if setting.secret else setting.meaning
        rows.append(f"| `{setting.env}` | {extras} | {setting.default or 'none'} | {meaning} |")
    return "\n".join(rows)
