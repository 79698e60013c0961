"""The host's questions: the public suites on the installed host, on one that tells less, and on the twins."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from canon_hermes_plugin.domain.turns.coordinator import TurnCoordinator
from canon_hermes_plugin.domain.turns.model import TurnStart
from canon_hermes_plugin.infrastructure.hermes import compat_approvals as compat
from canon_hermes_plugin.infrastructure.hermes.prompts import PromptedTurn
from canon_hermes_plugin.infrastructure.hermes.questions import HermesQuestions
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.lanes import MemoryLanes
from canon_hermes_plugin.infrastructure.memory.outbox import MemoryOutbox
from canon_hermes_plugin.infrastructure.memory.questions import MemoryAskingTurn, MemoryQuestions
from canon_hermes_plugin.infrastructure.memory.time import RecordedTasks, SeededIds, VirtualClock, settle
from canon_hermes_plugin.testing.contracts import AskingTurnContract, HostQuestionsContract
from canon_hermes_plugin.testing.contracts.questions import OTHER, SESSION
from tools import approval, clarify_gateway

CONVERSATION = "conv_1"


class Held:
    """One entry of the host's queue."""

    def __init__(self, entry):
        self.entry = entry

    @property
    def choice(self):
        return self.entry.result


class InstalledHost:
    """The adapter and the host's own registries."""

    def __init__(self, patch):
        self._patch = patch
        self._questions = {}
        self.questions = HermesQuestions()

    def hold(self, session_key, command):
        entry = approval._ApprovalEntry({"command": command, "description": "d"})
        with approval._lock:
            approval._gateway_queues.setdefault(session_key, []).append(entry)
        return Held(entry)

    def give_up(self, held):
        with approval._lock:
            for key, queue in list(approval._gateway_queues.items()):
                queue[:] = [entry for entry in queue if entry is not held.entry]
                if not queue:
                    del approval._gateway_queues[key]

    def allow_seconds(self, seconds):
        used, unused = "timeout", "gateway_timeout"
        if version("hermes-agent").startswith("0.18."):
            used, unused = unused, used

        def config():
            if seconds is None:
                raise OSError
            return {used: seconds, unused: 12345}

        self._patch.setattr(approval, "_get_approval_config", config)
        if seconds is None:
            self._patch.delattr(approval, "_get_approval_timeout", raising=False)

    def put(self, session_key, clarify_id):
        self._questions[clarify_id] = clarify_gateway.register(clarify_id, session_key, "Which?", ["North", "South"])

    def withdraw(self, clarify_id):
        clarify_gateway.wait_for_response(clarify_id, 0)

    def told(self, clarify_id):
        return self._questions[clarify_id].response

    async def close(self):
        with approval._lock:
            for key in (SESSION, OTHER):
                approval._gateway_queues.pop(key, None)
        for key in (SESSION, OTHER):
            clarify_gateway.clear_session(key)


class Twin:
    """The in-memory host."""

    def __init__(self, exact):
        self.questions = MemoryQuestions(exact=exact)
        self.hold, self.give_up = self.questions.hold, self.questions.give_up
        self.put, self.withdraw = self.questions.put, self.questions.withdraw

    def allow_seconds(self, seconds):
        self.questions.seconds = seconds

    def told(self, clarify_id):
        return dict(self.questions.clarified).get(clarify_id)

    async def close(self):
        pass


class TestInstalledHost(HostQuestionsContract):
    subject = HermesQuestions

    @pytest.fixture(autouse=True)
    def _patched(self, monkeypatch):
        self.patch = monkeypatch

    def factory(self, tmp_path):
        return InstalledHost(self.patch)


class TestHostThatTellsLess(HostQuestionsContract):
    """A host whose queues are not where they were: its public functions still answer."""

    subject = HermesQuestions
    exact = False

    @pytest.fixture(autouse=True)
    def _patched(self, monkeypatch):
        self.patch = monkeypatch
        monkeypatch.setattr(compat, "waiting_entries", lambda _: None)
        monkeypatch.setattr(clarify_gateway, "has_pending", None)

    def factory(self, tmp_path):
        return InstalledHost(self.patch)


class TestTwin(HostQuestionsContract):
    subject = MemoryQuestions

    def factory(self, tmp_path):
        return Twin(exact=True)


class TestTwinThatTellsLess(HostQuestionsContract):
    subject = MemoryQuestions
    exact = False

    def factory(self, tmp_path):
        return Twin(exact=False)


class CoordinatedTurn:
    """A real turn of a real coordinator, and what it published."""

    def __init__(self):
        clock = self._clock = VirtualClock()
        self._canon = MemoryCanon(clock=clock)
        self._turns = TurnCoordinator(
            canon=self._canon,
            lanes=MemoryLanes(),
            clock=clock,
            ids=SeededIds(),
            tasks=RecordedTasks(),
            outbox=MemoryOutbox(),
        )

    async def begin(self, responder):
        start = TurnStart(CONVERSATION, SESSION, "direct", "msg_1", responder)
        self._turn = await self._turns.open(start)
        self.subject = PromptedTurn(self._turns, self._turn)
        return self.subject

    async def waits(self):
        await settle()
        states = [publication.state for publication in self._canon.turns]
        changes = [state == "waiting_input" for state in states if state not in {"completed", "interrupted"}]
        return [now for before, now in zip([False, *changes], changes, strict=False) if now != before]

    async def shown(self):
        await settle()
        return len(self._canon.calls)

    async def end(self):
        await self._turns.complete(self._turn, "success")
        await settle()

    async def close(self):
        await self._turns.close()


class TwinTurn:
    """The twin."""

    def __init__(self):
        self.turns = []

    async def begin(self, responder):
        self.subject = MemoryAskingTurn(responder)
        self.turns.append(self.subject)
        return self.subject

    async def waits(self):
        return self.subject.shown

    async def shown(self):
        return sum(len(turn.shown) for turn in self.turns)

    async def end(self):
        self.subject.over = True

    async def close(self):
        pass


class TestTurnOfTheCoordinator(AskingTurnContract):
    subject = PromptedTurn

    def factory(self, tmp_path):
        return CoordinatedTurn()


class TestTurnTwin(AskingTurnContract):
    subject = MemoryAskingTurn

    def factory(self, tmp_path):
        return TwinTurn()
