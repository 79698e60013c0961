"""The connected adapters of this process, for code on tool threads: silence and its report (interactions §5.7).

Hermes loads one plugin for all its threads; tools find the running turn through their context, and their adapter here.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.media.captures import CapturedMedia
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.infrastructure.hermes import compat_approvals, rehearsal
from canon_hermes_plugin.ports.host import SessionContext
from canon_hermes_plugin.ports.interactions import BriefAccess, CanonAccess
from canon_hermes_plugin.ports.time import Clock, IdSource

logger = logging.getLogger(__name__)

REPORT_SECONDS: Final = 3.0


class LiveTurns(Protocol):
    """The part of the turn coordinator that tool threads may use."""

    def open_turns(self, conversation_id: str) -> tuple[Turn, ...]:
        """Return the open turns of a conversation; any thread."""
        ...

    def silence(self, turn: Turn) -> bool:
        """Silence a turn; any thread."""
        ...


class LivePrompts(Protocol):
    """The part of the prompts that hooks on agent threads report to."""

    def approval_closed(self, session_key: str, command: str) -> None:
        """The host closed one of its waits; any thread."""
        ...


class HeldMedia(Protocol):
    """The bytes of recent messages (turns §9.5); any thread."""

    def read(self, conversation_id: str, message_id: str) -> tuple[CapturedMedia, ...]:
        """Return what is held of one message."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ToolSide:
    """What code on tool threads asks people with, on behalf of one connected agent.

    Attributes:
        clients: verified clients with its own key and addresses.
        clock: time as the tools see it.
        ids: randomness.
    """

    clients: CanonAccess
    clock: Clock
    ids: IdSource


@dataclass(frozen=True, slots=True, eq=False)
class LiveAdapter:
    """One connected agent as code on tool threads sees it.

    Attributes:
        turns: its open turns.
        prompts: its open prompts.
        captures: the media of its recent messages.
        desk: its approvals.
        tools: what code on tool threads asks people with.
        access: brief clients with its own key and addresses.
    """

    turns: LiveTurns
    prompts: LivePrompts
    captures: HeldMedia
    desk: ApprovalDesk
    tools: ToolSide
    access: BriefAccess


@final
class LiveAdapters:
    """Which adapters are connected. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._adapters: list[LiveAdapter] = []

    def add(self, adapter: LiveAdapter) -> None:
        """Note a connected adapter; idempotent."""
        with self._lock:
            self._adapters = [*(item for item in self._adapters if item is not adapter), adapter]

    def remove(self, adapter: LiveAdapter) -> None:
        """Forget a disconnected adapter; idempotent."""
        with self._lock:
            self._adapters = [item for item in self._adapters if item is not adapter]

    def all(self) -> list[LiveAdapter]:
        """Return the connected adapters."""
        with self._lock:
            return list(self._adapters)

    def approval_closed(
        self, command: object = "", session_key: object = "", surface: object = "", **_: object
    ) -> None:
        """Observe the host's ``post_approval_response`` on an agent thread."""
        if surface != "gateway":
            return
        for item in self.all():
            item.prompts.approval_closed(str(session_key), compat_approvals.redacted(str(command)))

    def owning(self, conversation_id: str) -> list[LiveAdapter]:
        """Return the adapters that have an open turn in the conversation."""
        return [item for item in self.all() if item.turns.open_turns(conversation_id)]

    def serving(self, conversation_id: str | None) -> LiveAdapter | None:
        """Return the adapter the calling code works for; ``None`` where none is connected: it is outside of a gateway.

        Args:
            conversation_id: where the calling code runs.

        Raises:
            CredentialsError: none is connected, in a test kit: nobody real may stand in for it.
            RuntimeError: several are connected and not exactly one of them runs the caller's turn; another agent's key
                is never tried.
        """
        adapters = self.all()
        if not adapters:
            rehearsal.refuse_real_credentials()
            return None
        if len(adapters) == 1:
            return adapters[0]
        turn = current_turn.get()
        where = turn.conversation_id if turn is not None else conversation_id or ""
        owners = [item for item in self.owning(where) if turn is None or turn in item.turns.open_turns(where)]
        if len(owners) != 1:
            raise RuntimeError(
                f"{len(adapters)} Canon agents are connected in this process and {len(owners)} of them run this turn, "
                "so it is not known on whose behalf to act"
            )
        return owners[0]


@final
class TurnSilencer:
    """Silences the turn whose context the calling tool runs in; another turn of a shared chat stays untouched."""

    def __init__(self, adapters: LiveAdapters, session: SessionContext) -> None:
        self._adapters = adapters
        self._session = session

    def silence(self, conversation_id: str) -> bool:
        turn = current_turn.get()
        if turn is not None:
            return turn.conversation_id == conversation_id and any(
                item.turns.silence(turn) for item in self._adapters.owning(conversation_id)
            )
        # A host that does not carry the context into its threads: the session key still names one turn.
        key = self._session.snapshot().session_key
        found = [
            (item, turn)
            for item in self._adapters.owning(conversation_id)
            for turn in item.turns.open_turns(conversation_id)
            if key and turn.start.session_key == key
        ]
        return len(found) == 1 and found[0][0].turns.silence(found[0][1])


@final
class SilenceReport:
    """Reports silence with the credentials of the one adapter that owns the turn."""

    def __init__(self, adapters: LiveAdapters) -> None:
        self._adapters = adapters

    async def report(self, conversation_id: str, message_id: str | None, *, reasoned: bool) -> None:
        reason = "given" if reasoned else "none"
        logger.info("silence chosen conversation=%s message=%s reason=%s", conversation_id, message_id, reason)
        owners = self._adapters.owning(conversation_id)
        if len(owners) != 1:
            reported = (conversation_id, message_id, len(owners))
            logger.info("silence not reported conversation=%s message=%s: %d adapters own it", *reported)
            return
        envelope = {"conversationId": conversation_id} | ({"messageId": message_id} if message_id else {})
        value: dict[str, Any] = {"reason": "given"} if reasoned else {}
        try:
            async with asyncio.timeout(REPORT_SECONDS), owners[0].access.brief(REPORT_SECONDS) as canon:
                await canon.call_verb("no_reply", envelope=envelope, value=value)
        except Exception as error:  # noqa: BLE001 - §5.7: the silence stands, whatever becomes of its report
            logger.debug("silence of %s not reported (%s)", conversation_id, type(error).__name__)


LIVE: Final = LiveAdapters()
"""The adapters of this process: the host loads the plugin once and builds adapters for it."""
