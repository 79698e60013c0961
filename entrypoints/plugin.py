"""Hermes plugin entry point: ``register(ctx)`` tells the host what this package offers.

Registration runs in every process of the host, possibly twice, usually before any event loop exists: it is cheap, opens
nothing, and loads neither the composition container nor the host (hermes-host §1.4).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from canon_hermes_plugin.domain import settings
from canon_hermes_plugin.domain.cards.teach import SKILL_DESCRIPTION, SKILL_NAME
from canon_hermes_plugin.infrastructure.files.locations import canon_paths
from canon_hermes_plugin.infrastructure.hermes import config
from canon_hermes_plugin.infrastructure.hermes.hooks import HOOKS
from canon_hermes_plugin.infrastructure.hermes.tool import CanonTool, ToolRunner
from canon_hermes_plugin.ports.errors import ConfigurationError

_LOG = logging.getLogger(__name__)

LABEL = "Canon"
PLATFORM_HINT = (
    "You are talking on Canon, a messaging service shared by people and agents. Markdown is rendered. Answer in one "
    "message of any length; it is split for you. In a group, speak only when it adds something: end the turn with the "
    "no_reply action of canon_runtime_control otherwise. The skill canon-hermes:rich-cards describes cards that people "
    "can act on."
)


def register(ctx: Any) -> None:  # noqa: ANN401 - the host's untyped plugin context
    """Register hooks, tools, skills and, last, the platform: a half-registered plugin must not go live."""
    HOOKS.register(ctx)
    _register_tools(ctx)
    _register_skill(ctx)
    ctx.register_platform(
        name=config.PLATFORM,
        label=LABEL,
        adapter_factory=create_adapter,
        check_fn=_dependencies_present,
        validate_config=is_valid,
        is_connected=is_configured,
        required_env=[settings.API_KEY.env],
        install_hint="pip install canon-hermes-plugin",
        setup_fn=_setup,
        allowed_users_env=config.ALLOWED_USERS_ENV,
        allow_all_env=config.ALLOW_ALL_ENV,
        max_message_length=0,
        emoji="📨",
        platform_hint=PLATFORM_HINT,
        env_enablement_fn=config.home_channel_seed,
        cron_deliver_env_var=config.HOME_CHANNEL_ENV,
        standalone_sender_fn=send_standalone,
    )


def _register_tools(ctx: Any) -> None:  # noqa: ANN401 - the host's untyped plugin context
    """Register the model-facing tool; what carries it out is composed at its first call."""
    CanonTool(_tool_actions, _agent_resolves).register(ctx)


async def _tool_actions() -> ToolRunner:
    from canon_hermes_plugin.decisions import actions

    return await actions()


def _agent_resolves() -> bool:
    from canon_hermes_plugin.decisions import available

    return available()


def _register_skill(ctx: Any) -> None:  # noqa: ANN401 - the host's untyped plugin context
    """Offer ``canon-hermes:rich-cards`` (cards §7); the host qualifies the name and reads the file itself."""
    path = Path(__file__).with_name("skills") / SKILL_NAME / "SKILL.md"
    ctx.register_skill(SKILL_NAME, path, SKILL_DESCRIPTION)


def create_adapter(platform_config: Any) -> Any:  # noqa: ANN401 - the host's untyped configuration and adapter
    """Return a new adapter over the process's services; the host calls this for every connection attempt.

    Raises:
        ConfigurationError: the set-up cannot carry the plugin; the host logs the one line and leaves the platform out.
    """
    from canon_hermes_plugin.container import adapter_for

    return adapter_for(platform_config)


async def send_standalone(  # noqa: PLR0913 - the host's signature (hermes-host §9.3)
    pconfig: Any,  # noqa: ANN401 - the host's untyped configuration
    chat_id: str | None,
    message: str,
    *,
    thread_id: str | None = None,
    media_files: list[Any] | None = None,
    force_document: bool = False,
) -> dict[str, Any]:
    """Deliver one text outside every gateway; returns ``{"success": True, …}`` or ``{"error": …}``, never raises."""
    from canon_hermes_plugin.container import standalone_for

    del force_document  # Canon shows every attachment by its type
    return await standalone_for(pconfig, chat_id, message, thread_id=thread_id, media_files=media_files or [])


def is_valid(platform_config: Any) -> bool:  # noqa: ANN401 - the host's untyped configuration
    """Whether the platform's settings can be used; a refusal is logged in one line that says what to change."""
    try:
        config.load_settings(_extra(platform_config))
    except ConfigurationError as error:
        _LOG.error("Canon platform refused: %s", error)
        return False
    return True


def is_configured(platform_config: Any) -> bool:  # noqa: ANN401 - the host's untyped configuration
    """Whether an agent is configured here. Called very often: looks at names, opens nothing."""
    extra = _extra(platform_config)
    if getattr(platform_config, "api_key", None) or getattr(platform_config, "token", None):
        return True
    try:
        if any(item.value(os.environ, extra) for item in (settings.API_KEY, settings.AGENT, settings.BOOTSTRAP)):
            return True
    except ConfigurationError:
        return True  # configured, though wrongly: the adapter says what is wrong with it
    return canon_paths(os.environ).profiles.is_file()


def _extra(platform_config: Any) -> Mapping[str, Any]:  # noqa: ANN401 - the host's untyped configuration
    extra = getattr(platform_config, "extra", None)
    return cast("Mapping[str, Any]", extra) if isinstance(extra, Mapping) else {}


def _dependencies_present() -> bool:
    return True


def _setup() -> None:
    """Run the interactive set-up as a step of ``hermes gateway setup``."""
    from canon_hermes_plugin.cli.setup import gateway_setup

    gateway_setup()
