"""Switchable faults of the loopback Canon (canon-wire §11.1 row 22).

Decides which fault a request meets, and in which order faults are used up. Knows nothing of what a route does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

from canon_hermes_plugin.infrastructure.sandbox.records import RequestRecord

ROUTES = frozenset(
    {
        "healthz",
        "health",
        "me",
        "conversations",
        "send",
        "upload",
        "media",
        "typing",
        "streaming",
        "status",
        "turn",
        "signal",
        "disposition",
        "read",
        "interaction.create",
        "interaction.consume",
        "verb",
        "stream",
        "register",
        "register.status",
        "register.ack",
    }
)
"""Route names, one for each call of canon-wire §1.0 (``media`` is the download, ``stream`` the event stream)."""

FaultKind = Literal["delay", "status", "drop", "reset", "truncate", "garbage", "redirect", "end"]


@dataclass(slots=True)
class Fault:
    """One way to fail.

    Attributes:
        kind: ``delay`` only waits, then behaves; ``status`` answers ``status``; ``drop`` closes the connection without
            an answer; ``reset`` tears it down (TCP reset); ``truncate`` announces the whole body and sends half of it;
            ``garbage`` answers success with ``content``; ``redirect`` answers 302 to ``content``; ``end`` (stream only)
            opens and ends the body at once.
        after: apply it *after* the request took effect, which makes the outcome ambiguous for the client.
        delay: seconds to wait first.
        status: for ``status``.
        retry_after: seconds for a ``Retry-After`` header.
        content: raw body, or the redirect's target.
        times: how many matching requests it hits; ``None`` is for ever.
        matching: further condition on the request.
    """

    kind: FaultKind = "status"
    after: bool = False
    delay: float = 0.0
    status: int = 500
    retry_after: float | None = None
    content: str = ""
    times: int | None = 1
    matching: Callable[[RequestRecord], bool] | None = None

    def __post_init__(self) -> None:
        known = get_args(FaultKind)
        if self.kind not in known:
            raise ValueError(f"unknown kind of fault {self.kind!r}; known: {', '.join(known)}")


@dataclass(slots=True)
class FaultPlan:
    """The faults still to happen, per route, first come first used."""

    _plan: dict[str, list[Fault]] = field(default_factory=dict[str, list[Fault]])

    def add(self, route: str, fault: Fault) -> None:
        """Queue ``fault`` for ``route``.

        Raises:
            ValueError: no such route.
        """
        if route not in ROUTES:
            raise ValueError(f"unknown route {route!r}; known: {', '.join(sorted(ROUTES))}")
        self._plan.setdefault(route, []).append(fault)

    def clear(self, route: str | None = None) -> None:
        """Forget the faults of one route, or of all."""
        if route is None:
            self._plan.clear()
        else:
            self._plan.pop(route, None)

    def take(self, record: RequestRecord) -> Fault | None:
        """Use up and return the first fault that matches the request."""
        faults = self._plan.get(record.route, [])
        for fault in faults:
            if fault.matching is not None and not fault.matching(record):
                continue
            if fault.times is not None:
                fault.times -= 1
                if fault.times <= 0:
                    faults.remove(fault)
            return fault
        return None
