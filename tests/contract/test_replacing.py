"""Replacing every real adapter by its twin changes nothing the domain does.

The same scenarios run over HTTP, server-sent events and files, with the loopback Canon behind a real socket, and over
the twins. A scenario speaks of messages, turns and decisions; it cannot tell which world it is in.
"""

from __future__ import annotations

import asyncio
import itertools
import time

import pytest
from canon_hermes_plugin.domain.approvals.creation import ApprovalCreation, ApprovalOrder
from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.approvals.ownership import LedgerIdentity
from canon_hermes_plugin.domain.approvals.question import build_question
from canon_hermes_plugin.domain.approvals.receipts import ApprovalReceiver, ReceiverPorts
from canon_hermes_plugin.domain.inbound.service import InboundPorts, InboundService
from canon_hermes_plugin.domain.interactions.blocking import BlockingDeps, BlockingRequests, ExecAsk
from canon_hermes_plugin.domain.media.captures import CaptureStore
from canon_hermes_plugin.domain.media.intake import MediaIntake
from canon_hermes_plugin.domain.turns.coordinator import TurnCoordinator
from canon_hermes_plugin.domain.turns.model import HostText, TurnStart
from canon_hermes_plugin.infrastructure.canon.access import HttpAccess
from canon_hermes_plugin.infrastructure.canon.client import CanonHttp
from canon_hermes_plugin.infrastructure.canon.health import RecentProofs
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.canon.stream import CanonSse
from canon_hermes_plugin.infrastructure.files.approval_store import FileLedger
from canon_hermes_plugin.infrastructure.files.outbox import FileOutbox
from canon_hermes_plugin.infrastructure.hermes.prompts import PromptedTurn
from canon_hermes_plugin.infrastructure.memory.access import MemoryAccess
from canon_hermes_plugin.infrastructure.memory.approval_store import MemoryLedger
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.canon_stream import MemoryCanonStream
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.lanes import MemoryLanes
from canon_hermes_plugin.infrastructure.memory.media import MemoryMediaCache, MemoryMediaFetcher
from canon_hermes_plugin.infrastructure.memory.outbox import MemoryOutbox
from canon_hermes_plugin.infrastructure.memory.questions import MemoryQuestions
from canon_hermes_plugin.infrastructure.memory.time import SeededIds
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.infrastructure.system import BackgroundTasks
from canon_hermes_plugin.ports.canon import AgentIdentity, RuntimeSignal
from canon_hermes_plugin.ports.canon_stream import StreamEvent
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret

CHAT = "conv_direct"
DANA = "user_dana"
AGENT = AgentIdentity("agent_sandbox", "user_owner", "Hermes")


class QuickClock:
    """Real time, fifty times as fast."""

    def now_ms(self):
        return 1_900_000_000_000 + round(self.monotonic() * 1000)

    def monotonic(self):
        return time.monotonic() * 50

    async def sleep(self, seconds):
        await asyncio.sleep(seconds / 50)


class RealWorld:
    """Canon behind a socket, the ledger and the outbox in files."""

    def __init__(self, home):
        self.clock = QuickClock()
        self._canon = LoopbackCanon(clock=self.clock.now_ms)
        self._canon.start()
        identity, base = self._canon.identity, self._canon.base_url
        environment = Environment(identity.environment_id, identity.project_id, base, base, "http://x:9", "k")
        connection = Connection(Secret(identity.api_key), environment, "direct", "test")
        link, proofs = CanonLink(connection, clock=self.clock), RecentProofs(self.clock)
        self.canon, self.stream = CanonHttp(link, proofs), CanonSse(link, SeededIds())
        self.access = HttpAccess(lambda: connection, self.clock, proofs)
        self.ledger, self.outbox = FileLedger(home, self.clock.now_ms), FileOutbox(home, "agent")

    def says(self, text, **fields):
        return self._canon.say(CHAT, DANA, text, **fields)

    def repeats(self):
        self._canon.repeat_events()

    def signals(self, kind):
        self._canon.signal(CHAT, kind, DANA)

    def decides(self, approval_id, status):
        self._canon.interactions.answer(approval_id, decision=status)

    def asked(self):
        return [made.id for made in self._canon.interactions.waiting(CHAT)]

    def loses_the_answer(self):
        self._canon.fault("send", kind="drop", after=True, times=3)

    def refuses(self):
        self._canon.fault("send", status=400)

    def stored(self):
        return [(message.text, message.metadata.get("turnSemantics")) for message in self._canon.messages(CHAT)]

    def notified(self):
        return len(self._canon.logs.notifications)

    def states(self):
        return [body["state"] for body in self._canon.logs.turns]

    def node(self):
        node = self._canon.node(CHAT)
        return node and node["text"]

    async def close(self):
        await self.canon.close()
        self._canon.stop()


