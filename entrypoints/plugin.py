"""Hermes plugin entry point: ``register(ctx)`` tells the host what this package offers. Cheap, idempotent, no I/O."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from canon_hermes_plugin.domain.cards.teach import SKILL_DESCRIPTION, SKILL_NAME


def register(ctx: Any) -> None:  # noqa: ANN401 - the host's untyped plugin context
    """Register the platform with the host. Heavy work waits for the adapter factory."""
    _register_skill(ctx)


def _register_skill(ctx: Any) -> None:  # noqa: ANN401 - the host's untyped plugin context
    """Offer ``canon-hermes:rich-cards`` (cards §7); the host qualifies the name and reads the file itself."""
    path = Path(__file__).with_name("skills") / SKILL_NAME / "SKILL.md"
    ctx.register_skill(SKILL_NAME, path, SKILL_DESCRIPTION)
