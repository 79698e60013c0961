"""Twins of who takes the stream's events: they keep them, wait at gates, fail when told to (ports/canon_stream)."""

from __future__ import annotations

import asyncio

from canon_hermes_plugin.domain.reading import identifier, mapping
from canon_hermes_plugin.ports.canon_stream import StreamEvent


class MemoryHandler:
    """Takes every event over.

    Attributes:
        taken: what was handed over, in order.
        gates: where an event, named by its id, waits first.
        failures: how often an event, named by its id, fails first.
    """

    def __init__(self) -> None:
        self.taken: list[StreamEvent] = []
        self.gates: dict[str | None, asyncio.Event] = {}
        self.failures: dict[str | None, int] = {}

    def lane(self, event: StreamEvent) -> str | None:
        return identifier(mapping(event.data).get("conversationId"))

    async def handle(self, event: StreamEvent) -> None:
        name = event.event_id
        if gate := self.gates.get(name):
            await gate.wait()
        if self.failures.get(name, 0) > 0:
            self.failures[name] -= 1
            raise OSError
        self.taken.append(event)


class MemoryEagerHandler(MemoryHandler):
    """Takes the events named in :attr:`quick` over without waiting.

    Attributes:
        quick: names of such events, for example ``typing.updated``.
        at_once: what was taken over so, in order; it is in ``taken`` too.
    """

    def __init__(self, *quick: str) -> None:
        super().__init__()
        self.quick = set(quick)
        self.at_once: list[StreamEvent] = []

    def handle_now(self, event: StreamEvent) -> bool:
        if event.name not in self.quick:
            return False
        self.at_once.append(event)
        self.taken.append(event)
        return True


class MemoryWaitingHandler(MemoryHandler):
    """Remembers what waited behind others of its lane.

    Attributes:
        behind: these events, in order of arrival.
    """

    def __init__(self) -> None:
        super().__init__()
        self.behind: list[StreamEvent] = []

    def waits(self, event: StreamEvent) -> None:
        self.behind.append(event)
