"""``canon-hermes approvals``: look into the ledger of detached approvals, and put its history back into one file.

Shows ids and states; what was asked stays in the file. Everything it decides is decided by the ledger's store.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import click
from canon_hermes_plugin.cli.output import say
from canon_hermes_plugin.cli.terminal import printable
from canon_hermes_plugin.domain.approvals.transitions import state_of
from canon_hermes_plugin.infrastructure.files.approval_store import LEDGER_NAME, FileLedger
from canon_hermes_plugin.infrastructure.files.locations import canon_paths
from canon_hermes_plugin.infrastructure.system import SystemClock
from canon_hermes_plugin.ports.approvals import Entry
from canon_hermes_plugin.ports.errors import LedgerError

R = TypeVar("R")


@click.group()
def command() -> None:
    """Look into the detached approvals of this Canon home."""


@command.command("list")
def list_open() -> None:
    """List the approvals that still wait for something, oldest deadline first."""
    entries = _guarded(_ledger().snapshot_now)
    for entry in sorted(entries, key=lambda item: item["expiresAt"]):
        say(_line(entry))
    say(f"{len(entries)} open", mark="note")


@command.command("restore-history")
def restore_history() -> None:
    """Put every settled approval back into the one ledger file, as releases without a history keep it.

    Stop the gateway first: a running one moves them out again.
    """
    moved = _guarded(_ledger().restore_history)
    say(f"{moved} settled approvals are back in {_home() / LEDGER_NAME}", mark="ok")


def _guarded(work: Callable[[], R]) -> R:
    try:
        return work()
    except LedgerError as error:
        say(f"{error} ({_home() / LEDGER_NAME})", mark="fault", error=True)
        sys.exit(1)


def _line(entry: Entry) -> str:
    try:
        until = datetime.fromtimestamp(entry["expiresAt"] / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        until = "an unreadable time"
    facts = (entry["approvalId"], state_of(entry), f"until {until}", entry["conversationId"])
    return "  ".join(printable(str(fact)) for fact in facts)


def _ledger() -> FileLedger:
    return FileLedger(_home(), SystemClock().now_ms)


def _home() -> Path:
    return canon_paths(os.environ).home
