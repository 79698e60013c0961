"""One seeded run: people, a bad network, a bad disk, a mortal gateway, made-up time; then the rules are checked."""

from __future__ import annotations

import asyncio
import logging
import pathlib
import random
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from canon_hermes_plugin.domain.approvals.creation import ApprovalOrder
from canon_hermes_plugin.domain.approvals.question import build_question
from canon_hermes_plugin.domain.interactions.questions import CardOrder, Questions, ResponderMismatchError
from canon_hermes_plugin.infrastructure.memory.virtual_loop import VirtualLoop
from canon_hermes_plugin.infrastructure.sandbox.records import Person
from canon_hermes_plugin.ports.errors import CanonPluginError
from canon_hermes_plugin.testing.script import Script, Stage, ToolError

from .network import Server, Weather
from .process import IDENTITY, Disk, GatewayProcess

OWNER, DANA, EVE, MALLORY = IDENTITY.owner.id, "user_dana", "user_eve", "user_mallory"
PLACES = {"conv_direct": [DANA], "conv_owner": [OWNER], "conv_group": [DANA, OWNER, EVE]}
STORM = 120.0
CALM = 420.0
MARK = "zqx"
"""Part of every text people, models and cards say here; a log line must never hold it."""
LOOP_FILES = 3
"""Files of an event loop: its selector and both ends of its own pipe."""
KINDS = ["answer", "answer", "long", "stream", "stream", "silent", "fail", "approval", "card", "nothing"]


def open_files() -> int:
    """Return how many files this process holds open, 0 where nobody knows."""
    held = pathlib.Path("/proc/self/fd")
    return len(list(held.iterdir())) if held.is_dir() else 0


def card(mark: str) -> dict[str, object]:
    actions = [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]
    blocks = [{"kind": "actions", "actions": actions}]
    return {"schema": "canon.card.v1", "title": mark, "fallbackText": mark, "blocks": blocks}


@dataclass
class Act:
    """What one message makes the agent do, and what came of it."""

    number: int
    kind: str
    place: str
    by: str
    intent: str | None
    work: float
    message_id: str = ""
    turn_id: str = ""
    process: int = -1
    done: bool = False

    @property
    def mark(self) -> str:
        return f"{MARK}{self.number}{MARK}"

    @property
    def text(self) -> str:
        words = 1500 if self.kind == "long" else 12
        return " ".join(f"{self.mark} word{index}" for index in range(words))


