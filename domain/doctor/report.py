"""The doctor's report: lines and a verdict (interactions §12.3). Facts are gathered elsewhere; nothing is read here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["ok", "warning", "fault", "unknown", "note"]


@dataclass(frozen=True, slots=True)
class Line:
    """One checked fact.

    Attributes:
        check: stable name for machines.
        state: ``fault`` stops the agent or a part of it, ``warning`` hurts, ``unknown`` could not be checked.
        meaning: what is the case, without any part of a secret.
        fix: what to do; empty when there is nothing to do.
        required: the set-up is not ready unless this line is ``ok``.
    """

    check: str
    state: State
    meaning: str
    fix: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """All lines in the order they are shown."""

    lines: tuple[Line, ...]

    @classmethod
    def of(cls, *groups: Iterable[Line]) -> Report:
        """Return the report over ``groups``."""
        return cls(tuple(line for group in groups for line in group))

    @property
    def ready(self) -> bool:
        """Tell whether every required fact holds and nothing is at fault."""
        return all(line.state != "fault" and (line.state == "ok" or not line.required) for line in self.lines)

    @property
    def exit_code(self) -> int:
        """Return 0 for a ready set-up, else 1."""
        return 0 if self.ready else 1

    @property
    def verdict(self) -> str:
        """Return the last line."""
        if self.ready:
            return "ready"
        faults = [line.check for line in self.lines if line.state == "fault" or (line.required and line.state != "ok")]
        return f"needs setup: {', '.join(dict.fromkeys(faults))}"

    def document(self) -> dict[str, Any]:
        """Return the report for machines."""
        return {
            "ready": self.ready,
            "checks": [
                {
                    "check": line.check,
                    "state": line.state,
                    "meaning": line.meaning,
                    "fix": line.fix,
                    "required": line.required,
                }
                for line in self.lines
            ],
        }
