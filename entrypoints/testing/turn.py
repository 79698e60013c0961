"""An open turn around code under test: what the public API says about the current turn is then true here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import Context, ContextVar, Token
from typing import Any, Self, final

from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.hermes import compat
from canon_hermes_plugin.infrastructure.hermes.rehearsal import in_rehearsal
from canon_hermes_plugin.ports.host import SessionSnapshot
from canon_hermes_plugin.testing.canon import Attachment, FakeCanon, check_attachments
from canon_hermes_plugin.testing.host import ScriptedHost
from canon_hermes_plugin.testing.script import Stage


def bind_session(session: SessionSnapshot) -> list[Token[Any]]:
    """Bind the host's provenance of a turn, and that nothing is real in it, to the calling context.

    Returns what undoes it.
    """
    set_session_vars = compat.module("gateway.session_context").set_session_vars
    bound = set_session_vars(
        platform=session.platform or "",
        chat_id=session.conversation_id or "",
        user_id=session.user_id or "",
        user_name=session.user_name or "",
        session_key=session.session_key or "",
        session_id=session.session_id or "",
        message_id=session.message_id or "",
    )
    return [*bound, in_rehearsal.set(True)]


@final
class CanonTurn:
    """One turn, opened by a message, whose context is the caller's until :meth:`end`.

    Calling it ends the turn and opens the next one: ``canon_turn("pay this", attachments=[("a.pdf", b"…")])``.
    """

    def __init__(self, canon: FakeCanon, host: ScriptedHost) -> None:
        self._canon = canon
        self._host = host
        self._over = asyncio.Event()
        self._stage: Stage | None = None
        self._baseline: list[tuple[ContextVar[Any], object]] = []

    def __call__(
        self,
        text: str = "hello",
        *,
        by: str = "dana",
        conversation: str | None = None,
        attachments: Sequence[Attachment] = (),
    ) -> Self:
        """End the open turn; let ``by`` write ``text`` and enter the turn it starts.

        Raises:
            TypeError: an attachment is no pair of a name and bytes.
            RuntimeError: the message started no turn; the text says why, where that is known.
        """
        check_attachments(attachments)
        self.end()
        self._over, before = asyncio.Event(), len(self._host.opened)
        withdraw = self._host.plays_first(self._wait)
        try:
            self._canon.says(text, by=by, conversation=conversation, attachments=attachments)
        finally:
            withdraw()  # a turn that starts later, or somebody else's, is not this one
        if len(self._host.opened) != before + 1:
            raise RuntimeError(f"the message started no turn{self._why(text, conversation or f'with-{by}')}")
        bound = [*bind_session(self._host.sessions[-1]), current_turn.set(self.turn)]
        self._baseline = self._baseline or [(token.var, _before(token)) for token in bound]
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.end()
        self._leave()  # a test on an event loop left its own context only

    @property
    def turn(self) -> Turn:
        """The newest turn."""
        return self._host.opened[-1]

    @property
    def conversation_id(self) -> str:
        """The conversation of the newest turn."""
        return self.turn.conversation_id

    def says(self, text: str) -> None:
        """Let the agent answer ``text``; people see it when the turn ends."""
        if self._stage is None:
            raise RuntimeError("no turn is open")
        self._canon.run(self._stage.says(text))

    def end(self) -> None:
        """Let the turn complete and leave its context; idempotent."""
        if self._stage is None:
            return
        self._stage = None
        self._leave()
        self._canon.call(self._over.set)

    def abandon(self) -> None:
        """Leave the context of the turn that is still open, if one is: nothing completes it any more."""
        if self._stage is not None:
            self._stage = None
            self._leave()

    def _why(self, text: str, conversation: str) -> str:
        if self._canon.is_down:
            return ": Canon is down; call canon.comes_back() first"
        if text.lstrip().startswith("/"):
            return ": a text that begins with / is a command for the host"
        if conversation in self._host.lanes.busy_conversations():
            return f" of its own: another one is running in {conversation}"
        return ""

    def _leave(self) -> None:
        for variable, value in self._baseline:
            variable.set(value)

    async def _wait(self, stage: Stage) -> None:
        self._stage = stage
        await self._over.wait()


def _before(token: Token[Any]) -> object:
    """Return what the variable held, or its default."""
    return Context().run(token.var.get) if token.old_value is Token.MISSING else token.old_value