@dataclass
class Logs(logging.Handler):
    """Every line anybody logs."""

    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(logging.DEBUG)

    def __hash__(self) -> int:
        return id(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class World:
    """A seed's people, server, disk and processes. ``run`` returns what broke a rule."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.loop = VirtualLoop()
        self.server = Server(lambda: 1_700_000_000_000 + round(self.loop.time() * 1000))
        for place, people in PLACES.items():
            kind = "group" if place == "conv_group" else "direct"
            self.server.state.add_conversation(place, *people, kind=kind)
        self.server.state.people[EVE] = Person(EVE, "Eve")
        rng = self.rng
        self.weather = Weather(rng.choice([0, 0.1, 0.3, 0.5]), rng.choice([0, 0.3]), rng.choice([0, 0.1, 0.3]))
        self.disk = Disk(self.server.now_ms, random.Random(f"{seed}-disk"))
        self.disk.trouble = rng.choice([0, 0, 0.15])
        self.acts: list[Act] = []
        self.processes: list[GatewayProcess] = []
        self.approvals: dict[str, tuple[str, str]] = {}
        self.truth: dict[str, str] = {}
        self.card_answers: list[tuple[str, str]] = []
        self.findings: list[str] = []
        self.logs = Logs()
        self.deaths = 0

    # --- the run ----------------------------------------------------------------------------------------------------

    def run(self) -> list[str]:
        files = open_files()
        root = logging.getLogger()
        level = root.level
        root.addHandler(self.logs)
        root.setLevel(logging.DEBUG)
        self.disk_was_bad = bool(self.disk.trouble)
        try:
            self.loop.run_until_complete(self._live())
        finally:
            root.removeHandler(self.logs)
            root.setLevel(level)
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
        if files and open_files() > files - LOOP_FILES:
            self.findings.append("a file is left open")
        self._check()
        return self.findings

    async def _live(self) -> None:
        asyncio.current_task().set_name("actor")
        await self._begin()
        actors = [asyncio.create_task(self._speak(), name="actor"), asyncio.create_task(self._decide(), name="actor")]
        actors += [asyncio.create_task(self._disturb(), name="actor")]
        await asyncio.sleep(STORM)
        self.weather.calm()
        self.disk.trouble = 0.0
        await asyncio.gather(*actors)
        await asyncio.sleep(CALM)
        await self.processes[-1].stop()
        left = self._tasks()
        self.findings += [f"task left: {task.get_name()}" for task in left]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _begin(self) -> None:
        process = GatewayProcess(len(self.processes), self.loop, self.server, self.disk, self.weather, self.seed)
        process.host.script_for = lambda message: self._script(process, message)
        self.processes.append(process)
        await process.start()

    def _tasks(self) -> set[asyncio.Task[object]]:
        return {task for task in asyncio.all_tasks(self.loop) if task.get_name() != "actor"} - {asyncio.current_task()}

    def story(self) -> list[str]:
        """What happened, for a replay and to compare two runs: requests as they arrived, turns and log lines."""
        requests = [f"{item.at_ms} {item.route} {item.status}" for item in self.server.state.requests]
        stored = [f"{item.id} {item.text[:60]}" for item in self.server.state.messages]
        return [*requests, *map(str, self.acts), *stored, *self.logs.lines]

    # --- people -----------------------------------------------------------------------------------------------------

    async def _speak(self) -> None:
        # What is said before the first process knows and noted its place is not for it.
        while self.disk.checkpoints.saved is None:
            await asyncio.sleep(0.1)
        for number in range(self.rng.randint(3, 9)):
            await asyncio.sleep(self.rng.uniform(0, 18))
            place = self.rng.choice(list(PLACES))
            intent = self.rng.choice([None, None, None, None, "interrupt", "stop"])
            work = self.rng.choice([0, 0, 1, 8, 25])
            act = Act(number, self.rng.choice(KINDS), place, self.rng.choice(PLACES[place]), intent, work)
            self.acts.append(act)
            marks = {"metadata": {"deliveryIntent": intent}} if intent else {}
            person = self.server.state.people[act.by]
            fields = {"text": f"please {act.mark}", **marks}
            act.message_id = self.server.state.store_inbound(place, person, fields, {}).id
            if self.rng.random() < 0.1:
                self.server.state.set_signal(place, "interrupt", OWNER)

    async def _decide(self) -> None:
        """People answer what is open: mostly the right ones, sometimes a stranger through a server that lets them."""
        while self.loop.time() < STORM + 60:
            await asyncio.sleep(self.rng.uniform(2, 12))
            for made in self.server.interactions.waiting():
                luck = self.rng.random()
                choice = self.rng.choice(["allow", "deny"])
                if luck < 0.3:
                    continue
                if luck < 0.45:
                    self._forge_receipt(made, choice)
                elif luck < 0.6:
                    made.status = "answered"
                    status = choice if made.kind == "approval" else "submitted"
                    made.result = {"status": status, "actionId": "yes", "respondedBy": MALLORY, "values": {}}
                elif made.kind == "approval":
                    self.truth[made.id] = choice
                    self.server.interactions.answer(made.id, decision=choice)
                else:
                    self.server.interactions.answer(made.id, actionId="yes", values={})

    def _forge_receipt(self, made, choice: str) -> None:
        metadata = {"type": "approval_reply", "approvalId": made.id, "decision": choice}
        stranger = Person(MALLORY, "Mallory")
        self.server.state.store_inbound(made.conversation_id, stranger, {"text": choice, "metadata": metadata}, {})

    async def _disturb(self) -> None:
        for what, odds in (("reconnect", 0.3), ("stop", 0.15), ("kill", 0.3), ("cut", 0.5)):
            await asyncio.sleep(self.rng.uniform(5, 25))
            if self.rng.random() > odds:
                continue
            process = self.processes[-1]
            if what == "cut":
                self.server.state.events.end(clean=self.rng.random() < 0.5)
            elif what == "reconnect":
                self.weather.seen.add(what)
                await process.disconnect()
                await asyncio.sleep(self.rng.uniform(0, 5))
                await process.start()
            else:
                if self.rng.random() < 0.5:
                    await self._amid_a_delivery()
                self.deaths += 1
                self.weather.seen.add(what)
                await (process.stop() if what == "stop" else process.kill(self._tasks))
                await asyncio.sleep(self.rng.uniform(0, 20))
                await self._begin()

    async def _amid_a_delivery(self) -> None:
        """Wait for the next durable message that is begun, for a while, and a moment more."""
        before, patience = len(self.server.begun), self.loop.time() + 30
        while len(self.server.begun) == before and self.loop.time() < patience:
            await asyncio.sleep(0.02)
        await asyncio.sleep(self.rng.choice([0, 0.5, 3]) * self.rng.random())

    # --- the agent --------------------------------------------------------------------------------------------------

    def _script(self, process: GatewayProcess, message) -> Script:
        act = next((act for act in self.acts if act.message_id == message.message_id), None)
        if message.synthetic or act is None:
            return Script()
        return Script().runs(lambda stage: self._play(process, act, stage))

    async def _play(self, process: GatewayProcess, act: Act, stage: Stage) -> None:
        act.turn_id, act.process = stage.turn.id, self.processes.index(process)
        if act.work:
            await stage.calls_tool("search", lambda: None)
            await asyncio.sleep(act.work)
        if act.kind == "approval":
            await self._ask_approval(process, act)
        if act.kind == "card":
            await self._ask_card(process, act)
        if act.kind == "stream":
            words = act.text.split()
            cuts = sorted(self.rng.sample(range(1, len(words)), 3))
            await stage.streams((*(" ".join(words[:cut]) for cut in cuts), act.text))
        elif act.kind == "silent":
            await stage.streams((act.mark, f"{act.mark} and more"))
            await asyncio.sleep(self.rng.uniform(0, 6))
            await stage.is_silent()
            await stage.says(act.text)
        elif act.kind != "nothing":
            await stage.says(act.text)
        if act.kind == "fail":
            raise ToolError
        act.done = True

    async def _ask_approval(self, process: GatewayProcess, act: Act) -> None:
        question = build_question(title=act.mark, question=None, options=None, context=None)
        order = ApprovalOrder(question, act.place, act.by, 3_600_000)
        try:
            result = await process.creation.request(order, process.client)
        except CanonPluginError:
            return
        self.approvals[str(result["approvalId"])] = (act.by, act.place)

    async def _ask_card(self, process: GatewayProcess, act: Act) -> None:
        order = CardOrder(card(act.mark), act.place, 60, act.by, f"card-{act.number}", strict=True)
        try:
            answer = await Questions(process.container.api(), process.clock).ask_card(order)
        except (CanonPluginError, ResponderMismatchError):
            return
        if answer["status"] == "submitted":
            self.card_answers.append((act.by, str(answer["respondedBy"])))

    # --- the rules --------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        own = [item for item in self.server.state.messages if item.sender_id == IDENTITY.agent_id]
        self._check_messages()
        self._check_turns(own)
        self._check_parts(own)
        self._check_begun(own)
        self._check_silence(own)
        self._check_decisions()
        self._check_logs()
        for process in self.processes:
            self.findings += [f"the host failed: {error!r}" for error in process.host.failures]

    def _check_messages(self) -> None:
        taken = Counter(
            message.message_id
            for process in self.processes
            for message in process.host.received
            if not message.synthetic
        )
        self.findings += [f"message {key} became {count} turns" for key, count in taken.items() if count > 1]
        if not any(act.intent == "stop" for act in self.acts):
            lost = [act.message_id for act in self.acts if act.message_id not in taken]
            self.findings += [f"message {key} became no turn" for key in lost]

    def _check_turns(self, own) -> None:
        finals = Counter(item.metadata.get("turnId") for item in own if item.final)
        for act in self.acts:
            count = finals[act.turn_id] if act.turn_id else 0
            speaks = act.done and act.kind not in {"silent", "nothing"}
            interrupted = self._interrupted(act)
            survived = act.process == len(self.processes) - 1
            if count > 1 or (count and (act.kind in {"silent", "nothing", "fail"} or not act.done)):
                self.findings.append(f"turn of message {act.number} ({act.kind}) has {count} turn_complete")
            if speaks and survived and not interrupted and count != 1:
                self.findings.append(f"turn of message {act.number} ({act.kind}) has {count} turn_complete, not 1")

    def _interrupted(self, act: Act) -> bool:
        states = [turn["state"] for turn in self.server.state.logs.turns if turn.get("turnId") == act.turn_id]
        return "interrupted" in states

    def _check_parts(self, own) -> None:
        groups: dict[str, list] = defaultdict(list)
        for item in own:
            chunk = item.metadata.get("messageChunk")
            groups[chunk["groupId"] if chunk else item.id].append(item)
        for group, items in groups.items():
            chunks = [item.metadata.get("messageChunk") for item in items]
            indexes = [chunk["index"] if chunk else 1 for chunk in chunks]
            if indexes != list(range(1, len(items) + 1)):
                self.findings.append(f"parts of {group} are stored as {indexes}")
            final = items[-1]
            act = next((act for act in self.acts if act.turn_id and act.turn_id == final.metadata.get("turnId")), None)
            if final.final and act is not None:
                whole = chunks[-1]["count"] if chunks[-1] else 1
                text = re.sub(r"\s+", "", "".join(item.text for item in items))
                if len(items) != whole or text != act.text.replace(" ", ""):
                    self.findings.append(f"the answer to message {act.number} is not complete")

    def _check_begun(self, own) -> None:
        """What was begun is there, completely and once, whoever died meanwhile: a disk outlives its processes."""
        stored = Counter(item.id for item in own)
        uninsured = {re.sub(r"-part-\d+$", "", key) for key in self.disk.uninsured} if self.deaths else set()
        for key, message in self.server.begun.items():
            chunk = message.get("metadata", {}).get("messageChunk")
            group, count = (chunk["groupId"], chunk["count"]) if chunk else (key, 0)
            if group in uninsured:
                continue
            needed = [f"{group}-part-{index + 1}" for index in range(count)] or [key]
            missing = [name for name in needed if stored[name] != 1]
            if missing:
                self.findings.append(f"{key} was begun and {missing} are stored otherwise than once")
        if not self.disk_was_bad and self.disk.outbox.documents:
            self.findings.append(f"still in the outbox: {list(self.disk.outbox.documents)}")

    def _check_silence(self, own) -> None:
        for act in self.acts:
            if act.kind == "silent" and act.done:
                self.findings += [f"{item.id} was said after silence" for item in own if act.mark in item.text]
                nodes = [node for node in self.server.state.nodes.values() if act.mark in str(node.get("text"))]
                survived = act.process == len(self.processes) - 1
                self.findings += ["a node still shows what fell silent" for _ in nodes if survived]

    def _check_decisions(self) -> None:
        self.findings += [f"{by} answered for {asked}" for asked, by in self.card_answers if asked != by]
        wakes: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for number, process in enumerate(self.processes):
            for message in process.host.received:
                found = re.match(r"Canon approval (\S+) resolved: (\w+)", message.text) if message.synthetic else None
                if found:
                    wakes[found[1]].append((number, found[2]))
        for key, told in wakes.items():
            if {decision for _, decision in told} != {self.truth.get(key, "nobody decided")}:
                self.findings.append(f"approval {key}: told {told}, true is {self.truth.get(key)}")
            if len(told) > 1 + (len(told) if self.disk_was_bad else self.deaths):
                self.findings.append(f"approval {key} was decided {len(told)} times")
        if self.deaths == 0 and not self.disk_was_bad:
            missed = [key for key in self.truth if key in self.approvals and key not in wakes]
            self.findings += [f"approval {key} was decided and nobody was told" for key in missed]

    def _check_logs(self) -> None:
        for line in self.logs.lines:
            if MARK in line or IDENTITY.api_key in line:
                self.findings.append(f"a log line tells too much: {line[:160]}")
                return
