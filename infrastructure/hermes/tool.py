"""The tool ``canon_runtime_control`` as the host calls it: JSON in, one JSON envelope out (interactions §3, §4).

Runs on agent threads with their own event loop. It never raises, never blocks without a bound, and refuses to know
what an action does.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, cast, final

from canon_hermes_plugin.domain.interactions import schema
from canon_hermes_plugin.domain.interactions.polling import AbandonedError
from canon_hermes_plugin.infrastructure.hermes import compat_approvals
from canon_hermes_plugin.ports.errors import CanonApiError, CanonPluginError

logger = logging.getLogger(__name__)

_DETAIL_LIMIT: Final = 500


class ToolRunner(Protocol):
    """Carries out one call."""

    async def run(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the action's result or raise."""
        ...


@final
class CanonTool:
    """The tool's handler.

    Attributes:
        runner: builds what carries out the calls; awaited on first use in the calling thread's loop.
        available: whether an agent's key resolves.
    """

    def __init__(self, runner: Callable[[], Awaitable[ToolRunner]], available: Callable[[], bool]) -> None:
        self._runner = runner
        self._available = available

    def register(self, ctx: Any) -> None:  # noqa: ANN401 - the host's untyped plugin context
        """Offer the tool to the host, under its toolset and the toolset's old name."""
        register = getattr(ctx, "register_tool", None)
        if not callable(register):
            logger.debug("this host has no plugin tools")
            return
        register(
            name=schema.TOOL_NAME,
            toolset=schema.TOOLSET,
            schema=schema.SCHEMA,
            handler=self.handle,
            check_fn=self.is_available,
            is_async=True,
            description=schema.DESCRIPTION,
            emoji=schema.EMOJI,
        )
        compat_approvals.register_toolset_alias(schema.TOOLSET_ALIAS, schema.TOOLSET)

    def is_available(self) -> bool:
        """Whether the tool can work here; any failure counts as no."""
        try:
            return self._available()
        except Exception as error:  # noqa: BLE001 - interactions §3: any exception means not available
            logger.debug("canon tool not available (%s)", type(error).__name__)
            return False

    async def handle(self, args: object = None, **_: object) -> str:
        """Carry out one call; returns the JSON envelope, never raises."""
        arguments = cast("Mapping[str, Any]", args if isinstance(args, Mapping) else {})
        try:
            runner = await self._runner()
            return success(await runner.run(arguments))
        except AbandonedError:
            return failure("The run was interrupted; the question was withdrawn")
        except (CanonPluginError, ValueError, TypeError, PermissionError, RuntimeError) as error:
            return failure(words(error))
        except Exception as error:  # interactions §4: the handler never raises
            logger.exception("canon tool failed")
            return failure(f"{type(error).__name__}: {error}")


def success(result: Mapping[str, Any]) -> str:
    """Return the success envelope; no field of a server's answer can replace its marks (D10)."""
    return _json({**result, "success": True})


def failure(text: str) -> str:
    """Return the failure envelope."""
    return _json({"error": text, "success": False})


def words(error: BaseException) -> str:
    """Return what the model is told: the server's own sentence for a refused request, else the error's text."""
    if isinstance(error, CanonApiError) and error.detail:
        detail = error.detail[:_DETAIL_LIMIT]
        return detail if error.status_code == 400 else f"{error}: {detail}"  # noqa: PLR2004 - interactions §5.5
    return str(error) or type(error).__name__


def _json(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace").decode("utf-8")
