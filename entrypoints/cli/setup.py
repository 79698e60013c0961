"""``canon-hermes setup``: connect this Hermes profile to a Canon agent (interactions §12.2, §13).

Exit code 0 when credentials were saved or the present ones were kept, 2 when an answer is missing and nobody can be
asked, 130 when interrupted, 1 for every other end.
"""

from __future__ import annotations

import sys

import click
from canon_hermes_plugin.cli.output import INTERRUPTED, interactive, say
from canon_hermes_plugin.cli.prompts import MissingAnswerError, Prompter
from canon_hermes_plugin.cli.setup_ways import Answers, SetupWizard
from canon_hermes_plugin.cli.situation import Situation
from canon_hermes_plugin.domain.registration.desk import TOTAL_SECONDS
from canon_hermes_plugin.ports.errors import CanonPluginError

WRONG_USAGE = 2
_WAYS = {"register": "register", "use_profile": "existing", "api_key_stdin": "key"}


@click.command()
@click.option("--register", is_flag=True, help="Register a new agent, or reconnect one.")
@click.option("--use-profile", is_flag=True, help="Use the stored profile named by --profile.")
@click.option("--api-key-stdin", is_flag=True, help="Use the API key read from standard input.")
@click.option("--profile", metavar="NAME", help="The local profile's name.")
@click.option("--name", metavar="TEXT", help="The agent's display name.")
@click.option("--description", metavar="TEXT", help="What the agent is, for its owner.")
@click.option("--owner-phone", metavar="NUMBER", help="The owner's phone, like +41791234567.")
@click.option("--environment", metavar="ID", help="The Canon environment.")
@click.option("--base-url", metavar="URL", help="The environment's API address.")
@click.option("--stream-url", metavar="URL", help="The environment's stream address.")
@click.option("--rtdb-url", metavar="URL", help="The environment's database address.")
@click.option("--firebase-api-key", metavar="KEY", help="The environment's public web key.")
@click.option("--reconfigure", is_flag=True, help="Replace present credentials without asking.")
@click.option("--no-input", is_flag=True, help="Never ask; take defaults and options.")
@click.option(
    "--timeout", type=click.FloatRange(1, 86_400), default=TOTAL_SECONDS, show_default=True, help="Seconds to wait."
)
def command(no_input: bool, **options: object) -> None:
    """Connect this Hermes profile to a Canon agent.

    Registers a new agent and waits for its owner's approval, reconnects an agent of a stored profile, or takes an API
    key. A registration that was interrupted or ran out of time is taken up again by the next run. Without a terminal,
    give the answers as options.
    """
    ways = [way for option, way in _WAYS.items() if options.pop(option)]
    if len(ways) > 1:
        raise click.UsageError("choose one of --register, --use-profile and --api-key-stdin")
    options["way"] = ways[0] if ways else None
    sys.exit(run(Answers.from_options(options), Prompter(interactive=interactive() and not no_input)))


def gateway_setup() -> None:
    """Run the set-up as a step of ``hermes gateway setup``: the same questions, no exit."""
    try:
        run(Answers(), Prompter(interactive=interactive()))
    except click.Abort:
        say("cancelled", mark="note")


def run(answers: Answers, prompter: Prompter) -> int:
    """Carry the set-up out and return its exit code."""
    try:
        good = SetupWizard(Situation.look(), answers, prompter).run()
    except KeyboardInterrupt:
        say("interrupted; a submitted request is kept: run canon-hermes setup again", mark="warning", error=True)
        return INTERRUPTED
    except MissingAnswerError as error:
        say(str(error), mark="fault", error=True)
        return WRONG_USAGE
    except (CanonPluginError, OSError) as error:
        say(str(error), mark="fault", error=True)
        return 1
    return 0 if good else 1