class TwinWorld:
    """Everything in memory."""

    def __init__(self, home):
        del home
        self.clock = QuickClock()
        self.canon, self.stream = MemoryCanon(AGENT, self.clock), MemoryCanonStream(self.clock)
        self.canon.conversations = [{"id": CHAT, "type": "direct"}]
        self.access = MemoryAccess(self.canon)
        self.ledger, self.outbox = MemoryLedger(self.clock.now_ms), MemoryOutbox()
        self._numbers, self._last = itertools.count(1), None

    def _emit(self, name, data):
        self._last = StreamEvent(name, data, f"e{next(self._numbers)}")
        self.stream.emit(self._last)

    def says(self, text, **fields):
        message = {"id": f"msg_{next(self._numbers)}", "senderId": DANA, "senderType": "human", "text": text, **fields}
        self._emit("message.created", {"conversationId": CHAT, "message": message})
        return message["id"]

    def repeats(self):
        self.stream.emit(self._last)

    def signals(self, kind):
        self.canon.put_signal(CHAT, RuntimeSignal(kind, DANA))
        self._emit("runtime.control", {"conversationId": CHAT, "kind": "signal"})

    def decides(self, approval_id, status):
        self.canon.interactions.answer("approval", approval_id, {"status": status})
        self.says("decided", metadata={"type": "approval_reply", "approvalId": approval_id, "decision": status})

    def asked(self):
        return [name for (_, name), made in self.canon.interactions.requests.items() if made.answer is None]

    def loses_the_answer(self):
        self.canon.faults.fail_next("send", Fault.lost_response())

    def refuses(self):
        self.canon.faults.fail_next("send", Fault.definitive(400))

    def stored(self):
        return [(message.text, message.metadata.get("turnSemantics")) for message in self.canon.messages]

    def notified(self):
        return len(self.canon.notifications)

    def states(self):
        return [publication.state for publication in self.canon.turns]

    def node(self):
        node = self.canon.nodes.get(CHAT)
        return node and node.text

    async def close(self):
        pass


