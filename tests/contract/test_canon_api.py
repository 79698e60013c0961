"""Canon's request side: one suite for the HTTP client (against the loopback Canon) and for the in-memory twin."""

from __future__ import annotations

import json

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
from canon_hermes_plugin.testing.contracts.canon_api_driver import CHAT


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

    def read(self):
        return self.canon.read

    def indicator(self):
        shown = [call.subject for call in self.canon.calls if call.operation == "set_typing"]
        if not shown:
            return None
        _, typing, status = shown[-1]
        return {"typing": typing, "status": status} if typing else {"typing": typing}

    def published(self):
        return [
            {
                "state": turn.state,
                "queueDepth": turn.queue_depth,
                "turnId": turn.turn_id,
                "activeMessageIds": turn.active_message_ids,
            }
            for turn in self.canon.turns
        ]

    def descriptors(self):
        return self.canon.statuses

    def answer(self, approval_id, status):
        self.canon.interactions.answer("approval", approval_id, {"status": status})

    def verbs(self):
        return self.canon.verbs

    def break_verb(self):
        self.canon.faults.fail_next("call_verb", Fault.ambiguous(500))

    def garble_verb(self):
        self.canon.faults.fail_next("call_verb", Fault.malformed())

    def revoke(self, status):
        self.canon.faults.fail_next("identify", Fault.definitive(status))

    def list_nameless(self):
        self.canon.conversations.append({"type": "direct"})

    def impersonate(self):
        self.canon.faults.fail_next("verify", Fault.definitive(200))

    def vanish(self, status):
        self.canon.faults.fail_next("verify", Fault.ambiguous(status))


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

    def read(self):
        return [entry["conversationId"] for entry in self.canon.logs.reads]

    def indicator(self):
        shown = self.canon.logs.typing
        return {name: shown[-1][name] for name in ("typing", "status") if name in shown[-1]} if shown else None

    def published(self):
        return self.canon.logs.turns

    def descriptors(self):
        return [entry["runtimeDescriptor"] for entry in self.canon.logs.statuses]

    def answer(self, approval_id, status):
        self.canon.interactions.answer(approval_id, decision=status)

    def verbs(self):
        bodies = [(call.path.rpartition("/")[2], call.body) for call in self.canon.requests("verb") if call.handled]
        return [(verb, body["envelope"], body["body"]["value"]) for verb, body in bodies]

    def break_verb(self):
        self.canon.fault("verb", status=500)

    def garble_verb(self):
        answer = {"wire": "canon.verb-wire.v1", "verb": "send_to", "result": {"encoding": "json", "value": {}}}
        self.canon.fault("verb", kind="garbage", content=json.dumps(answer))

    def revoke(self, status):
        self.canon.fault("me", status=status)

    def list_nameless(self):
        self.canon.state.conversations["nameless"] = {"type": "direct"}

    def impersonate(self):
        self.canon.fault("healthz", kind="garbage", content='{"environmentId":"canon-prod-v1","projectId":"other"}')

    def vanish(self, status):
        for route in ("healthz", "health"):
            how = {"kind": "drop"} if status is None else {"status": status}
            self.canon.fault(route, times=None, **how)


class TestMemory(CanonApiContract):
    subject = MemoryCanon

    def factory(self, tmp_path):
        return MemoryWorld()


class TestHttp(CanonApiContract):
    subject = CanonHttp

    def factory(self, tmp_path):
        return HttpWorld()
