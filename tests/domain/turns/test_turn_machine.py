"""Arbitrary histories of several turns against a Canon that loses, refuses and repeats (turns §13, 16 to 27, 32 to 46).

Every text is a token of its own, so that what Canon holds tells where it came from.
"""

import asyncio
import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from canon_hermes_plugin.domain.turns.model import HostMedia, HostText, ToolEnd, ToolStart
from canon_hermes_plugin.domain.turns.notice import NOTICE
from canon_hermes_plugin.domain.turns.plan import operation_id
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import settle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

CONVERSATIONS = ("conv_a", "conv_b")
PADDING = "\n\n" + "x" * 3700
"""Makes a text of two parts."""


@dataclass
class Model:
    """What a turn said, as simply as possible."""

    turn: object
    key: str
    bubble: str | None = None
    tokens: list[str] = field(default_factory=list)
    buried: set[str] = field(default_factory=set)
    final: str | None = None
    running: int = 0
    silenced: bool = False
    waits: int = 0


class TurnMachine(RuleBasedStateMachine):
    def __init__(self, bench_type):
        super().__init__()
        self.bench_type = bench_type
        self.loop = asyncio.new_event_loop()
        self.bench = self.run(self._make())
        self.canon = self.bench.canon
        self.numbers = itertools.count(1)
        self.open_turns = []
        self.turn_ids = set()
        self.chatter = set()
        self.outside = set()
        self.must_not = set()
        self.expected = {}
        self.ambiguous_left = 4
        self.definitive = False

    async def _make(self):
        return self.bench_type()

    def run(self, work):
        return self.loop.run_until_complete(work)

    def token(self, kind):
        return f"<{kind}{next(self.numbers)}>"

    def pick(self, data):
        return data.draw(st.sampled_from(self.open_turns))

    def say(self, turn, text, conversation=CONVERSATIONS[0], **marks):
        conversation = turn.conversation_id if turn is not None else conversation
        ack = self.run(self.bench.coordinator.text(turn, HostText(conversation, text, **marks)))
        assert not ack.ok or ack.message_id
        return ack

    @rule(conversation=st.sampled_from(CONVERSATIONS), verbosity=st.sampled_from(["verbose", "quiet"]))
    @precondition(lambda self: len(self.open_turns) < 4)
    def begin(self, conversation, verbosity):
        key = f"session-{next(self.numbers)}"
        turn = self.run(self.bench.open(conversation, session_key=key, verbosity=verbosity))
        assert turn.id not in self.turn_ids
        self.turn_ids.add(turn.id)
        self.open_turns.append(Model(turn, key))

    @rule(data=st.data())
    @precondition(lambda self: self.open_turns)
    def preview(self, data):
        model = self.pick(data)
        text = self.token("p")
        model.tokens.append(text)
        if model.bubble is None:
            model.bubble = self.say(model.turn, f"{text} ▉", expect_edits=True).message_id
        else:
            self.say(model.turn, f"{text} ▉", finalize=False, bubble=model.bubble)
        model.final = None

    @rule(data=st.data(), long=st.booleans(), times=st.integers(1, 2))
    @precondition(lambda self: any(model.bubble for model in self.open_turns))
    def finalize(self, data, long, times):
        model = data.draw(st.sampled_from([model for model in self.open_turns if model.bubble]))
        text = self.token("f") + PADDING * long
        for _ in range(times):
            self.say(model.turn, text, finalize=True, bubble=model.bubble)
        self._said(model, text)
        if model.running or model.bubble in model.buried:
            model.final = None
        model.bubble = None

    @rule(data=st.data(), long=st.booleans())
    @precondition(lambda self: self.open_turns)
    def append(self, data, long):
        model = self.pick(data)
        text = self.token("n") + PADDING * long
        self.say(model.turn, text, notify=True, reply_to="msg_1")
        self._said(model, text)
        model.bubble = None

    def _said(self, model, text):
        model.tokens.append(text.split("\n")[0])
        model.final = None if model.silenced else text

    @rule(data=st.data())
    @precondition(lambda self: self.open_turns)
    def mutter(self, data):
        text = self.token("c")
        self.chatter.add(text)
        self.say(self.pick(data).turn, text)

    @rule(data=st.data(), finish=st.booleans())
    @precondition(lambda self: self.open_turns)
    def tool(self, data, finish):
        model = self.pick(data)
        if finish and model.running:
            self.bench.coordinator.tool_finished(model.turn, ToolEnd("tool", "call", result="done"))
            model.running -= 1
        else:
            self.bench.coordinator.tool_started(model.turn, ToolStart("tool", "call", {"a": 1}))
            model.running += 1
            model.buried.update(model.tokens)
            if model.bubble:
                model.buried.add(model.bubble)
            model.final = None

    @rule(data=st.data())
    @precondition(lambda self: self.open_turns)
    def hush(self, data):
        model = self.pick(data)
        assert self.bench.coordinator.silence(model.turn)
        model.silenced, model.final = True, None

    @rule(data=st.data())
    @precondition(lambda self: any(model.silenced for model in self.open_turns))
    def join_in(self, data):
        model = data.draw(st.sampled_from([model for model in self.open_turns if model.silenced]))
        self.bench.coordinator.lift_silence(model.turn)
        model.silenced, model.bubble = False, None
        model.buried.update(model.tokens)

    @rule(data=st.data(), waiting=st.booleans())
    @precondition(lambda self: self.open_turns)
    def ask(self, data, waiting):
        model = self.pick(data)
        self.run(self.bench.coordinator.waiting(model.turn, waiting))
        model.waits = max(0, model.waits + (1 if waiting else -1))

    @rule(data=st.data(), captioned=st.booleans())
    @precondition(lambda self: self.open_turns)
    def attach(self, data, captioned):
        model = self.pick(data)
        caption = self.token("m") if captioned else None
        file = HostMedia(model.turn.conversation_id, b"x", "image/png", "image", caption=caption)
        assert self.run(self.bench.coordinator.media(model.turn, file)).ok
        if caption and model.silenced:
            self.must_not.add(caption)

    @rule(conversation=st.sampled_from(CONVERSATIONS), notify=st.booleans(), job=st.booleans())
    def notify(self, conversation, notify, job):
        text = self.token("o")
        ack = self.say(None, text, conversation, notify=notify, job_id="job" if job else None)
        if ack.ok:
            self.outside.add(text)

    @rule(kind=st.sampled_from(["lost", "ambiguous", "definitive"]))
    def disturb(self, kind):
        if kind == "definitive":
            self.definitive = True
            self.canon.faults.fail_next("send", Fault.definitive())
        elif self.ambiguous_left:
            self.ambiguous_left -= 1
            fault = Fault.lost_response() if kind == "lost" else Fault.ambiguous()
            self.canon.faults.fail_next("send", fault)

    @rule(seconds=st.sampled_from([0.1, 0.8, 3, 12]))
    def pass_time(self, seconds):
        self.run(self.bench.clock.advance(seconds))

    @rule(data=st.data(), outcome=st.sampled_from(["success", "success", "failure", "cancelled"]))
    @precondition(lambda self: self.open_turns)
    def complete(self, data, outcome):
        model = self.pick(data)
        self.open_turns.remove(model)
        self.run(self.bench.complete(model.turn, outcome))
        self.must_not.update(model.buried if outcome == "success" else ())
        if outcome != "success" or model.silenced:
            self.expected[model.turn.id] = None
        elif model.final is not None:
            self.expected[model.turn.id] = model.final

    @invariant()
    def invariant_34_one_id_has_one_payload(self):
        payloads = defaultdict(list)
        for call in self.canon.calls:
            if call.operation == "send" and call.subject not in payloads[call.subject.message_id]:
                payloads[call.subject.message_id].append(call.subject)
        assert None not in payloads
        assert all(len(variants) == 1 for variants in payloads.values())

    @invariant()
    def invariant_22_nothing_of_an_open_turn_is_durable(self):
        open_ids = {model.turn.id for model in self.open_turns}
        assert not [m for m in self.canon.messages if m.metadata.get("turnId") in open_ids]

    @invariant()
    def invariant_22_each_turn_completes_at_most_once(self):
        finals = Counter(m.metadata["turnId"] for m in self.canon.notifications if "turnId" in m.metadata)
        assert all(count == 1 for count in finals.values())

    @invariant()
    def invariant_24_chatter_is_never_durable(self):
        assert not [text for text in self.bench.texts if text in self.chatter]

    @invariant()
    def invariant_25_42_what_must_not_be_said_is_not_said(self):
        finals = " ".join(m.text for m in self.canon.notifications if "turnId" in m.metadata)
        assert not [token for token in self.must_not if token in finals]

    @invariant()
    def invariant_34_parts_are_stored_in_order(self):
        groups = defaultdict(list)
        for message in self.canon.messages:
            chunk = message.metadata.get("messageChunk")
            if chunk:
                groups[chunk["groupId"]].append(chunk["index"])
        assert all(indices == list(range(1, len(indices) + 1)) for indices in groups.values())

    @invariant()
    def invariant_19_typing_is_paused_while_every_open_turn_waits(self):
        for conversation in CONVERSATIONS:
            here = [model for model in self.open_turns if model.turn.conversation_id == conversation]
            waits = bool(here) and all(model.waits for model in here)
            assert (conversation in self.bench.lanes.paused) == waits

    @invariant()
    def invariant_19_the_books_agree_about_open_turns(self):
        for conversation in CONVERSATIONS:
            here = {model.turn for model in self.open_turns if model.turn.conversation_id == conversation}
            assert set(self.bench.coordinator.open_turns(conversation)) == here

    def teardown(self):
        for model in self.open_turns:
            self.run(self.bench.complete(model.turn, "cancelled"))
            self.expected[model.turn.id] = None
        self.run(self.bench.clock.advance(400))
        self.run(self.bench.coordinator.close())
        self._check_the_end()
        self.loop.close()

    def _check_the_end(self):
        finals = {m.metadata["turnId"]: m for m in self.canon.notifications if "turnId" in m.metadata}
        for turn_id, text in self.expected.items():
            final = finals.get(turn_id)
            if text is None:
                assert final is None
            elif not self.definitive:
                whole = "".join(m.text for m in self.canon.messages if m.metadata.get("turnId") == turn_id)
                assert final is not None
                assert text.split("\n")[0] in whole
        stored = Counter(self.bench.texts)
        # What was refused at once was never said.
        assert all(stored[text] == 1 or (self.definitive and stored[text] == 0) for text in self.outside)
        assert self.definitive or NOTICE not in stored
        told = {m.message_id for m in self.canon.messages if m.text == NOTICE}
        assert not told & {operation_id(m.conversation_id, f"notice:{turn}", 1) for turn, m in finals.items()}
        closing = Counter(p.turn_id for p in self.canon.turns if p.state in {"completed", "interrupted"})
        assert closing == Counter(self.turn_ids)
        assert self.bench.tasks.failures == []
        assert len(self.bench.coordinator._rooms) == 0
        assert self.bench.clock.sleepers == 0
        assert self.canon.nodes == {}


