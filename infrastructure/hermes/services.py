"""What the adapter works with: everything that outlives one adapter instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from canon_hermes_plugin.domain.turns.coordinator import TurnCoordinator
from canon_hermes_plugin.domain.turns.model import Verbosity
from canon_hermes_plugin.infrastructure.hermes.decisions import Decisions
from canon_hermes_plugin.infrastructure.hermes.lanes import HermesLanes
from canon_hermes_plugin.infrastructure.hermes.runtime import CanonRuntime
from canon_hermes_plugin.ports.host import ConversationKind
from canon_hermes_plugin.ports.media import MediaFetcher


@dataclass(frozen=True, slots=True)
class Services:
    """The parts an adapter translates between.

    Attributes:
        turns: owns the open turns.
        lanes: owns what waits for a session.
        runtime: owns the connection.
        fetcher: downloads what the host wants sent from an address.
        verbosity: resolves a turn's verbosity from its kind of conversation.
        chat_info: returns the display name and type of a conversation, as the host names types.
        decisions: owns what people are asked.
        forget_media: drops the trusted bytes kept for a message (conversation, message id).
        claim: names what only one gateway of a machine may use at a time, without telling it.
        background: takes out what was said in a conversation without waking anybody (turns §1.4).
    """

    turns: TurnCoordinator
    lanes: HermesLanes
    runtime: CanonRuntime
    fetcher: MediaFetcher
    decisions: Decisions
    verbosity: Callable[[ConversationKind], Verbosity]
    chat_info: Callable[[str], Mapping[str, Any]]
    claim: str
    background: Callable[[str], str | None]
    forget_media: Callable[[str, str], object]
