"""Decides how much of a turn is shown while it runs (turns §8), and how a setting is looked up.

It refuses to know what a turn is and where the environment and the platform extra come from: both are passed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from canon_hermes_plugin.domain.turns.model import Verbosity
from canon_hermes_plugin.ports.errors import ConfigurationError
from canon_hermes_plugin.ports.host import ConversationKind

VerbositySetting = Literal["auto", "verbose", "quiet"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting with a closed set of values.

    Attributes:
        variable: its environment variable; a non-blank value there wins.
        keys: its names in the platform extra, in order of preference.
        values: the allowed values, the default first.
    """

    variable: str
    keys: tuple[str, ...]
    values: tuple[str, ...]

    def read(self, environment: Mapping[str, str], extra: Mapping[str, Any]) -> str:
        """Return the configured value, trimmed and case-folded; unset or blank gives the default.

        Raises:
            ConfigurationError: the value is none of the allowed ones; the text names the setting and them.
        """
        found: object = environment.get(self.variable)
        for key in (*self.keys, self.variable):
            if _present(found):
                break
            found = extra.get(key)
        if not _present(found):
            return self.values[0]
        value = found.strip().casefold() if isinstance(found, str) else None
        if value not in self.values:
            allowed = ", ".join(self.values)
            raise ConfigurationError(f"{self.variable} ({self.keys[0]}) must be one of {allowed}")
        return value


TURN_VERBOSITY: Final = Choice(
    "CANON_TURN_VERBOSITY", ("turn_verbosity", "canon_turn_verbosity"), ("auto", "verbose", "quiet")
)


def resolve_verbosity(configured: object, kind: ConversationKind) -> Verbosity:
    """Return the verbosity of a turn that starts now.

    Args:
        configured: the setting; anything but ``verbose`` and ``quiet`` counts as ``auto``.
        kind: the conversation's kind. By it, groups are quiet and everything else is verbose, the unknown included.
    """
    value = configured.strip().casefold() if isinstance(configured, str) else ""
    if value == "verbose":
        return "verbose"
    if value == "quiet":
        return "quiet"
    return "quiet" if kind == "group" else "verbose"


def _present(value: object) -> bool:
    return value is not None and bool(str(value).strip())