MACHINE = settings(max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_arbitrary_histories_keep_every_promise(bench_type):
    run_state_machine_as_test(lambda: TurnMachine(bench_type), settings=MACHINE)


@given(st.permutations(["preview", "start", "finish", "finalize"]))
@settings(deadline=None)
def test_invariant_25_commentary_is_dropped_however_its_signals_are_ordered(bench_type, order):
    if order.index("preview") > order.index("finalize") or order.index("start") > order.index("finish"):
        return

    async def scenario():
        bench = bench_type()
        turn = await bench.open()
        bubble = None
        for event in order:
            if event == "preview":
                bubble = await bench.say(turn, "I will look ▉", expect_edits=True)
            elif event == "finalize":
                await bench.say(turn, "I will look at it.", finalize=True, bubble=bubble)
            elif event == "start":
                bench.coordinator.tool_started(turn, ToolStart("tool", "1"))
            else:
                bench.coordinator.tool_finished(turn, ToolEnd("tool", "1"))
        await bench.stream(turn, "The answer.")
        await bench.complete(turn)
        await bench.clock.advance(1)
        await bench.coordinator.close()
        return bench.texts

    assert asyncio.run(scenario()) == ["The answer."]


steps = st.lists(
    st.sampled_from(["stream", "append", "tool", "silence", "lift", "ask", "answer", "wait", "mutter"]), max_size=12
)


@given(steps, st.sampled_from(["success", "failure", "cancelled"]))
@settings(max_examples=60, deadline=None)
def test_invariant_46_quiet_and_verbose_differ_only_in_the_trail(bench_type, history, outcome):
    async def run(verbosity):
        bench = bench_type()
        turn = await bench.open(verbosity=verbosity)
        for number, step in enumerate(history):
            await _perform(bench, turn, step, number)
            await settle()
        await bench.complete(turn, outcome)
        await bench.clock.advance(300)
        await bench.coordinator.close()
        durable = [
            (m.text, m.message_id, {key: value for key, value in m.metadata.items() if key != "turnTrail"})
            for m in bench.canon.messages
            if not m.message_id.startswith("msg-salvaged")
        ]
        return durable, [(p.state, p.turn_id, p.active_message_ids) for p in bench.canon.turns]

    assert asyncio.run(run("verbose")) == asyncio.run(run("quiet"))


async def _perform(bench, turn, step, number):
    coordinator = bench.coordinator
    if step == "stream":
        await bench.stream(turn, f"text {number}")
    elif step == "append":
        await bench.say(turn, f"answer {number}", notify=True)
    elif step == "tool":
        coordinator.tool_started(turn, ToolStart("tool", str(number)))
        coordinator.tool_finished(turn, ToolEnd("tool", str(number), result="done"))
    elif step == "silence":
        coordinator.silence(turn)
    elif step == "lift":
        coordinator.lift_silence(turn)
    elif step in {"ask", "answer"}:
        await coordinator.waiting(turn, step == "ask")
    elif step == "wait":
        await bench.clock.advance(0.3)
    else:
        await bench.say(turn, "muttering")
