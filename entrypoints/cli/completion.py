"""``canon-hermes completion``: the script that teaches a shell this command line."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

PROGRAM = "canon-hermes"
VARIABLE = "_CANON_HERMES_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For example: eval "$(canon-hermes completion bash)" in ~/.bashrc.
    """
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - the choice lists what the library knows
    script = kind(ctx.find_root().command, {}, PROGRAM, VARIABLE)
    click.echo(script.source_template % script.source_vars())
