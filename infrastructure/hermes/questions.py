"""The host's open questions as the domain sees them (ports/interactions.HostQuestions)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import final

from canon_hermes_plugin.infrastructure.hermes import compat_approvals as compat
from canon_hermes_plugin.ports.interactions import ExecChoice, HostWait


@final
@dataclass(frozen=True, slots=True, eq=False)
class EntryWait:
    """One entry of the host's own queue: settled directly, whatever its place."""

    session_key: str
    entry: compat.HostEntry

    @property
    def exact(self) -> bool:
        return True

    def waiting(self) -> bool:
        entries = compat.waiting_entries(self.session_key)
        return entries is None or any(item is self.entry for item in entries)

    def settle(self, choice: ExecChoice) -> bool:
        return compat.settle_entry(self.session_key, self.entry, choice)


@final
@dataclass(frozen=True, slots=True, eq=False)
class OldestWait:
    """The session's oldest entry, whichever that is: all the host's public function can settle."""

    session_key: str

    @property
    def exact(self) -> bool:
        return False

    def waiting(self) -> bool:
        return True

    def settle(self, choice: ExecChoice) -> bool:
        return compat.settle_oldest(self.session_key, choice)


@final
@dataclass(frozen=True, slots=True, eq=False)
class GoneWait:
    """A command the host gave up before it was put to a person: nothing is left to settle, and no other is (D2)."""

    @property
    def exact(self) -> bool:
        return True

    def waiting(self) -> bool:
        return False

    def settle(self, choice: ExecChoice) -> bool:
        del choice
        return False


@final
class HermesQuestions:
    """Finds, times and settles the host's questions."""

    def exec_wait(self, session_key: str, command: str, taken: Collection[HostWait]) -> HostWait:
        entries = compat.waiting_entries(session_key)
        if entries is None:
            return OldestWait(session_key)
        mine = [item.entry for item in taken if isinstance(item, EntryWait)]
        free = [entry for entry in entries if all(entry is not other for other in mine)]
        named = [entry for entry in free if compat.entry_command(entry) == command]
        if not named and not compat.redacts():
            named = free  # the prompt may show the command in other words than the queue
        return EntryWait(session_key, named[0]) if named else GoneWait()

    def exec_seconds(self) -> float | None:
        return compat.approval_seconds()

    def clarify_waiting(self, session_key: str) -> bool:
        return compat.clarify_waiting(session_key)

    def settle_clarify(self, clarify_id: str, text: str) -> bool:
        return compat.settle_clarify(clarify_id, text)