class Plugin:
    """The domain's services, composed; the agent answers each message by :attr:`agent`."""

    def __init__(self, world, process="p1"):
        self.world, self.tasks, ids = world, BackgroundTasks(), SeededIds(len(process) + ord(process[-1]))
        self.received, self.signals = [], []
        self.agent = None
        self.turns = TurnCoordinator(
            canon=world.canon,
            lanes=MemoryLanes(),
            clock=world.clock,
            ids=ids,
            tasks=BackgroundTasks(),
            outbox=world.outbox,
        )
        self.desk = ApprovalDesk(world.ledger, world.clock, ids, process)
        self.desk.identity = LedgerIdentity(AGENT.agent_id)
        self.creation = ApprovalCreation(self.desk, world.clock, ids)
        self.receiver = ApprovalReceiver(self.desk, ReceiverPorts(world.canon, self, self.tasks), world.clock)
        self.host = MemoryQuestions()
        self.requests = BlockingRequests(
            BlockingDeps(world.canon, self.host, world.clock, ids, self.tasks, lambda: AGENT.owner_id)
        )
        media = MediaIntake(
            MemoryMediaFetcher(), MemoryMediaCache(), CaptureStore(world.clock.monotonic), world.clock, "none"
        )
        self.inbound = InboundService(
            InboundPorts(self, world.canon, world.canon, world.stream, self.receiver, media, self)
        )
        self._running = None

    async def connect(self):
        await self.world.canon.verify()
        self.inbound.adopt_identity(await self.world.canon.identify())
        await self.inbound.refresh_conversations()
        self.receiver.open()
        self._running = asyncio.ensure_future(self.world.stream.run(self.inbound))
        await until(lambda: self.world.stream.health().state.value == "live")

    async def hand_over(self, message):
        self.received.append(message)
        if self.agent is not None:
            self.tasks.spawn(self._answer(message), name="turn")

    async def apply_signal(self, conversation_id, signal, user_id, spare=frozenset()):
        self.signals.append((conversation_id, signal, user_id))

    def dropped(self, message):
        raise NotImplementedError

    async def open(self, message_id="msg_0"):
        return await self.turns.open(TurnStart(CHAT, "agent:main:canon:dm:conv_direct", "direct", message_id, DANA))

    async def _answer(self, message):
        turn = await self.open(message.message_id)
        await self.agent(self, turn)
        await self.turns.complete(turn, "success")

    async def close(self):
        self.receiver.close()
        await self.world.stream.stop()
        if self._running is not None:
            await self._running
        await self.tasks.drain(5)
        await self.turns.close()


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


async def ended(world):
    await until(lambda: world.states()[-1:] in (["completed"], ["interrupted"]) and not world.node())


async def streams(plugin, turn, *frames):
    bubble = (await plugin.turns.text(turn, HostText(CHAT, f"{frames[0]} ▉", expect_edits=True))).message_id
    for frame in frames[1:]:
        await plugin.turns.text(turn, HostText(CHAT, f"{frame} ▉", finalize=False, bubble=bubble))
    for _ in range(2):
        await plugin.turns.text(turn, HostText(CHAT, frames[-1], finalize=True, bubble=bubble))


