"""Shows a registration that waits for its owner: a moving line on a terminal, a dot for each question elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self, final

import click
from canon_hermes_plugin.cli.output import colourful, say
from canon_hermes_plugin.cli.terminal import printable


@final
class RegistrationProgress:
    """Implements :class:`canon_hermes_plugin.domain.registration.desk.Watcher`; use it as a context."""

    def __init__(self) -> None:
        self._dots = 0
        self._bar: _Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._dots:
            click.echo()
        self._dots = 0

    def asked(self, request_id: str, total: float) -> None:
        say(f"request {printable(request_id)} is with the owner: approve it in Canon within {total:.0f} s", mark="note")
        self._open(total)

    def resumed(self, request_id: str, total: float) -> None:
        say(f"resuming request {printable(request_id)}; new answers are not used", mark="note")
        self._open(total)

    def waiting(self, request_id: str, elapsed: float, total: float) -> None:
        if self._bar is not None:
            self._bar.show(elapsed)
        else:
            click.echo(".", nl=False)
            self._dots += 1

    def stumbled(self, problem: str) -> None:
        if self._bar is None and self._dots:
            click.echo()
            self._dots = 0
        say(f"{problem}; trying again", mark="warning", error=True)

    def _open(self, total: float) -> None:
        if colourful(sys.stdout):
            self._bar = _Bar(total)


class _Bar:
    """The moving line; rich is loaded only where it can move."""

    def __init__(self, total: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            SpinnerColumn("line"),
            TextColumn("waiting for approval"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn(f"of {total:.0f} s"),
            console=Console(),
            transient=True,
        )
        self._task = self._progress.add_task("", total=total)
        self._progress.start()

    def show(self, elapsed: float) -> None:
        self._progress.update(self._task, completed=elapsed)

    def close(self) -> None:
        self._progress.stop()
