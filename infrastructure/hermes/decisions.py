"""Human decisions of one connected agent: prompts, receipts and recovery, from connect to disconnect.

Decides when recovery starts and ends. It knows neither what is decided nor how the host is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.approvals.receipts import ApprovalReceiver
from canon_hermes_plugin.domain.interactions.blocking import BlockingRequests
from canon_hermes_plugin.infrastructure.hermes.live import LiveAdapter, LiveAdapters
from canon_hermes_plugin.infrastructure.hermes.prompts import Prompts
from canon_hermes_plugin.ports.time import Tasks

logger = logging.getLogger(__name__)


@final
class PromptReports:
    """Brings the host's reports from agent threads to the loop that owns the prompts."""

    def __init__(self, requests: BlockingRequests) -> None:
        self._requests = requests
        self._owner: asyncio.AbstractEventLoop | None = None

    def attach(self) -> None:
        """Remember the running loop as the prompts' owner."""
        self._owner = asyncio.get_running_loop()

    def approval_closed(self, session_key: str, command: str) -> None:
        """The host closed one of its waits; any thread."""
        owner = self._owner
        if owner is not None and not owner.is_closed():
            owner.call_soon_threadsafe(self._requests.host_closed, session_key, command)


@dataclass(frozen=True, slots=True)
class DecisionParts:
    """What :class:`Decisions` starts and stops.

    Attributes:
        agent_id: the agent's id as far as Canon told.
        tasks: the background work of prompts and recovery alone.
    """

    desk: ApprovalDesk
    receiver: ApprovalReceiver
    prompts: Prompts
    reports: PromptReports
    live: LiveAdapters
    adapter: LiveAdapter
    tasks: Tasks
    agent_id: Callable[[], str | None]


@final
class Decisions:
    """Runs while the platform is connected."""

    def __init__(self, parts: DecisionParts) -> None:
        self._parts = parts
        self._connected = False

    @property
    def prompts(self) -> Prompts | None:
        """The prompts while something is connected."""
        return self._parts.prompts if self._connected else None

    async def beat(self) -> None:
        """Do what is due every 30 s; the first call after a connect also settles what earlier processes left."""
        parts = self._parts
        if not self._connected:
            self._connected = True
            identity = parts.desk.identity
            parts.desk.identity = replace(identity, agent_id=identity.agent_id or parts.agent_id())
            parts.reports.attach()
            parts.receiver.open()
            parts.live.add(parts.adapter)
            parts.tasks.spawn(parts.receiver.reconcile(), name="canon-approvals-reconcile")
            return
        await parts.receiver.scan()

    async def stop(self) -> None:
        """End all waiting: the connection is over. The host's own waits run into their own time limits."""
        parts = self._parts
        self._connected = False
        parts.live.remove(parts.adapter)
        parts.receiver.close()
        await parts.tasks.drain(0)
