"""Canon's request side: one suite for the HTTP client (against the loopback Canon) and for the in-memory twin."""

from __future__ import annotations

from canon_hermes_plugin.infrastructure.canon.client import CanonHttp
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.ports.canon import AgentIdentity, RuntimeSignal
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret
from canon_hermes_plugin.testing.contracts import CanonApiContract
from canon_hermes_plugin.testing.contracts.canon_api import CHAT


class MemoryWorld:
    """The twin and what it stored."""

    def __init__(self):
        self.canon = MemoryCanon(AgentIdentity("agent_1", "user_owner", "Ermes"))
        self.canon.conversations = [{"id": CHAT}, {"id": "conv_group"}]
        self.api = self.canon
        self.agent_id = "agent_1"

    async def close(self):
        await self.api.close()

    def stored(self):
        return [(message.text, message.metadata.get("turnSemantics")) for message in self.canon.messages]

    def notified(self):
        return len(self.canon.notifications)

    def node(self):
        node = self.canon.nodes.get(CHAT)
        return node and (node.text, list(node.blocks))

    def signal(self, signal, user_id):
        self.canon.put_signal(CHAT, RuntimeSignal(signal, user_id))

    def refuse(self, status):
        self.canon.faults.fail_next("send", Fault.definitive(status))

    def break_down(self):
        self.canon.faults.fail_next("send", Fault.ambiguous(500))

    def lose_answer(self):
        self.canon.faults.fail_next("send", Fault.lost_response())

    def queued_message(self):
        return "msg_1"

    def released(self):
        return [message_id for _, message_id in self.canon.released]


class HttpWorld:
    """The real client, and the loopback Canon behind a real socket."""

    def __init__(self):
        self.canon = LoopbackCanon()
        self.canon.start()
        identity, base = self.canon.identity, self.canon.base_url
        self.agent_id = identity.agent_id
        environment = Environment(
            identity.environment_id, identity.project_id, base, base, "http://localhost:9", "web-key"
        )
        connection = Connection(Secret(identity.api_key), environment, "direct", "test")
        self.api = CanonHttp(CanonLink(connection, clock=VirtualClock(instant=True)))

    async def close(self):
        await self.api.close()
        self.canon.stop()

    def stored(self):
        mine = [message for message in self.canon.state.messages if message.sender_id == self.agent_id]
        return [(message.text, message.metadata.get("turnSemantics")) for message in mine]

    def notified(self):
        return len(self.canon.logs.notifications)

    def node(self):
        node = self.canon.state.nodes.get(CHAT)
        return node and (node["text"], node.get("blocks", []))

    def signal(self, signal, user_id):
        self.canon.signal(CHAT, signal, user_id)

    def refuse(self, status):
        self.canon.fault("send", status=status)

    def break_down(self):
        self.canon.fault("send", status=500, times=3)

    def lose_answer(self):
        self.canon.fault("send", kind="drop", after=True, times=3)

    def queued_message(self):
        return self.canon.say(CHAT, "user_dana", "later", metadata={"inboundDisposition": "queued"})

    def released(self):
        return [entry["messageId"] for entry in self.canon.logs.dispositions]


class TestMemory(CanonApiContract):
    subject = MemoryCanon

    def factory(self, tmp_path):
        return MemoryWorld()


class TestHttp(CanonApiContract):
    subject = CanonHttp

    def factory(self, tmp_path):
        return HttpWorld()
