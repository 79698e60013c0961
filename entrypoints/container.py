"""The composition: which adapter stands behind which port, in one declarative container.

Built where it is needed (an adapter's ``connect``, a standalone send), never while the package is imported: the
container's library is heavy. Tests replace parts with ``container.api.override(...)`` and the like.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, cast

from canon_hermes_plugin import decisions as human
from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.approvals.receipts import ApprovalReceiver, ChatFacts, ReceiverPorts
from canon_hermes_plugin.domain.inbound.checkpoint import CheckpointKeeper
from canon_hermes_plugin.domain.inbound.conversations import ConversationFacts
from canon_hermes_plugin.domain.inbound.service import InboundPorts, InboundService, InboundState
from canon_hermes_plugin.domain.interactions.blocking import BlockingDeps, BlockingRequests
from canon_hermes_plugin.domain.media.captures import CaptureStore
from canon_hermes_plugin.domain.media.intake import MediaIntake
from canon_hermes_plugin.domain.profiles.resolution import CredentialResolver
from canon_hermes_plugin.domain.turns.coordinator import TurnCoordinator
from canon_hermes_plugin.domain.turns.model import Verbosity
from canon_hermes_plugin.domain.verbosity import resolve_verbosity
from canon_hermes_plugin.infrastructure.canon.access import HttpAccess, HttpBriefAccess
from canon_hermes_plugin.infrastructure.canon.client import CanonHttp
from canon_hermes_plugin.infrastructure.canon.health import RecentProofs
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.canon.media import HttpMediaFetcher
from canon_hermes_plugin.infrastructure.canon.stream import CanonSse
from canon_hermes_plugin.infrastructure.files.approval_store import PROCESS_ID
from canon_hermes_plugin.infrastructure.files.checkpoint_file import FileCheckpoints
from canon_hermes_plugin.infrastructure.files.environment_catalog import packaged_catalog
from canon_hermes_plugin.infrastructure.files.locations import canon_paths
from canon_hermes_plugin.infrastructure.files.outbox import FileOutbox
from canon_hermes_plugin.infrastructure.files.profile_store import FileProfileStore
from canon_hermes_plugin.infrastructure.hermes import compat, config, rehearsal
from canon_hermes_plugin.infrastructure.hermes.adapter import OVERFLOW_LIMIT, build_adapter
from canon_hermes_plugin.infrastructure.hermes.beat import StatusBeat
from canon_hermes_plugin.infrastructure.hermes.decisions import DecisionParts, Decisions, PromptReports
from canon_hermes_plugin.infrastructure.hermes.hooks import HOOKS
from canon_hermes_plugin.infrastructure.hermes.host import HermesSessionContext
from canon_hermes_plugin.infrastructure.hermes.lanes import HermesLanes
from canon_hermes_plugin.infrastructure.hermes.live import LIVE, LiveAdapter, ToolSide
from canon_hermes_plugin.infrastructure.hermes.media import HermesMediaCache
from canon_hermes_plugin.infrastructure.hermes.prompts import Prompts
from canon_hermes_plugin.infrastructure.hermes.questions import HermesQuestions
from canon_hermes_plugin.infrastructure.hermes.runtime import CanonRuntime, Links, OwnIdentity
from canon_hermes_plugin.infrastructure.hermes.services import Services
from canon_hermes_plugin.infrastructure.hermes.shelf import Shelf
from canon_hermes_plugin.infrastructure.hermes.standalone import Notification, deliver, media_path
from canon_hermes_plugin.infrastructure.system import BackgroundTasks, SystemClock, SystemIds
from canon_hermes_plugin.ports.errors import CanonPluginError
from canon_hermes_plugin.ports.host import ConversationKind
from canon_hermes_plugin.ports.profiles import Connection, PlatformSettings
from dependency_injector import containers, providers


def _chat_info(conversations: ConversationFacts, conversation_id: str) -> Mapping[str, Any]:
    kind = "group" if conversations.chat_kind(conversation_id) == "group" else "dm"
    return {"name": conversations.name(conversation_id), "type": kind}


def _chat_facts(conversations: ConversationFacts, conversation_id: str) -> ChatFacts:
    group = conversations.chat_kind(conversation_id) == "group"
    return ChatFacts("group" if group else "direct", conversations.name(conversation_id))


def _verbosity(settings: config.Settings, kind: ConversationKind) -> Verbosity:
    return resolve_verbosity(settings.verbosity, kind)


def _outbox(connection: Connection) -> FileOutbox:
    return FileOutbox(canon_paths(os.environ).home, _claim_of(connection))


def _checkpoint_path(connection: Connection) -> Path:
    return canon_paths(os.environ).home / "streams" / f"{_claim_of(connection)[:32]}.json"


class PluginContainer(containers.DeclarativeContainer):
    """One agent's parts. ``connection`` and ``settings`` are given, the rest follows."""

    connection = providers.Dependency(instance_of=Connection)
    settings = providers.Dependency(instance_of=config.Settings)

    clock = providers.Singleton(SystemClock)
    ids = providers.Singleton(SystemIds)
    tasks = providers.Singleton(BackgroundTasks)
    session_context = providers.Singleton(HermesSessionContext)

    link = providers.Singleton(CanonLink, connection, clock=clock)
    proofs = providers.Singleton(RecentProofs, clock)
    api = providers.Singleton(CanonHttp, link, proofs)
    stream = providers.Singleton(CanonSse, link, ids)

    fetcher = providers.Singleton(HttpMediaFetcher, providers.Object(compat.is_safe_url))
    media_cache = providers.Singleton(HermesMediaCache)
    captures = providers.Singleton(CaptureStore, clock.provided.monotonic)
    intake = providers.Singleton(MediaIntake, fetcher, media_cache, captures, clock, settings.provided.protection)

    ledger = providers.Callable(human.ledger)
    ledger_identity = providers.Callable(human.identity_of, connection)
    desk = providers.Singleton(ApprovalDesk, ledger, clock, ids, PROCESS_ID)

    outbox = providers.Singleton(_outbox, connection)
    inbound_state = providers.Singleton(InboundState)
    checkpoint_store = providers.Singleton(FileCheckpoints, providers.Callable(_checkpoint_path, connection))
    checkpoints = providers.Singleton(
        CheckpointKeeper, checkpoint_store, stream, inbound_state.provided.claims, clock, tasks
    )
    shelf = providers.Singleton(Shelf, api, tasks, clock, checkpoints.provided.changed)
    identity = providers.Singleton(OwnIdentity)
    lanes = providers.Singleton(HermesLanes, settings, shelf, tasks, clock, identity.provided.owner_id)
    turns = providers.Singleton(
        TurnCoordinator,
        canon=api,
        lanes=lanes,
        clock=clock,
        ids=ids,
        tasks=providers.Factory(BackgroundTasks),
        outbox=outbox,
        seal_bytes=OVERFLOW_LIMIT // 2,
    )
    human_tasks = providers.Singleton(BackgroundTasks)
    receipts = providers.Singleton(
        ApprovalReceiver, desk, providers.Factory(ReceiverPorts, canon=api, inbox=lanes, tasks=human_tasks), clock
    )
    questions = providers.Singleton(HermesQuestions)
    requests = providers.Singleton(
        BlockingRequests,
        providers.Factory(
            BlockingDeps,
            canon=api,
            host=questions,
            clock=clock,
            ids=ids,
            tasks=human_tasks,
            owner=identity.provided.owner_id,
            limits=providers.Callable(human.blocking_limits),
        ),
    )
    reports = providers.Singleton(PromptReports, requests)
    tool_side = providers.Singleton(
        ToolSide, providers.Factory(HttpAccess, connection.provider, clock, proofs), clock, ids
    )
    brief = providers.Singleton(HttpBriefAccess, connection, clock)
    live_adapter = providers.Singleton(
        LiveAdapter,
        turns=turns,
        prompts=reports,
        captures=captures,
        desk=desk,
        tools=tool_side,
        access=brief,
    )
    decisions = providers.Singleton(
        Decisions,
        providers.Factory(
            DecisionParts,
            desk=desk,
            receiver=receipts,
            prompts=providers.Factory(Prompts, requests, turns, session_context),
            reports=reports,
            live=providers.Object(LIVE),
            adapter=live_adapter,
            tasks=human_tasks,
            agent_id=identity.provided.agent_id,
        ),
    )
    beat = providers.Factory(StatusBeat, decisions.provided.beat, stream, clock)
    inbound = providers.Singleton(
        InboundService,
        providers.Factory(
            InboundPorts,
            inbox=lanes,
            signals=api,
            directory=api,
            cursor=stream,
            receipts=receipts,
            media=intake,
            shelf=shelf,
            notes=checkpoints,
        ),
        inbound_state,
    )
    runtime = providers.Singleton(
        CanonRuntime,
        providers.Factory(
            Links,
            api=api,
            stream=stream,
            listener=inbound,
            busy_conversations=lanes.provided.busy_conversations,
            on_status=beat,
            on_stop=decisions.provided.stop,
            on_open=turns.provided.recover,
            places=checkpoints,
        ),
        clock,
        ids,
        identity,
    )


