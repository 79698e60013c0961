"""Hermes plugin entry point: ``register(ctx)`` tells the host what this package offers. Cheap, idempotent, no I/O."""

from __future__ import annotations

from typing import Any


def register(ctx: Any) -> None:  # noqa: ANN401 - the host's untyped plugin context
    """Register the platform with the host. Heavy work waits for the adapter factory."""
    del ctx
