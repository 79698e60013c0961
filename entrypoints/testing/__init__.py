"""The test kit: the whole plugin without Canon, Hermes and waiting, and every stand-in it is made of.

:class:`CanonHermes` is the plugin on in-memory twins with a scripted host; :func:`loopback_canon` is Canon over real
HTTP; a scripted model and a real gateway go with it. Each twin passes the same contract suite as the adapter it stands
for. Names are loaded when they are used, so importing this package costs nothing::

    from canon_hermes_plugin.testing import CanonHermes, MemoryCanon

What each does is told by its own docstring; ``docs/testing.md`` is for who tests on it, ``docs/sandbox.md`` shows the
loopback Canon at work.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from canon_hermes_plugin.infrastructure.memory.access import MemoryAccess
    from canon_hermes_plugin.infrastructure.memory.approval_store import MemoryLedger
    from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
    from canon_hermes_plugin.infrastructure.memory.canon_stream import MemoryCanonStream
    from canon_hermes_plugin.infrastructure.memory.checkpoints import MemoryCheckpoints
    from canon_hermes_plugin.infrastructure.memory.faults import Fault
    from canon_hermes_plugin.infrastructure.memory.handler import (
        MemoryEagerHandler,
        MemoryHandler,
        MemoryWaitingHandler,
    )
    from canon_hermes_plugin.infrastructure.memory.lanes import MemoryLanes
    from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaCache, MemoryMediaFetcher
    from canon_hermes_plugin.infrastructure.memory.outbox import MemoryOutbox
    from canon_hermes_plugin.infrastructure.memory.profiles import MemoryPendingRegistrations, MemoryProfileStore
    from canon_hermes_plugin.infrastructure.memory.questions import HeldCommand, MemoryAskingTurn, MemoryQuestions
    from canon_hermes_plugin.infrastructure.memory.receipts import MemoryReceipts
    from canon_hermes_plugin.infrastructure.memory.registration import MemoryRegistration
    from canon_hermes_plugin.infrastructure.memory.session import MemorySession
    from canon_hermes_plugin.infrastructure.memory.silence import MemorySilencer, MemorySilenceReporter, QuietTurn
    from canon_hermes_plugin.infrastructure.memory.time import RecordedTasks, SeededIds, VirtualClock
    from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewayError, GatewaySettings
    from canon_hermes_plugin.infrastructure.sandbox.model import Fail, Gate, Pause, ScriptedModel, ToolCall
    from canon_hermes_plugin.infrastructure.sandbox.participant import Participant
    from canon_hermes_plugin.infrastructure.sandbox.records import Person, SandboxIdentity
    from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
    from canon_hermes_plugin.infrastructure.sandbox.session import Chat
    from canon_hermes_plugin.testing.canon import FakeCanon
    from canon_hermes_plugin.testing.host import ScriptedHost
    from canon_hermes_plugin.testing.kit import CanonHermes
    from canon_hermes_plugin.testing.loopback import loopback_canon
    from canon_hermes_plugin.testing.script import Script
    from canon_hermes_plugin.testing.turn import CanonTurn

__all__ = [
    "CanonHermes",
    "CanonTurn",
    "Chat",
    "Fail",
    "FakeCanon",
    "Fault",
    "Gate",
    "Gateway",
    "GatewayError",
    "GatewaySettings",
    "HeldCommand",
    "LoopbackCanon",
    "MemoryAccess",
    "MemoryAskingTurn",
    "MemoryCanon",
    "MemoryCanonStream",
    "MemoryCheckpoints",
    "MemoryEagerHandler",
    "MemoryHandler",
    "MemoryLanes",
    "MemoryLedger",
    "MemoryMediaCache",
    "MemoryMediaFetcher",
    "MemoryOutbox",
    "MemoryPendingRegistrations",
    "MemoryProfileStore",
    "MemoryQuestions",
    "MemoryReceipts",
    "MemoryRegistration",
    "MemorySession",
    "MemorySilenceReporter",
    "MemorySilencer",
    "MemoryWaitingHandler",
    "Participant",
    "Pause",
    "Person",
    "QuietTurn",
    "RecordedTasks",
    "SandboxIdentity",
    "Script",
    "ScriptedHost",
    "ScriptedModel",
    "SeededIds",
    "ToolCall",
    "VirtualClock",
    "loopback_canon",
]

_HOMES = {
    "infrastructure.memory.approval_store": ("MemoryLedger",),
    "infrastructure.memory.canon": ("MemoryCanon",),
    "infrastructure.memory.canon_stream": ("MemoryCanonStream",),
    "infrastructure.memory.checkpoints": ("MemoryCheckpoints",),
    "infrastructure.memory.faults": ("Fault",),
    "infrastructure.memory.access": ("MemoryAccess",),
    "infrastructure.memory.handler": (
        "MemoryEagerHandler",
        "MemoryHandler",
        "MemoryWaitingHandler",
    ),
    "infrastructure.memory.questions": (
        "HeldCommand",
        "MemoryAskingTurn",
        "MemoryQuestions",
    ),
    "infrastructure.memory.receipts": ("MemoryReceipts",),
    "infrastructure.memory.silence": (
        "MemorySilenceReporter",
        "MemorySilencer",
        "QuietTurn",
    ),
    "infrastructure.memory.lanes": ("MemoryLanes",),
    "infrastructure.memory.media": ("MemoryMediaCache", "MemoryMediaFetcher"),
    "infrastructure.memory.outbox": ("MemoryOutbox",),
    "infrastructure.memory.profiles": ("MemoryPendingRegistrations", "MemoryProfileStore"),
    "infrastructure.memory.registration": ("MemoryRegistration",),
    "infrastructure.memory.session": ("MemorySession",),
    "infrastructure.memory.time": ("RecordedTasks", "SeededIds", "VirtualClock"),
    "infrastructure.sandbox.gateway": ("Gateway", "GatewayError", "GatewaySettings"),
    "infrastructure.sandbox.model": ("Fail", "Gate", "Pause", "ScriptedModel", "ToolCall"),
    "infrastructure.sandbox.participant": ("Participant",),
    "infrastructure.sandbox.records": ("Person", "SandboxIdentity"),
    "infrastructure.sandbox.server": ("LoopbackCanon",),
    "infrastructure.sandbox.session": ("Chat",),
    "testing.canon": ("FakeCanon",),
    "testing.host": ("ScriptedHost",),
    "testing.kit": ("CanonHermes",),
    "testing.loopback": ("loopback_canon",),
    "testing.script": ("Script",),
    "testing.turn": ("CanonTurn",),
}
_HOME_OF = {name: f"canon_hermes_plugin.{home}" for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOME_OF)
