"""Composition of what asks people from tool threads: the model's tool and the public API (interactions §3, §10).

Works inside the gateway, where a connected adapter lends its credentials, ledger and turns, and outside of it, where
the credentials are resolved from the environment. Heavy parts are imported on first use.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from canon_hermes_plugin.domain.approvals.creation import ApprovalCreation
from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.approvals.ownership import LedgerIdentity
from canon_hermes_plugin.domain.interactions.actions import ActionDeps, ToolActions
from canon_hermes_plugin.domain.interactions.blocking import BlockingLimits
from canon_hermes_plugin.domain.interactions.limits import setting_timeout
from canon_hermes_plugin.domain.profiles.resolution import CredentialResolver
from canon_hermes_plugin.domain.profiles.rules import viable_names
from canon_hermes_plugin.infrastructure.canon.access import HttpAccess
from canon_hermes_plugin.infrastructure.canon.health import RecentProofs
from canon_hermes_plugin.infrastructure.files.approval_store import PROCESS_ID, FileLedger
from canon_hermes_plugin.infrastructure.files.environment_catalog import packaged_catalog
from canon_hermes_plugin.infrastructure.files.locations import canon_paths
from canon_hermes_plugin.infrastructure.files.profile_store import FileProfileStore
from canon_hermes_plugin.infrastructure.hermes import compat_approvals, config, rehearsal
from canon_hermes_plugin.infrastructure.hermes.host import HermesSessionContext
from canon_hermes_plugin.infrastructure.hermes.live import LIVE, LiveAdapter, SilenceReport, ToolSide, TurnSilencer
from canon_hermes_plugin.infrastructure.system import SystemClock, SystemIds
from canon_hermes_plugin.ports.errors import ConfigurationError
from canon_hermes_plugin.ports.profiles import Connection, PlatformSettings

CLOCK = SystemClock()
IDS = SystemIds()
PROOFS = RecentProofs(CLOCK)


@lru_cache(maxsize=8)
def ledger_at(home: Path) -> FileLedger:
    """Return this process's one ledger of a Canon home."""
    return FileLedger(home, CLOCK.now_ms)


def ledger() -> FileLedger:
    """Return the ledger of the Canon home the environment names."""
    return ledger_at(canon_paths(os.environ).home)


def blocking_limits() -> BlockingLimits:
    """Return how long the host's own questions stay open (interactions §7.2)."""
    return BlockingLimits(
        clarify=setting_timeout(os.environ.get("HERMES_CLARIFY_TIMEOUT")),
        approval=setting_timeout(os.environ.get("HERMES_APPROVAL_TIMEOUT")),
    )


def connection() -> Connection:
    """Return whom to speak as outside of an adapter. Reads files: not for an event loop.

    Raises:
        CredentialsError: no usable agent.
    """
    return _resolver().require(os.environ, _platform_settings())


def available() -> bool:
    """Return whether an agent's key resolves. Reads files."""
    if LIVE.all() or rehearsal.active():
        return bool(LIVE.all())
    return _resolver().find(os.environ, _platform_settings()) is not None


def identity_of(resolved: Connection | None) -> LedgerIdentity:
    """Return who the ledger's entries belong to. Reads files: not for an event loop."""
    if resolved is None:
        return LedgerIdentity(shared=_several_profiles())
    digest = hashlib.sha256(resolved.api_key.reveal().encode()).hexdigest()
    return LedgerIdentity(resolved.agent_id, digest[:16], shared=_several_profiles())


async def actions() -> ToolActions:
    """Return what carries out the tool's actions for the calling thread.

    Raises:
        CredentialsError: in a test kit that is not connected.
        RuntimeError: it is not clear for which of several connected agents.
    """
    return ToolActions(await caller_deps())


async def caller_deps() -> ActionDeps:
    """Return the parts of :func:`actions`, and raise what it raises."""
    adapter = LIVE.serving(HermesSessionContext().snapshot().conversation_id)
    return await asyncio.to_thread(action_deps, adapter)


def action_deps(adapter: LiveAdapter | None) -> ActionDeps:
    """Return the parts of :func:`actions` for an adapter or, without one, for whom the environment names.

    Reads files: not for an event loop.
    """
    session = HermesSessionContext()
    desk = adapter.desk if adapter is not None else _own_desk()
    tools = adapter.tools if adapter is not None else ToolSide(HttpAccess(connection, CLOCK, PROOFS), CLOCK, IDS)
    return ActionDeps(
        session=session,
        access=tools.clients,
        desk=desk,
        creation=ApprovalCreation(desk, tools.clock, tools.ids),
        silencer=TurnSilencer(LIVE, session),
        reporter=SilenceReport(LIVE),
        clock=tools.clock,
        home_channel=lambda: os.environ.get(config.HOME_CHANNEL_ENV),
        interrupted=compat_approvals.is_interrupted,
    )


def _own_desk() -> ApprovalDesk:
    desk = ApprovalDesk(ledger(), CLOCK, IDS, PROCESS_ID)
    try:
        found = _resolver().find(os.environ, _platform_settings())
    except ConfigurationError:
        found = None  # told when a client is opened, after the entry is recorded (interactions §9.3)
    desk.identity = identity_of(found)
    return desk


def _resolver() -> CredentialResolver:
    rehearsal.refuse_real_credentials()
    return CredentialResolver(FileProfileStore.from_environ(os.environ), packaged_catalog())


def _several_profiles() -> bool:
    try:
        return len(viable_names(FileProfileStore.from_environ(os.environ).load(), packaged_catalog())) > 1
    except ConfigurationError:
        return False


def _platform_settings() -> PlatformSettings:
    """Return the host's platform section, as far as the host lets it be read here."""
    section = compat_approvals.platform_section(config.PLATFORM)
    extra = section.get("extra")
    return PlatformSettings(
        api_key=section.get("api_key"),
        token=section.get("token"),
        extra=cast("Mapping[str, Any]", extra) if isinstance(extra, Mapping) else {},
    )
