"""The command group: knows each command's name, help line and module, and nothing of what it does."""

from __future__ import annotations

import errno
from importlib import import_module

import click
from canon_hermes_plugin.cli.output import INTERRUPTED, drop_output, remember_encodings, replace_missing_streams, say

_COMMANDS: dict[str, tuple[str, str]] = {
    # name: (module with an attribute ``command``, help line)
    "approvals": ("canon_hermes_plugin.cli.approvals", "Look into the detached approvals of this Canon home."),
    "card": ("canon_hermes_plugin.cli.card", "Check a card file, start from an example, see it as plain text."),
    "sandbox": ("canon_hermes_plugin.cli.sandbox", "Try the plugin on this machine, without account or network."),
    "send": ("canon_hermes_plugin.cli.send", "Post one message into a conversation."),
    "completion": ("canon_hermes_plugin.cli.completion", "Print the completion script of a shell."),
    "doctor": ("canon_hermes_plugin.cli.doctor", "Check the set-up and say what to do."),
    "setup": ("canon_hermes_plugin.cli.setup", "Connect Hermes to a Canon agent."),
    "install": ("canon_hermes_plugin.cli.install", "Enable the plugin and the platform in Hermes."),
}


class _LazyGroup(click.Group):
    """Lists every command without importing it, so ``--help`` starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(_COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)  # noqa: S101 - a wiring error of this table
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort):
            say("interrupted", mark="warning", error=True)
            ctx.exit(INTERRUPTED)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            drop_output()
            say(f"the output could not be written: {error.strerror}", mark="fault", error=True)
            ctx.exit(1)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if _COMMANDS:
            with formatter.section("Commands"):
                formatter.write_dl([(name, line) for name, (_, line) in sorted(_COMMANDS.items())])


def _show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"canon-hermes-plugin {version('canon-hermes-plugin')}")
        ctx.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show the version."
)
def main() -> None:
    """Connect Canon to the Hermes Agent gateway."""
    replace_missing_streams()
    remember_encodings()
