"""What asking a person needs of the host and of the running turn (interactions §7, §15)."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from canon_hermes_plugin.ports.canon import CanonApi

ExecChoice = Literal["once", "session", "deny"]
"""What the plugin ever answers to an exec approval; ``always`` is never produced."""


class HostWait(Protocol):
    """One dangerous command the host holds back, as far as the host lets it be identified."""

    @property
    def exact(self) -> bool:
        """Whether :meth:`settle` settles this very command; otherwise it settles the session's oldest one."""
        ...

    def waiting(self) -> bool:
        """Return whether the host still waits. A host that cannot tell says True. Thread-safe."""
        ...

    def settle(self, choice: ExecChoice) -> bool:
        """Give the host its answer; ``False`` when it no longer waits. Thread-safe."""
        ...


class HostQuestions(Protocol):
    """The host's own open questions. Called on the gateway loop; nothing blocks."""

    def exec_wait(self, session_key: str, command: str, taken: Collection[HostWait]) -> HostWait:
        """Return the wait that ``command`` was just asked for, other than those already ``taken``."""
        ...

    def exec_seconds(self) -> float | None:
        """Return how long the host waits for an exec approval, ``None`` when it does not say."""
        ...

    def clarify_waiting(self, session_key: str) -> bool:
        """Return whether a question of the host waits in this session. A host that cannot tell says True."""
        ...

    def settle_clarify(self, clarify_id: str, text: str) -> bool:
        """Give the host the person's words; ``False`` when it no longer waits for them."""
        ...


class AskingTurn(Protocol):
    """The turn in which a question is put. Every method does nothing once that turn is over (D3)."""

    @property
    def responder(self) -> str | None:
        """The human captured when the turn started."""
        ...

    async def asked(self) -> None:
        """Show that the turn waits for a person."""
        ...

    async def answered(self) -> None:
        """Show that the turn goes on."""
        ...


class CanonAccess(Protocol):
    """Short-lived connections for callers outside the gateway's event loop (interactions §4.3)."""

    def verified(self) -> AbstractAsyncContextManager[CanonApi]:
        """Open a client after the credentials resolved and the environment proved itself; closes it in any case.

        Raises (on entering):
            CredentialsError: no usable agent.
            CanonError: the environment could not be proven.
        """
        ...


class Silencer(Protocol):
    """Ends turns in silence (interactions §5.7). Called from tool threads; never blocks."""

    def silence(self, conversation_id: str) -> bool:
        """Silence the calling context's open turn in this conversation; ``False`` when there is none."""
        ...


class SilenceReporter(Protocol):
    """Tells Canon that a turn chose silence."""

    async def report(self, conversation_id: str, message_id: str | None, *, reasoned: bool) -> None:
        """Report the outcome, bounded to 3 s overall; swallows every failure. A reason's text never leaves."""
        ...


class BriefAccess(Protocol):
    """A short-lived connection with one adapter's own key and addresses, without proving the environment again."""

    def brief(self, seconds: float) -> AbstractAsyncContextManager[CanonApi]:
        """Open a client of the calling event loop whose every phase is bounded by ``seconds``."""
        ...
