"""The host's two blocking prompts as adapter methods: clarify and exec approval (interactions §7.3, §7.4).

Mixed into the adapter. It translates the host's calls of both lines and answers with the host's result; failures stay
inside, or the host would post a plain-text prompt *and* the exception's words.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, final

from canon_hermes_plugin.domain.interactions.blocking import BlockingRequests, ClarifyAsk, ExecAsk
from canon_hermes_plugin.domain.interactions.responders import responder_of, trusted_user
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.ports.errors import CanonError
from canon_hermes_plugin.ports.host import SessionContext

logger = logging.getLogger(__name__)

HostObject = Any


class WaitingTurns(Protocol):
    """The part of the turn coordinator that shows who is waited for; gateway loop."""

    async def waiting(self, turn: Turn, waiting: bool) -> None:
        """Enter or leave the wait for a person."""
        ...

    def open_turns(self, conversation_id: str) -> tuple[Turn, ...]:
        """Return the open turns of a conversation."""
        ...


@final
class PromptedTurn:
    """Binds a request to the turn that asked; a turn that is over stays over (D3)."""

    def __init__(self, turns: WaitingTurns, turn: Turn | None) -> None:
        self._turns = turns
        self._turn = turn

    @property
    def responder(self) -> str | None:
        return self._turn.start.responder if self._turn is not None else None

    async def asked(self) -> None:
        await self._show(waiting=True)

    async def answered(self) -> None:
        await self._show(waiting=False)

    async def _show(self, *, waiting: bool) -> None:
        if self._turn is not None and not self._turn.closed:
            await self._turns.waiting(self._turn, waiting)


@final
@dataclass(frozen=True, slots=True)
class Prompts:
    """What the prompts of one connection work with."""

    requests: BlockingRequests
    turns: WaitingTurns
    session: SessionContext

    async def clarify(
        self, chat_id: str, question: str, choices: object, clarify_id: str, session_key: str
    ) -> HostObject:
        """Put the host's question; returns the host's result, never raises."""
        turn = self._turn(chat_id, session_key)
        ask = ClarifyAsk(chat_id, question, choices, clarify_id, session_key, self._responder(turn))
        return await _answer(self.requests.clarify(ask, turn))

    async def exec_approval(
        self, chat_id: str, command: str, session_key: str, description: str, *, smart_denied: bool
    ) -> HostObject:
        """Put a dangerous command; returns the host's result, never raises."""
        turn = self._turn(chat_id, session_key)
        ask = ExecAsk(chat_id, command, session_key, description, self._responder(turn), smart_denied)
        return await _answer(self.requests.exec_approval(ask, turn))

    def _turn(self, chat_id: str, session_key: str) -> PromptedTurn:
        turn = current_turn.get()
        if turn is None:
            named = [item for item in self.turns.open_turns(chat_id) if item.start.session_key == session_key]
            turn = named[-1] if named else None
        return PromptedTurn(self.turns, turn)

    def _responder(self, turn: PromptedTurn) -> str | None:
        responder, differs = responder_of(turn.responder, trusted_user(self.session.snapshot()))
        if differs:
            logger.warning("the session names another person than the one who started the turn; the latter may answer")
        return responder


class PromptSurface:
    """The adapter's prompt methods. :attr:`prompts` is ``None`` while nothing is connected."""

    @property
    def prompts(self) -> Prompts | None:
        """What carries the prompts out."""
        return None

    async def send_clarify(  # noqa: PLR0913, PLR0917 - the host's signature (hermes-host §8.3)
        self,
        chat_id: str,
        question: str,
        choices: object = None,
        clarify_id: str = "",
        session_key: str = "",
        metadata: Mapping[str, Any] | None = None,
        **_: object,
    ) -> HostObject:
        """Show the host's question and wait for the person in the background."""
        del metadata
        if self.prompts is None:
            return _failed("not connected", retryable=True)
        return await self.prompts.clarify(str(chat_id), question, choices, clarify_id, session_key)

    async def send_exec_approval(  # noqa: PLR0913 - the host's signature, both lines (D1)
        self,
        chat_id: str,
        command: str,
        session_key: str,
        description: str = "dangerous command",
        metadata: Mapping[str, Any] | None = None,
        *,
        allow_permanent: bool = True,
        smart_denied: bool = False,
        **_: object,
    ) -> HostObject:
        """Show a dangerous command and wait for the decision in the background. ``always`` is never offered."""
        del metadata, allow_permanent
        if self.prompts is None:
            return _failed("not connected", retryable=True)
        return await self.prompts.exec_approval(
            str(chat_id), command, session_key, description, smart_denied=bool(smart_denied)
        )


async def _answer(asking: Awaitable[Mapping[str, Any]]) -> HostObject:
    try:
        created = await asking
    except CanonError as error:
        return _failed(str(error), retryable=error.retryable)
    except Exception:  # the host would post a second prompt with the exception's words
        logger.exception("a prompt was not shown")
        return _failed("canon_internal", retryable=False)
    from gateway.platforms.base import SendResult

    message_id = created.get("messageId")
    return SendResult(
        success=True, message_id=message_id if isinstance(message_id, str) else None, raw_response=dict(created)
    )


def _failed(error: str, *, retryable: bool) -> HostObject:
    from gateway.platforms.base import SendResult

    return SendResult(success=False, error=error, retryable=retryable)
