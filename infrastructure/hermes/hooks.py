"""The host's hooks, brought to the turn whose context they run in (turns §6.4).

Hooks run on agent and tool threads. They do no I/O, return nothing and never raise; which turn they belong to is read
from the context they inherit, never guessed. Sub-agents run without that context and are not recorded.
"""

from __future__ import annotations

import logging
from typing import Any, Protocol

from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.model import SubagentEnd, ToolEnd, ToolStart
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.hermes.live import LIVE

_LOG = logging.getLogger(__name__)


class Activity(Protocol):
    """What the hooks report to; every method is thread-safe and ignores a closed turn."""

    def tool_started(self, turn: Turn, start: ToolStart) -> None:
        """A tool call begins in ``turn``."""
        ...

    def tool_finished(self, turn: Turn, end: ToolEnd) -> None:
        """A tool call ended."""
        ...

    def subagent_finished(self, turn: Turn, end: SubagentEnd) -> None:
        """A foreground sub-agent ended."""
        ...

    def answer_confirmed(self, turn: Turn, text: str) -> None:
        """The run's authoritative final text."""
        ...


class Queue(Protocol):
    """What wants to know how far the runs of sessions are; thread-safe."""

    def run_recorded(self, key: str) -> None:
        """The host asks the model: what the run is about is in the host's history."""
        ...

    def run_finished(self, key: str, host_session: str | None) -> bool:
        """A run ended; ``False`` for another agent's that works inside the session's."""
        ...


class Hooks:
    """The callbacks the plugin registers; one instance for each process, served by the connected platform."""

    def __init__(self) -> None:
        self._activity: Activity | None = None
        self._queue: Queue | None = None

    def serve(self, activity: Activity, queue: Queue) -> None:
        """Say who listens: the turns, and the queue behind their sessions."""
        self._activity = activity
        self._queue = queue

    def register(self, ctx: Any) -> None:  # noqa: ANN401 - the host's untyped plugin context
        """Register every callback; the host clears its registry before each discovery pass."""
        register = getattr(ctx, "register_hook", None)
        if not callable(register):
            _LOG.debug("this host has no hooks: turns have no activity trail")
            return
        for name, callback in (
            ("pre_tool_call", self.pre_tool_call),
            ("post_tool_call", self.post_tool_call),
            ("subagent_stop", self.subagent_stop),
            ("pre_api_request", self.pre_api_request),
            ("post_llm_call", self.post_llm_call),
            ("post_approval_response", LIVE.approval_closed),
        ):
            register(name, callback)

    def pre_tool_call(
        self, tool_name: str = "tool", args: object = None, tool_call_id: object = None, **_: object
    ) -> None:
        """A tool call begins."""
        turn, activity = current_turn.get(), self._activity
        if turn is not None and activity is not None:
            activity.tool_started(turn, ToolStart(_text(tool_name) or "tool", _text(tool_call_id), args))

    def post_tool_call(self, tool_name: str = "tool", **kwargs: object) -> None:
        """A tool call ended."""
        turn, activity = current_turn.get(), self._activity
        if turn is None or activity is None:
            return
        end = ToolEnd(
            name=_text(tool_name) or "tool",
            call_id=_text(kwargs.get("tool_call_id")),
            arguments=kwargs.get("args"),
            result=kwargs.get("result"),
            status=_text(kwargs.get("status")) or "ok",
            duration_ms=_milliseconds(kwargs.get("duration_ms")),
        )
        activity.tool_finished(turn, end)

    def subagent_stop(self, **kwargs: object) -> None:
        """A foreground sub-agent ended."""
        turn, activity = current_turn.get(), self._activity
        if turn is None or activity is None:
            return
        end = SubagentEnd(
            session_id=_text(kwargs.get("child_session_id")),
            role=_text(kwargs.get("child_role")),
            summary=kwargs.get("child_summary"),
            status=_text(kwargs.get("child_status")) or "completed",
            duration_ms=_milliseconds(kwargs.get("duration_ms")),
        )
        activity.subagent_finished(turn, end)

    def pre_api_request(self, **_: object) -> None:
        """The model is asked; before the first time the host has written the message into its history."""
        turn, queue = current_turn.get(), self._queue
        if turn is not None and queue is not None:
            queue.run_recorded(turn.start.session_key)

    def post_llm_call(self, assistant_response: object = None, session_id: object = None, **_: object) -> None:
        """A run ended with this text; what was steered in too late comes back to the queue.

        Other agents run in the turn's context too: a job the agent runs at once, for one. Their text is no answer.
        """
        turn, activity = current_turn.get(), self._activity
        if turn is None or activity is None or self._queue is None:
            return
        if self._queue.run_finished(turn.start.session_key, _text(session_id)) and isinstance(assistant_response, str):
            activity.answer_confirmed(turn, assistant_response)


def _text(value: object) -> str | None:
    text = value.strip() if isinstance(value, str) else ""
    return text or None


def _milliseconds(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return max(0, int(value))


HOOKS = Hooks()
"""The process's hooks: the host keeps callbacks by reference, whatever adapter is connected."""
