"""``canon-hermes card``: check a card file, start from an example, see a card as plain text."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any, Final, cast

import click
from canon_hermes_plugin.cli.output import say
from canon_hermes_plugin.cli.terminal import Screen, printable
from canon_hermes_plugin.domain.cards.examples import EXAMPLES
from canon_hermes_plugin.domain.cards.interactive import interactive
from canon_hermes_plugin.domain.cards.render import ASCII, UNICODE, render
from canon_hermes_plugin.domain.cards.teach import reference_text, skill_text, with_reference
from canon_hermes_plugin.domain.cards.text import Finding, Reading, read_card

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
_WIDEST: Final = 100

_FILE = click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True, path_type=Path)
)


@click.group(no_args_is_help=True)
def command() -> None:
    """Check Canon cards, start from an example, see a card as plain text."""


@command.command(short_help="Check a card file: exit status 0 or 1.")
@_FILE
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def check(file: Path, as_json: bool) -> None:
    """Check a card FILE ("-" reads standard input): exit status 0 when it is valid, 1 when it is not."""
    reading = _read(file)
    if as_json:
        click.echo(json.dumps(_verdict(reading), indent=2))
    else:
        _report(file, reading)
    sys.exit(0 if reading.ok else 1)


@command.command(short_help="Print a valid card to start from.")
@click.argument("name", type=click.Choice(list(EXAMPLES)), required=False)
def example(name: str | None) -> None:
    """Print a valid card to start from; without NAME, list them."""
    screen = Screen()
    if name is None:
        space = max(map(len, EXAMPLES))
        for each, known in EXAMPLES.items():
            screen.line(f"{each:{space}}  {known.purpose}")
    else:
        click.echo(json.dumps(EXAMPLES[name].card, indent=2))


@command.command(short_help="Show a card as plain text.")
@_FILE
def show(file: Path) -> None:
    """Show a card FILE ("-" reads standard input) as it reads in a plain terminal."""
    reading = _read(file)
    if not reading.ok:
        _report(file, reading)
        sys.exit(1)
    screen = Screen()
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    card = cast("dict[str, Any]", _harmless(reading.value))
    for line in render(card, width, UNICODE if screen.encodes("─█•·✔○✘") else ASCII):
        screen.line(line)


@command.command(short_help="Print the skill or the reference.")
@click.argument("part", type=click.Choice(["skill", "reference"]))
@click.option("--write", type=click.Path(dir_okay=False, path_type=Path), help="Write into this file instead.")
def docs(part: str, write: Path | None) -> None:
    """Print the skill or the reference, both generated from the schema the validator enforces.

    A reference written into an existing page replaces the section between the marks and leaves the rest alone.
    """
    if write is None:
        Screen().line((skill_text() if part == "skill" else reference_text()).rstrip("\n"))
        return
    page = write.read_text(encoding="utf-8") if part == "reference" and write.exists() else ""
    write.write_text(skill_text() if part == "skill" else with_reference(page), encoding="utf-8")


def _read(file: Path) -> Reading:
    if str(file) == "-":
        data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    else:
        with file.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        return Reading(None, (Finding("card", 1, f"must not be read: the file exceeds {MAX_FILE_BYTES} bytes"),))
    return read_card(data)


def _report(file: Path, reading: Reading) -> None:
    name = printable("standard input" if str(file) == "-" else str(file))
    screen = Screen()
    for found in reading.findings:
        screen.line(f"{name}:{found.line}: {found.path} {printable(found.message)}")
    if reading.ok:
        say(f"{name}: valid, {_kind(reading.value)}", mark="ok")
    else:
        count = len(reading.findings)
        say(f"{name}: not valid, {count} error{'s' if count > 1 else ''}", mark="fault")


def _verdict(reading: Reading) -> dict[str, object]:
    errors = [{"path": found.path, "line": found.line, "message": found.message} for found in reading.findings]
    return {"ok": reading.ok, "interactive": reading.ok and interactive(reading.value), "errors": errors}


def _kind(card: object) -> str:
    return "interactive: it waits for an answer" if interactive(card) else "for display: nobody is asked"


def _harmless(value: object) -> object:
    """Return a JSON value with every string safe to print."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_harmless(entry) for entry in cast("list[object]", value)]
    if isinstance(value, dict):
        return {name: _harmless(entry) for name, entry in cast("dict[str, object]", value).items()}
    return value
