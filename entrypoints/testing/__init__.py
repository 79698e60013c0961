"""The test kit: the whole plugin without Canon, without Hermes and without waiting (docs/testing.md).

Importing this package is cheap; what it offers is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon as LoopbackCanon
    from canon_hermes_plugin.testing.canon import FakeCanon as FakeCanon
    from canon_hermes_plugin.testing.host import ScriptedHost as ScriptedHost
    from canon_hermes_plugin.testing.kit import CanonHermes as CanonHermes
    from canon_hermes_plugin.testing.turn import CanonTurn as CanonTurn

__all__ = ["CanonHermes", "CanonTurn", "FakeCanon", "LoopbackCanon", "ScriptedHost", "loopback_canon"]

_HOMES = {
    "CanonHermes": "canon_hermes_plugin.testing.kit",
    "CanonTurn": "canon_hermes_plugin.testing.turn",
    "FakeCanon": "canon_hermes_plugin.testing.canon",
    "LoopbackCanon": "canon_hermes_plugin.infrastructure.sandbox.server",
    "ScriptedHost": "canon_hermes_plugin.testing.host",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def loopback_canon(*, port: int = 0, heartbeat: float = 15.0) -> LoopbackCanon:
    """Return the stand-in for Canon over real HTTP, as a context manager; ``environment()`` points the plugin to it.

    Args:
        port: the loopback port; a free one by default.
        heartbeat: seconds between two heartbeats of the event stream.
    """
    from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon

    return LoopbackCanon(port=port, heartbeat=heartbeat)
