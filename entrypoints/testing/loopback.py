"""The loopback Canon by the name the kit gives it."""

from __future__ import annotations

from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon


def loopback_canon(*, port: int = 0, heartbeat: float = 15.0) -> LoopbackCanon:
    """Return the stand-in for Canon over real HTTP, as a context manager; ``environment()`` points the plugin to it.

    Args:
        port: the loopback port; a free one by default.
        heartbeat: seconds between two heartbeats of the event stream.
    """
    return LoopbackCanon(port=port, heartbeat=heartbeat)
