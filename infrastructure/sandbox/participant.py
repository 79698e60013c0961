"""A person who talks to the agent: says things, answers what the agent asks, and knows when an exchange is over.

Decides what ends an exchange and how a typed word answers a card, a question or an approval. Knows nothing of
terminals.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from canon_hermes_plugin.infrastructure.sandbox.interactions import Interaction
from canon_hermes_plugin.infrastructure.sandbox.records import Json, as_list, as_object
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.infrastructure.sandbox.session import ANSWER_LIMIT, CLOSED_STATES, Chat

Outcome = Literal["answered", "silent", "asked", "open"]
"""``answered``: the turn ended with an answer; ``silent``: by choice without one; ``asked``: somebody must answer."""

_LATE_ANSWER = 5.0
_THINKING_TIME = 0.5
_ALLOW = frozenset({"/allow", "allow", "/yes", "yes"})
_DENY = frozenset({"/deny", "deny", "/no", "no"})
_ALIKE = 0.7


@dataclass(frozen=True, slots=True)
class _Mark:
    """Where an exchange began: lengths of what had happened before."""

    messages: int
    turns: int
    interactions: int
    verbs: int


class Participant:
    """One person in one conversation.

    Args:
        chat: the agent to talk to.
        conversation_id: where.
        user_id: who.
        timeout: seconds to wait for the agent before giving up.
    """

    def __init__(
        self, chat: Chat, conversation_id: str, user_id: str = "user_dana", *, timeout: float = ANSWER_LIMIT
    ) -> None:
        self._chat, self._conversation, self._user, self._timeout = chat, conversation_id, user_id, timeout
        self._mark = self._now()

    def say(self, text: str) -> Outcome:
        """Send a message and follow the exchange it starts; see :meth:`follow`."""
        self._mark = self._now()
        self._chat.canon.say(self._conversation, self._user, text)
        return self.follow()

    def follow(self) -> Outcome:
        """Wait until the exchange is over or somebody has to answer a question of the agent.

        Raises:
            GatewayError: neither within the time limit, a turn that ended without an answer, or a dead gateway.
        """
        outcome: Outcome = self._chat.wait(self._outcome, self._timeout, "no complete answer")
        if outcome != "open":
            return outcome
        # The host posts its error notices only after it has closed the turn.
        after = self._mark.messages
        self._chat.answer(self._conversation, after=after, timeout=min(self._timeout, _LATE_ANSWER))
        return "answered"

    def say_and_settle(self, text: str) -> Outcome:
        """:meth:`say`, answering every question of the agent with its first or friendliest choice."""
        outcome = self.say(text)
        while outcome == "asked":
            time.sleep(_THINKING_TIME)  # a person reads first, and the create call returns before its answer
            for asked in self.waiting():
                self.answer(_obvious_answer(asked), asked)
            outcome = self.follow()
        return outcome

    def waiting(self) -> list[Interaction]:
        """Return the agent's questions in this conversation that still wait for an answer."""
        return self._chat.canon.interactions.waiting(self._conversation)

    def answer(self, typed: str, asked: Interaction) -> bool:
        """Answer ``asked`` with a typed word, as its responder; return whether the word is an answer to it.

        An approval takes ``allow`` and ``deny``, a card an action's id, a question a choice's number or any text.
        """
        result = _result(typed.strip(), asked)
        if result is not None:
            self._chat.canon.interactions.answer(asked.id, **result)
        return result is not None

    def mistyped(self, typed: str) -> str | None:
        """Say why ``typed``, which answers nothing, was meant as an answer; ``None`` when it is a message.

        Meant as one is ``/allow`` or ``/deny`` at any time, and what resembles an answer while a question waits. Every
        other word with a slash is a command of the host, ``/stop`` above all.
        """
        word = typed.strip().split(maxsplit=1)[0].lower() if typed.strip() else ""
        if not word.startswith("/"):
            return None
        waiting, decision = self.waiting(), word in _ALLOW | _DENY
        if not waiting:
            return "nothing is waiting for an answer" if decision else None
        answers = list(dict.fromkeys(answer for asked in waiting for answer in answers_of(asked)))
        names = [answer.lstrip("/").lower() for answer in answers]
        if not decision and not get_close_matches(word[1:], names, cutoff=_ALIKE):
            return None
        return (
            f"no such answer; choose {' or '.join(answers)}" if answers else "no such answer; write one without a slash"
        )

    def _now(self) -> _Mark:
        canon = self._chat.canon
        with canon.state.lock:
            messages = len(canon.messages(self._conversation))
            return _Mark(messages, len(canon.logs.turns), len(canon.interactions.all()), len(canon.logs.verbs))

    def _outcome(self, canon: LoopbackCanon) -> Outcome | None:
        mark, here = self._mark, self._conversation
        fresh = [made for made in canon.interactions.all()[mark.interactions :] if made.conversation_id == here]
        detached = [made for made in fresh if _detached(made)]
        if not all(_detached(made) for made in self.waiting()):
            return "asked"
        states = [turn["state"] for turn in canon.logs.turns[mark.turns :] if turn["conversationId"] == here]
        if not states or states[-1] not in CLOSED_STATES:
            return None
        finals = [message for message in canon.messages(here)[mark.messages :] if message.final]
        decided = [made for made in detached if made.status == "answered"]
        if finals and len(finals) <= len(decided):
            return None  # a decision wakes the agent once more
        if finals:
            return "asked" if len(decided) < len(detached) else "answered"
        silenced = any(verb["verb"] == "no_reply" for verb in canon.logs.verbs[mark.verbs :])
        return "silent" if silenced else "open"


def choices_of(asked: Interaction) -> list[Json]:
    """Return the choices of a question, as ``{"label", "value"}`` objects."""
    return [as_object(choice) for choice in as_list(asked.body.get("choices"))]


def actions_of(asked: Interaction) -> list[Json]:
    """Return the actions of a card."""
    blocks = map(as_object, as_list(as_object(asked.body.get("card")).get("blocks")))
    return [as_object(action) for block in blocks for action in as_list(block.get("actions"))]


def answers_of(asked: Interaction) -> list[str]:
    """Return what to type to answer; nothing for a question that takes any text."""
    if asked.kind == "approval":
        return ["/allow", "/deny"]
    if asked.kind == "card":
        return [f"/{action.get('id')}" for action in actions_of(asked)]
    return [str(number) for number, _ in enumerate(choices_of(asked), 1)]


def _detached(made: Interaction) -> bool:
    return as_object(made.body.get("native")).get("method") == "detached_approval"


def _result(typed: str, asked: Interaction) -> dict[str, Any] | None:
    if asked.kind == "approval":
        word = typed.lower()
        return {"decision": "allow"} if word in _ALLOW else {"decision": "deny"} if word in _DENY else None
    if asked.kind == "card":
        known = [str(action.get("id")) for action in actions_of(asked)]
        return {"actionId": typed.lstrip("/"), "values": {}} if typed.lstrip("/") in known else None
    choices = choices_of(asked)
    if typed.isdecimal() and 0 < int(typed) <= len(choices):
        return {"choice": choices[int(typed) - 1]}
    return {"value": typed} if typed and not typed.startswith("/") else None


def _obvious_answer(asked: Interaction) -> str:
    if asked.kind == "approval":
        return "allow"
    if asked.kind == "card":
        return str(actions_of(asked)[0].get("id"))
    return "1" if choices_of(asked) else "yes"
