"""Canon, model and gateway together, as one object for tests and for ``canon-hermes sandbox``.

Decides: when the gateway counts as connected, when an answer is complete, and that a dead gateway ends every wait at
once with the end of its log. Knows nothing of terminals.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Protocol, TypeVar

from canon_hermes_plugin.infrastructure.sandbox.gateway import GatewayError
from canon_hermes_plugin.infrastructure.sandbox.records import DurableMessage, Json
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon

CONNECT_LIMIT = 60.0
ANSWER_LIMIT = 90.0
CLOSED_STATES = frozenset({"completed", "interrupted"})
_SLICE = 0.25

Result = TypeVar("Result")
_conversations = count(1)


class LateError(GatewayError):
    """What was waited for did not come within ``limit`` seconds; the gateway lives."""

    def __init__(self, message: str, log: str, limit: float) -> None:
        super().__init__(message, log)
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Answer:
    """What the agent posted for one message: every durable message up to and including the one that ended the turn."""

    asked: str
    messages: tuple[DurableMessage, ...]

    @property
    def final(self) -> DurableMessage:
        """The message that ended the turn."""
        return self.messages[-1]

    @property
    def text(self) -> str:
        """The texts of all messages, joined by newlines."""
        return "\n".join(message.text for message in self.messages)


class Agent(Protocol):
    """Whatever answers: a gateway of ours, or one that somebody else runs."""

    @property
    def running(self) -> bool:
        """Whether it can still answer."""
        ...

    def log(self, lines: int = 40) -> str:
        """Return the end of its log."""
        ...


class ForeignAgent:
    """An agent somebody else runs: always believed to live, its log is not ours."""

    running = True

    def log(self, lines: int = 40) -> str:
        del lines
        return "(the agent writes its own log)"


class Chat:
    """Talks to the agent behind a gateway. Give each test a conversation of its own: ``direct()``, ``group()``."""

    def __init__(self, canon: LoopbackCanon, gateway: Agent) -> None:
        self.canon = canon
        self.gateway = gateway

    def wait_connected(self, timeout: float = CONNECT_LIMIT) -> None:
        """Block until the plugin holds a stream to Canon.

        Raises:
            GatewayError: not within ``timeout`` seconds, or the gateway died.
        """
        self.wait(lambda canon: canon.connected, timeout, "the plugin did not connect to Canon")

    def direct(self, user_id: str = "user_dana") -> str:
        """Open a fresh direct conversation and return its id."""
        return self._open("direct", user_id)

    def group(self, *user_ids: str) -> str:
        """Open a fresh group conversation and return its id."""
        return self._open("group", *(user_ids or ("user_dana", self.canon.identity.owner.id)))

    def ask(
        self, conversation_id: str, text: str, *, user_id: str = "user_dana", timeout: float = ANSWER_LIMIT, **how: Json
    ) -> Answer:
        """Say ``text`` as a person and wait for the answer; ``how`` goes to :meth:`LoopbackCanon.say`.

        Raises:
            GatewayError: no ``turn_complete`` within ``timeout`` seconds, or the gateway died.
        """
        before = len(self.canon.messages(conversation_id))
        asked = self.canon.say(conversation_id, user_id, text, **how)
        return Answer(asked, self.answer(conversation_id, after=before, timeout=timeout))

    def answer(
        self, conversation_id: str, *, after: int = 0, timeout: float = ANSWER_LIMIT
    ) -> tuple[DurableMessage, ...]:
        """Wait for the agent's next complete answer, behind its first ``after`` messages of the conversation."""

        def complete(canon: LoopbackCanon) -> tuple[DurableMessage, ...]:
            own = canon.messages(conversation_id)[after:]
            end = next((index for index, message in enumerate(own, 1) if message.final), 0)
            return tuple(own[:end])

        return self.wait(complete, timeout, "no complete answer")

    def settled(self, conversation_id: str, timeout: float = ANSWER_LIMIT) -> str:
        """Wait until the newest turn of the conversation is closed; return its closing state."""

        def closed(canon: LoopbackCanon) -> str | None:
            states = [turn["state"] for turn in canon.logs.turns if turn["conversationId"] == conversation_id]
            return states[-1] if states and states[-1] in CLOSED_STATES else None

        return self.wait(closed, timeout, "the turn did not close") or ""

    def wait(self, predicate: Callable[[LoopbackCanon], Result | None], timeout: float, complaint: str) -> Result:
        """Wait for a condition on Canon, as long as the gateway lives.

        Raises:
            GatewayError: with ``complaint``, what Canon saw and the end of the gateway's log; a LateError when only the
                time ran out.
        """
        deadline = time.monotonic() + timeout
        while True:
            try:
                return self.canon.wait_for(predicate, min(_SLICE, max(0.0, deadline - time.monotonic())))
            except TimeoutError as late:
                if not self.gateway.running:
                    raise GatewayError("the gateway ended on its own", self.gateway.log()) from late
                if time.monotonic() >= deadline:
                    seen = f"{complaint} within {timeout:g} s ({self.canon.summary()})"
                    raise LateError(seen, self.gateway.log(), timeout) from late

    def _open(self, kind: str, *user_ids: str) -> str:
        conversation_id = f"conv_{kind}_{next(_conversations)}"
        self.canon.add_conversation(conversation_id, *user_ids, kind=kind)
        return conversation_id
