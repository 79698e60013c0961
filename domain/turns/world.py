"""What the turn services need of the world, in one value, so that each of them takes one parameter for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from canon_hermes_plugin.ports.canon import (
    MediaPort,
    MessageSink,
    NodePort,
    TurnStatePort,
    TypingPort,
)
from canon_hermes_plugin.ports.host import HostLanes
from canon_hermes_plugin.ports.outbox import Outbox
from canon_hermes_plugin.ports.time import Clock, IdSource, Tasks


class TurnCanon(MessageSink, NodePort, TurnStatePort, TypingPort, MediaPort, Protocol):
    """The part of Canon's request side that turns use."""


@dataclass(frozen=True, slots=True)
class World:
    """The ports of the turn services. ``tasks`` belongs to them alone: closing the coordinator drains it."""

    canon: TurnCanon
    lanes: HostLanes
    clock: Clock
    ids: IdSource
    tasks: Tasks
    outbox: Outbox
