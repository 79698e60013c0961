"""Stand-ins for your own tests: in-memory twins of the ports, the loopback Canon, a scripted model, a real gateway.

Each twin passes the same contract suite as the adapter it stands for. Names are loaded when they are used, so importing
this module costs nothing::

    from canon_hermes_plugin.testing import LoopbackCanon, MemoryCanon

What each does is told by its own docstring; ``docs/sandbox.md`` shows the loopback Canon at work.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from canon_hermes_plugin.infrastructure.memory.approval_store import MemoryLedger
    from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
    from canon_hermes_plugin.infrastructure.memory.canon_stream import MemoryCanonStream
    from canon_hermes_plugin.infrastructure.memory.faults import Fault
    from canon_hermes_plugin.infrastructure.memory.lanes import MemoryLanes
    from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaCache, MemoryMediaFetcher
    from canon_hermes_plugin.infrastructure.memory.profiles import MemoryPendingRegistrations, MemoryProfileStore
    from canon_hermes_plugin.infrastructure.memory.registration import MemoryRegistration
    from canon_hermes_plugin.infrastructure.memory.time import RecordedTasks, SeededIds, VirtualClock
    from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewayError, GatewaySettings
    from canon_hermes_plugin.infrastructure.sandbox.model import Fail, Gate, Pause, ScriptedModel, ToolCall
    from canon_hermes_plugin.infrastructure.sandbox.participant import Participant
    from canon_hermes_plugin.infrastructure.sandbox.records import Person, SandboxIdentity
    from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
    from canon_hermes_plugin.infrastructure.sandbox.session import Chat

__all__ = [
    "Chat",
    "Fail",
    "Fault",
    "Gate",
    "Gateway",
    "GatewayError",
    "GatewaySettings",
    "LoopbackCanon",
    "MemoryCanon",
    "MemoryCanonStream",
    "MemoryLanes",
    "MemoryLedger",
    "MemoryMediaCache",
    "MemoryMediaFetcher",
    "MemoryPendingRegistrations",
    "MemoryProfileStore",
    "MemoryRegistration",
    "Participant",
    "Pause",
    "Person",
    "RecordedTasks",
    "SandboxIdentity",
    "ScriptedModel",
    "SeededIds",
    "ToolCall",
    "VirtualClock",
]

_HOMES = {
    "memory.approval_store": ("MemoryLedger",),
    "memory.canon": ("MemoryCanon",),
    "memory.canon_stream": ("MemoryCanonStream",),
    "memory.faults": ("Fault",),
    "memory.lanes": ("MemoryLanes",),
    "memory.media": ("MemoryMediaCache", "MemoryMediaFetcher"),
    "memory.profiles": ("MemoryPendingRegistrations", "MemoryProfileStore"),
    "memory.registration": ("MemoryRegistration",),
    "memory.time": ("RecordedTasks", "SeededIds", "VirtualClock"),
    "sandbox.gateway": ("Gateway", "GatewayError", "GatewaySettings"),
    "sandbox.model": ("Fail", "Gate", "Pause", "ScriptedModel", "ToolCall"),
    "sandbox.participant": ("Participant",),
    "sandbox.records": ("Person", "SandboxIdentity"),
    "sandbox.server": ("LoopbackCanon",),
    "sandbox.session": ("Chat",),
}
_HOME_OF = {name: f"canon_hermes_plugin.infrastructure.{home}" for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOME_OF)
