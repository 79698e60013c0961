"""``canon-hermes setup``: connect this Hermes profile to a Canon agent."""

from __future__ import annotations

import click


@click.command()
def command() -> None:
    """Connect this Hermes profile to a Canon agent."""