_LOCK = Lock()
_LIVE: dict[object, PluginContainer] = {}
"""The process's agents, by connection and settings: turns, queues and cursors outlive an adapter instance."""


def adapter_for(platform_config: Any) -> Any:  # noqa: ANN401 - the host's untyped configuration and adapter
    """Return an adapter for the host's platform section (see :func:`canon_hermes_plugin.plugin.create_adapter`).

    Raises:
        ConfigurationError: a multiplexing gateway, or a setting with an unknown value.
    """
    compat.refuse_multiplexing()
    platform = _platform_of(platform_config)
    settings = config.load_settings(platform.extra)
    return build_adapter(platform_config, settings, partial(_open_services, platform, settings))


def container_for(connection: Connection, settings: config.Settings) -> PluginContainer:
    """Return the process's container for an agent; the same agent with the same settings gets the same one."""
    key = (connection.api_key, connection.environment, settings)
    with _LOCK:
        if key not in _LIVE:
            _LIVE[key] = PluginContainer(connection=connection, settings=settings)
        return _LIVE[key]


def services_of(container: PluginContainer) -> Services:
    """Return what an adapter works with, wired together."""
    turns, lanes, inbound = container.turns(), container.lanes(), container.inbound()
    lanes.serve(turns)
    container.checkpoints().waiting = lanes.waiting
    HOOKS.serve(turns, lanes)
    container.desk().identity = container.ledger_identity()
    container.receipts().describe = partial(_chat_facts, inbound.conversations)
    return Services(
        turns=turns,
        lanes=lanes,
        runtime=container.runtime(),
        fetcher=container.fetcher(),
        decisions=container.decisions(),
        verbosity=partial(_verbosity, container.settings()),
        chat_info=partial(_chat_info, inbound.conversations),
        claim=_claim_of(container.connection()),
        background=inbound.context_for,
        forget_media=container.captures().discard,
    )


