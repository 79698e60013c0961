"""The values the loopback Canon keeps and shows: people, messages, requests, answers.

Decides nothing. Everything here is plain data that tests and the ``sandbox`` command read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard, cast

Json = dict[str, Any]


def as_object(value: Any) -> Json:  # noqa: ANN401 - any decoded JSON value
    """Return ``value`` when it is a JSON object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def _is_list(value: Any) -> TypeGuard[list[Any]]:  # noqa: ANN401 - any decoded JSON value
    return isinstance(value, list)


def as_list(value: Any) -> list[Any]:  # noqa: ANN401 - any decoded JSON value
    """Return ``value`` when it is a JSON array, else an empty one."""
    return value if _is_list(value) else []


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who can write into a conversation. ``kind`` is Canon's ``senderType``."""

    id: str
    name: str
    kind: str = "human"


@dataclass(frozen=True, slots=True)
class SandboxIdentity:
    """Who this Canon claims to be and whom it serves (canon-wire §1.1, §1.2, §11.2).

    Attributes:
        environment_id: a *known* environment id; the plugin refuses all others.
        project_id: the project id that belongs to it.
        api_key: the only bearer token accepted.
        agent_id: the agent behind that token.
        agent_name: its display name.
        owner: the human who owns the agent.
    """

    environment_id: str = "canon-dev-v1"
    project_id: str = "canonmail-dev"
    api_key: str = "agk_live_loopback_sandbox"
    agent_id: str = "agent_sandbox"
    agent_name: str = "Hermes"
    owner: Person = field(default_factory=lambda: Person("user_owner", "Olga"))


@dataclass(slots=True)
class DurableMessage:
    """One stored message.

    Attributes:
        id: the client's ``messageId`` when it sent one, else one of ours.
        number: position in the whole store, from 1.
        fields: the message object as it travels on the stream.
        fingerprint: what a replay of the same id must equal.
        salvaged: made by Canon from an abandoned node (canon-wire §1.10).
    """

    id: str
    conversation_id: str
    number: int
    sender_id: str
    text: str
    fields: Json
    fingerprint: str = ""
    salvaged: bool = False

    @property
    def metadata(self) -> Json:
        """The message's metadata object (empty when it has none)."""
        return as_object(self.fields.get("metadata"))

    @property
    def final(self) -> bool:
        """Whether this message ends a turn, so that it notifies."""
        return self.metadata.get("turnSemantics") == "turn_complete"


@dataclass(slots=True)
class RequestRecord:
    """One HTTP request as it arrived, and what became of it.

    Attributes:
        number: order of arrival, from 1.
        route: our short route name, for example ``send`` (see :data:`.faults.ROUTES`).
        body: the decoded JSON body, or ``None``.
        status: the status answered; ``None`` while open or when the connection was dropped.
        fault: the name of the injected fault, when one applied.
        handled: whether the request took effect in the store.
        at_ms: arrival, milliseconds of the server's clock.
    """

    number: int
    route: str
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Json | None
    at_ms: int
    status: int | None = None
    fault: str | None = None
    handled: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What a handler answers: a status and a JSON body (or raw ``content``)."""

    status: int = 200
    body: Json = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes | None = None
    media_type: str = "application/json"


class RefusedError(Exception):
    """A handler refuses the request with ``status`` and Canon's error body."""

    def __init__(self, status: int, error: str, code: str | None = None) -> None:
        super().__init__(error)
        self.reply = Reply(status, {"error": error} if code is None else {"error": error, "code": code})


LogName = Literal["typing", "turns", "statuses", "nodes", "notifications", "dispositions", "reads", "verbs"]


@dataclass(slots=True)
class Logs:
    """The logs that are kept apart (canon-wire §11.1 row 10). Each holds request bodies in order of arrival."""

    typing: list[Json] = field(default_factory=list[Json])
    turns: list[Json] = field(default_factory=list[Json])
    statuses: list[Json] = field(default_factory=list[Json])
    nodes: list[Json] = field(default_factory=list[Json])
    notifications: list[Json] = field(default_factory=list[Json])
    dispositions: list[Json] = field(default_factory=list[Json])
    reads: list[Json] = field(default_factory=list[Json])
    verbs: list[Json] = field(default_factory=list[Json])
