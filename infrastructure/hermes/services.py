"""What the adapter works with: everything that outlives one adapter instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from canon_hermes_plugin.domain.turns.coordinator import TurnCoordinator
from canon_hermes_plugin.domain.turns.model import Verbosity
from canon_hermes_plugin.infrastructure.hermes.config import Settings
from canon_hermes_plugin.infrastructure.hermes.lanes import HermesLanes
from canon_hermes_plugin.infrastructure.hermes.runtime import CanonRuntime
from canon_hermes_plugin.ports.host import ConversationKind


class Facts(Protocol):
    """What is known about conversations."""

    def kind(self, conversation_id: str) -> ConversationKind:
        """Return the conversation's kind."""
        ...

    def name(self, conversation_id: str) -> str | None:
        """Return the conversation's display name, untrusted."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """The parts an adapter translates between."""

    settings: Settings
    turns: TurnCoordinator
    lanes: HermesLanes
    runtime: CanonRuntime
    verbosity: Callable[[str, ConversationKind], Verbosity]
    chat_info: Callable[[str], Mapping[str, Any]]
