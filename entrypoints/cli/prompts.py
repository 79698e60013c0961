"""Asks a person, or takes the answers from options: the same questions with and without a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import click
from canon_hermes_plugin.ports.errors import ConfigurationError


class MissingAnswerError(ConfigurationError):
    """A question without default had to be answered by an option, because nobody can be asked."""


@final
class Prompter:
    """One conversation. Answers are trimmed; a given option is never asked for.

    Args:
        interactive: whether somebody can be asked.
    """

    def __init__(self, *, interactive: bool) -> None:
        self.interactive = interactive

    def text(self, label: str, *, option: str, given: str | None = None, default: str = "") -> str:
        """Return an answer, possibly blank.

        Raises:
            MissingAnswerError: nobody to ask, no option and no default; the text names the option.
        """
        if given is not None:
            return given.strip()
        if self.interactive:
            answer: str = click.prompt(label, default=default, show_default=bool(default))
            return answer.strip()
        if not default:
            raise MissingAnswerError(f"{label}: give it with {option}")
        return default

    def hidden(self, label: str) -> str:
        """Return an answer that is not shown while it is typed."""
        answer: str = click.prompt(label, default="", show_default=False, hide_input=True)
        return answer.strip()

    def confirm(self, question: str, *, default: bool) -> bool:
        """Return yes or no; the default when nobody can be asked."""
        return click.confirm(question, default=default) if self.interactive else default

    def choose(self, question: str, choices: Sequence[str], *, default: int = 0) -> int:
        """Return the index of one of ``choices``; the default when nobody can be asked."""
        if not self.interactive:
            return default
        for number, choice in enumerate(choices, 1):
            click.echo(f"  {number}. {choice}")
        answer: int = click.prompt(question, default=default + 1, type=click.IntRange(1, len(choices)))
        return answer - 1
