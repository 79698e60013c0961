"""The values of a turn: what opens it, what the host offers it, what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from canon_hermes_plugin.ports.host import ConversationKind

Verbosity = Literal["verbose", "quiet"]
Outcome = Literal["success", "failure", "cancelled"]


@dataclass(frozen=True, slots=True)
class TurnStart:
    """What is known when the host begins to process one message.

    Attributes:
        conversation_id: Canon conversation.
        session_key: the host's routing key of the session.
        kind: the conversation's kind as the one resolver sees it.
        message_id: the real Canon id of the triggering message; ``None`` for resumed or synthetic turns.
        responder: the human who may answer what this turn asks; ``None`` falls back to the owner.
        verbosity: resolved at opening from the setting and the kind.
    """

    conversation_id: str
    session_key: str
    kind: ConversationKind = "unknown"
    message_id: str | None = None
    responder: str | None = None
    verbosity: Verbosity = "verbose"


@dataclass(frozen=True, slots=True)
class HostText:
    """One text the host hands over through ``send`` or ``edit_message`` (turns §4.1).

    Attributes:
        content: the bubble's full text.
        expect_edits: the host's streaming marker (``E``).
        notify: the host's delivery marker (``N``).
        finalize: ``edit_message(finalize=True)``, or ``None`` when this is a ``send``.
        bubble: the id an edit names; ``None`` for a send.
        reply_to: the host's reply target.
        job_id: set on scheduled deliveries.
        foreign_loop: the call came from another event loop than the adapter's: an explicit tool send.
        metadata: allow-listed caller metadata (``canon_metadata``).
        options: allow-listed caller options (``canon_options``).
    """

    conversation_id: str
    content: str
    expect_edits: bool = False
    notify: bool = False
    finalize: bool | None = None
    bubble: str | None = None
    reply_to: str | None = None
    job_id: str | None = None
    foreign_loop: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class HostMedia:
    """One file the host sends. ``data`` was read and bounded by the adapter (at most 10,485,760 bytes)."""

    conversation_id: str
    data: bytes
    mime_type: str
    method: Literal["image", "audio", "video", "file"]
    file_name: str | None = None
    caption: str | None = None
    duration_ms: int | None = None
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class Ack:
    """The answer to one host call. ``message_id`` is never blank on success (field fault 1).

    Attributes:
        ok: whether the host may consider its text taken.
        message_id: the turn id for staged text, the server id for durable text, a fresh id for acknowledged chatter.
        error: one line for the host's log when not ``ok``.
        retryable: whether the same call may be repeated.
        facts: result flags of turns §12 (``suppressedAuxiliary``, ``streaming``, ``finalPending``, ``silenced``, …).
    """

    ok: bool
    message_id: str = ""
    error: str | None = None
    retryable: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ToolStart:
    """A tool call begins (host hook ``pre_tool_call``)."""

    name: str
    call_id: str | None = None
    arguments: object = None


@dataclass(frozen=True, slots=True)
class ToolEnd:
    """A tool call ended (host hook ``post_tool_call``)."""

    name: str
    call_id: str | None = None
    arguments: object = None
    result: object = None
    status: str = "ok"
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SubagentEnd:
    """A foreground sub-agent ended (host hook ``subagent_stop``)."""

    session_id: str | None = None
    role: str | None = None
    summary: object = None
    status: str = "completed"
    duration_ms: int | None = None
