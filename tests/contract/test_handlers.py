"""Who takes the stream's events: the public suites on the inbound service and on the twins."""

from __future__ import annotations

from canon_hermes_plugin.domain.inbound.service import InboundPorts, InboundService
from canon_hermes_plugin.domain.media.captures import CaptureStore
from canon_hermes_plugin.domain.media.intake import MediaIntake
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.canon_stream import MemoryCanonStream
from canon_hermes_plugin.infrastructure.memory.handler import MemoryEagerHandler, MemoryHandler, MemoryWaitingHandler
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaCache, MemoryMediaFetcher
from canon_hermes_plugin.infrastructure.memory.receipts import MemoryReceipts
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.ports.canon import AgentIdentity
from canon_hermes_plugin.ports.canon_stream import StreamEvent
from canon_hermes_plugin.testing.contracts import (
    EagerEventHandlerContract,
    EventHandlerContract,
    WaitingEventHandlerContract,
)


class Service:
    """The inbound service, and a host that may refuse."""

    def __init__(self):
        self._failing = set()
        self._messages = []
        clock, canon = VirtualClock(), MemoryCanon()
        media = MediaIntake(MemoryMediaFetcher(), MemoryMediaCache(), CaptureStore(clock.monotonic), clock, "none")
        ports = InboundPorts(self, canon, canon, MemoryCanonStream(), MemoryReceipts(), media, self)
        self.handler = InboundService(ports)
        self.handler.adopt_identity(AgentIdentity("me", "owner", "Otto"))

    async def hand_over(self, message):
        if message.message_id in self._failing:
            self._failing.discard(message.message_id)
            raise RuntimeError("the host is not ready")
        self._messages.append(message.message_id)

    async def apply_signal(self, conversation_id, signal, user_id, spare=frozenset()):
        raise NotImplementedError

    def dropped(self, message):
        raise NotImplementedError

    def message(self, conversation_id, name):
        message = {"id": name, "senderType": "human", "senderId": "u1", "text": "hi"}
        return StreamEvent("message.created", {"conversationId": conversation_id, "message": message}, name)

    def passing(self, conversation_id, name):
        return StreamEvent("typing.updated", {"conversationId": conversation_id}, name)

    def taken(self):
        return self._messages

    def fail(self, name):
        self._failing.add(name)

    async def close(self):
        pass


class Twin:
    """A handler in memory."""

    def __init__(self, handler):
        self.handler = handler

    def message(self, conversation_id, name):
        return StreamEvent("message.created", {"conversationId": conversation_id}, name)

    def passing(self, conversation_id, name):
        return StreamEvent("typing.updated", {"conversationId": conversation_id}, name)

    def taken(self):
        return [event.event_id for event in self.handler.taken if event.name == "message.created"]

    def fail(self, name):
        self.handler.failures[name] = 1

    async def close(self):
        pass


class TestInboundService(EventHandlerContract):
    subject = InboundService

    def factory(self, tmp_path):
        return Service()


class TestTwin(EventHandlerContract):
    subject = MemoryHandler

    def factory(self, tmp_path):
        return Twin(MemoryHandler())


class TestEagerTwinIsAHandler(EventHandlerContract):
    subject = MemoryEagerHandler

    def factory(self, tmp_path):
        return Twin(MemoryEagerHandler("typing.updated"))


class TestEagerInboundService(EagerEventHandlerContract):
    subject = InboundService

    def factory(self, tmp_path):
        return Service()


class TestEagerTwin(EagerEventHandlerContract):
    subject = MemoryEagerHandler

    def factory(self, tmp_path):
        return Twin(MemoryEagerHandler("typing.updated"))


class TestWaitingInboundService(WaitingEventHandlerContract):
    subject = InboundService

    def factory(self, tmp_path):
        return Service()


class TestWaitingTwin(WaitingEventHandlerContract):
    subject = MemoryWaitingHandler

    def factory(self, tmp_path):
        return Twin(MemoryWaitingHandler())