async def standalone_for(
    platform_config: Any,  # noqa: ANN401 - the host's untyped configuration
    chat_id: str | None,
    message: str,
    *,
    thread_id: str | None,
    media_files: list[Any],
) -> dict[str, Any]:
    """Deliver one notification without a gateway; never raises (turns §10 b)."""
    try:
        compat.refuse_multiplexing()
        platform = _platform_of(platform_config)
        connection = await asyncio.to_thread(_connection, platform)
        home = config.load_settings(platform.extra).home_channel or _configured_home(platform_config)
        files = [media_path(item) for item in media_files]
        container = PluginContainer(connection=connection, settings=config.Settings())
        api = container.api()
        try:
            notification = Notification(message, (chat_id or "").strip() or home, thread_id or None, files)
            message_id = await deliver(api, container.ids(), notification)
        finally:
            await api.close()
    except CanonPluginError as error:
        return {"error": f"Canon standalone delivery failed: {error}"}
    return {"success": True, "message_id": message_id}


def _claim_of(connection: Connection) -> str:
    """Return a name for the agent's key that does not tell the key."""
    text = f"{connection.environment.environment_id}\n{connection.api_key.reveal()}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _open_services(platform: PlatformSettings, settings: config.Settings) -> Services:
    return services_of(container_for(_connection(platform), settings))


def _connection(platform: PlatformSettings) -> Connection:
    """Return whom to speak as. Reads the profile file: not for an event loop."""
    rehearsal.refuse_real_credentials()
    resolver = CredentialResolver(FileProfileStore.from_environ(os.environ), packaged_catalog())
    return resolver.require(os.environ, platform)


def _platform_of(platform_config: Any) -> PlatformSettings:  # noqa: ANN401 - the host's untyped configuration
    extra = getattr(platform_config, "extra", None)
    return PlatformSettings(
        api_key=getattr(platform_config, "api_key", None),
        token=getattr(platform_config, "token", None),
        extra=cast("Mapping[str, Any]", extra) if isinstance(extra, Mapping) else {},
    )


def _configured_home(platform_config: Any) -> str | None:  # noqa: ANN401 - the host's untyped configuration
    home = getattr(platform_config, "home_channel", None)
    chat_id = getattr(home, "chat_id", None)
    return str(chat_id) if chat_id else None
