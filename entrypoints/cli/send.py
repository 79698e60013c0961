"""``canon-hermes send``: post one message into any conversation, without a gateway (hermes-host §9.3).

The host's own ``hermes send`` reaches the home channel only: a conversation id that is not a number is dropped there.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click
from canon_hermes_plugin.cli.output import say
from canon_hermes_plugin.cli.situation import Situation
from canon_hermes_plugin.cli.terminal import printable
from canon_hermes_plugin.domain.host_config import at, platform_section
from canon_hermes_plugin.ports.errors import CanonApiError, CanonPluginError, CredentialsError, DeliveryError
from canon_hermes_plugin.ports.profiles import Connection

_CHECK = "check the id, or let somebody in the conversation add the agent"


@click.command()
@click.argument("text", required=False)
@click.option("--to", "target", metavar="CONVERSATION", help="The conversation's id; default: the home channel.")
@click.option("--reply-to", metavar="MESSAGE", help="The id of the message this answers.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file to attach, at most 10 MiB. Repeatable.",
)
def command(text: str | None, target: str | None, reply_to: str | None, files: tuple[Path, ...]) -> None:
    """Post TEXT as this profile's agent. Without TEXT, or with -, it is read from standard input.

    Long text is split as an answer would be. The environment is proven first. Each run is a message of its own: when it
    ends in an unclear failure, look into the conversation before you run it again.
    """
    body = text or ""
    if text == "-" or (text is None and not files):
        body = sys.stdin.read()
    if not body.strip() and not files:
        say("there is no text to send; nothing was sent", mark="fault", error=True)
        sys.exit(1)
    try:
        message_id = asyncio.run(_send(body.strip("\n"), target, reply_to, files))
    except CanonPluginError as error:
        say(_explained(error, target), mark="fault", error=True)
        sys.exit(1)
    say(f"sent: {printable(message_id)}", mark="ok")


async def _send(text: str, target: str | None, reply_to: str | None, files: tuple[Path, ...]) -> str:
    from canon_hermes_plugin.infrastructure.canon.client import CanonHttp
    from canon_hermes_plugin.infrastructure.canon.link import CanonLink
    from canon_hermes_plugin.infrastructure.hermes.standalone import Notification, deliver
    from canon_hermes_plugin.infrastructure.system import SystemClock, SystemIds

    connection, home = await asyncio.to_thread(_look)
    conversation = (target or "").strip() or home
    if conversation is None:
        raise click.UsageError("no conversation: give it with --to, or set CANON_HOME_CHANNEL")
    api = CanonHttp(CanonLink(connection, clock=SystemClock()))
    try:
        return await deliver(api, SystemIds(), Notification(text, conversation, reply_to, files))
    finally:
        await api.close()


def _explained(error: CanonPluginError, target: str | None) -> str:
    """Return the failure with what to do about it, where Canon's status tells that."""
    place = repr(printable(target)) if target else "of the home channel"
    match error.status_code if isinstance(error, CanonApiError | DeliveryError) else None:
        case 401:
            return "Canon refuses the key: canon-hermes setup --reconfigure"
        case 403:
            return f"the agent may not write into conversation {place}; canon-hermes doctor --online tests its key"
        case 404:
            return f"no conversation {place}, or the agent is not in it; nothing was sent: {_CHECK}"
        case _:
            return str(error)


def _look() -> tuple[Connection, str | None]:
    situation = Situation.look()
    connection = situation.connection()
    if connection is None:
        raise CredentialsError("no Canon credentials; run canon-hermes setup")
    configured = at(platform_section(situation.config()), "home_channel", "chat_id")
    home = situation.environ.get("CANON_HOME_CHANNEL", "").strip() or (str(configured) if configured else None)
    return connection, home