@pytest.fixture(params=[RealWorld, TwinWorld], ids=["real", "twins"])
async def world(request, tmp_path):
    made = request.param(tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def plugin(world):
    made = Plugin(world)
    await made.connect()
    yield made
    await made.close()


# --- turns ------------------------------------------------------------------------------------------------------------


async def test_a_streamed_answer_is_stored_once_and_notifies_once(plugin, world):
    turn = await plugin.open()
    await streams(plugin, turn, "Pa", "Paid", "Paid.")
    await plugin.turns.complete(turn, "success")
    await ended(world)
    assert world.stored() == [("Paid.", "turn_complete")]
    assert world.notified() == 1
    assert world.states()[0] == "thinking"


async def test_a_long_answer_arrives_whole_and_only_its_last_part_notifies(plugin, world):
    words = " ".join(f"word{number}" for number in range(1500))
    turn = await plugin.open()
    await plugin.turns.text(turn, HostText(CHAT, words, notify=True))
    await plugin.turns.complete(turn, "success")
    await until(world.notified)
    parts = world.stored()
    assert len(parts) > 1
    assert " ".join(text for text, _ in parts).split() == words.split()
    assert [semantics == "turn_complete" for _, semantics in parts] == [False] * (len(parts) - 1) + [True]


async def test_a_silent_turn_leaves_nothing(plugin, world):
    turn = await plugin.open()
    assert plugin.turns.silence(turn)
    await plugin.turns.text(turn, HostText(CHAT, "hidden", notify=True))
    await plugin.turns.complete(turn, "success")
    await ended(world)
    assert (world.stored(), world.notified()) == ([], 0)


async def test_field_6_a_lost_answer_is_replayed_and_stored_once(plugin, world):
    world.loses_the_answer()
    turn = await plugin.open()
    await plugin.turns.text(turn, HostText(CHAT, "Paid.", notify=True))
    await plugin.turns.complete(turn, "success")
    await ended(world)
    assert world.stored() == [("Paid.", "turn_complete")]
    assert world.notified() == 1
    async with asyncio.timeout(20):
        while await world.outbox.leftover():
            await asyncio.sleep(0.005)


async def test_a_refused_answer_is_over_and_leaves_no_operation(plugin, world):
    world.refuses()
    turn = await plugin.open()
    await plugin.turns.text(turn, HostText(CHAT, "Paid.", notify=True))
    await plugin.turns.complete(turn, "success")
    await ended(world)
    assert ("Paid.", "turn_complete") not in world.stored()
    async with asyncio.timeout(20):
        while await world.outbox.leftover():
            await asyncio.sleep(0.005)


# --- inbound ----------------------------------------------------------------------------------------------------------


async def test_what_a_person_says_is_answered_once_however_often_it_arrives(plugin, world):
    async def agent(plugin, turn):
        await plugin.turns.text(turn, HostText(CHAT, "Hello, Dana.", notify=True))

    plugin.agent = agent
    message_id = world.says("hello")
    await until(world.notified)
    world.repeats()
    world.says("/never mind", metadata={"deliveryIntent": "queue"})
    await until(lambda: len(plugin.received) == 2)
    first = plugin.received[0]
    assert (first.message_id, first.text, first.user_id) == (message_id, "hello", DANA)
    await until(lambda: world.notified() == 2)
    assert world.stored()[0] == ("Hello, Dana.", "turn_complete")


async def test_a_signal_is_consumed_once_and_names_who_gave_it(plugin, world):
    world.signals("interrupt")
    await until(lambda: plugin.signals)
    assert plugin.signals == [(CHAT, "interrupt", DANA)]
    await plugin.inbound.consume_signal(CHAT)
    assert len(plugin.signals) == 1


# --- approvals --------------------------------------------------------------------------------------------------------


async def asks(plugin):
    question = build_question(title=None, question="Release berth 4?", options=None, context=None)
    order = ApprovalOrder(question, CHAT, DANA, 259_200_000)
    return (await plugin.creation.request(order, plugin.world.access.verified))["approvalId"]


@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_a_decision_wakes_the_model_once_and_is_kept(plugin, world, decision):
    approval_id = await asks(plugin)
    assert [entry["approvalId"] for entry in await plugin.desk.mine()] == [approval_id]
    world.decides(approval_id, decision)
    await until(lambda: plugin.received)
    world.repeats()
    world.says("and now?")
    await until(lambda: len(plugin.received) == 2)
    wake, later = plugin.received
    assert (wake.conversation_id, wake.synthetic, later.text) == (CHAT, True, "and now?")
    assert f"resolved: {decision}" in wake.text
    entry = await plugin.desk.find(approval_id)
    assert (entry["status"], entry["decision"], entry["respondedBy"]) == ("resolved", decision, DANA)
    checked = await plugin.desk.consume(world.canon, approval_id, wake=False)
    assert (checked["status"], checked["decision"]) == ("resolved", decision)


async def test_a_decision_taken_while_nobody_was_there_is_found_at_the_start(world):
    before = Plugin(world)
    approval_id = await asks(before)
    world.decides(approval_id, "allow")
    await before.close()
    after = Plugin(world, "p2")
    after.receiver.open()
    await after.receiver.reconcile()
    await until(lambda: after.received)
    assert "resolved: allow" in after.received[0].text
    assert (await after.desk.find(approval_id))["wakeStatus"] == "delivered"
    await after.close()


@pytest.mark.parametrize(("status", "choice"), [("allow", "once"), ("deny", "deny")])
async def test_a_dangerous_command_is_decided_by_the_person_of_its_turn(plugin, world, status, choice):
    turn = await plugin.open()
    held = plugin.host.hold("key", "rm a")
    ask = ExecAsk(CHAT, "rm a", "key", "dangerous command", DANA)
    await plugin.requests.exec_approval(ask, PromptedTurn(plugin.turns, turn))
    await until(lambda: "waiting_input" in world.states())
    world.decides(world.asked()[0], status)
    await until(lambda: held.choice is not None)
    assert held.choice == choice
    await until(lambda: world.states()[-1] != "waiting_input")
    await plugin.turns.complete(turn, "success")
