"""captain-webhook: several POSTs of one conversation share one Hermes session (captain-webhook §1).

The folder works in two ways: as the entry point ``captain-webhook`` of the installed package, and copied into
``$HERMES_HOME/plugins/``. Both at once is harmless: the last registration of a platform wins, and both are the same.
"""

from __future__ import annotations

import logging
from typing import Any

try:
    from canon_hermes_plugin.infrastructure.hermes import compat_webhook
except ImportError as error:
    raise ImportError(
        "captain-webhook needs a package in Hermes' own environment: pip install canon-hermes-plugin"
    ) from error

logger = logging.getLogger("canon_hermes_plugin.captain_webhook")


def register(ctx: Any) -> None:  # noqa: ANN401 - the host's plugin context is untyped
    """Replace the built-in ``webhook`` platform, unless this host lacks something the replacement needs."""
    lost = compat_webhook.missing()
    if lost:
        logger.error(
            "captain-webhook is off and the built-in webhook stays in charge: this Hermes lacks %s", ", ".join(lost)
        )
        return
    ctx.register_platform(
        name="webhook",
        label="Webhook (lasting conversations)",
        adapter_factory=_adapter,
        check_fn=compat_webhook.requirements_met,
        # Never auto-enabled: the operator's own configuration decides, as for the built-in (hermes-host §2.2).
        is_connected=_never_by_itself,
        install_hint="pip install 'canon-hermes-plugin[webhook]'",
    )


def _never_by_itself(config: Any) -> bool:  # noqa: ANN401 - host objects
    del config
    return False


def _adapter(config: Any) -> Any:  # noqa: ANN401 - host objects
    from canon_hermes_plugin.infrastructure.hermes.webhook import build_captain_webhook_adapter

    return build_captain_webhook_adapter(config)
