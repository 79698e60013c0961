"""Which turn the running code belongs to.

The host awaits ``on_processing_start`` inside the lifecycle's own task, so a value set there is seen by the final send,
by the stream consumer's task and by agent and tool threads, while command replies, scheduled jobs and other lifecycles
do not see it (turns §14 H39). This module knows nothing about what a turn does.
"""

from __future__ import annotations

from contextvars import ContextVar

from canon_hermes_plugin.domain.turns.turn import Turn

current_turn: ContextVar[Turn | None] = ContextVar("canon_current_turn", default=None)
"""The turn of the running lifecycle. A closed turn counts as no owner."""
