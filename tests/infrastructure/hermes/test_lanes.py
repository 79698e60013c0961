"""The queue against the host's real base class: each waiting message becomes a lifecycle of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from canon_hermes_plugin.infrastructure.hermes.lanes import MAX_WAITING
from canon_hermes_plugin.ports.errors import CanonError

KEY = "agent:main:canon:dm:c1"


async def until(condition: Any, seconds: float = 5.0) -> Any:
    deadline = asyncio.get_running_loop().time() + seconds
    while not (found := condition()):
        assert asyncio.get_running_loop().time() < deadline, "the condition never came true"
        await asyncio.sleep(0.005)
    return found


async def test_field_68_every_queued_message_runs_in_order_with_its_own_lifecycle(stage: Any) -> None:
    await stage.say(1)
    await stage.running("text 1")
    for number in (2, 3, 4):
        await stage.say(number)
    assert stage.lanes.queue_depth(KEY) == 3
    assert stage.turns.recounts == 3, "people see at once how many wait"
    for number in (1, 2, 3, 4):
        (await stage.running(f"text {number}")).done.set()
    await stage.idle()
    assert stage.runner.runs == ["text 1", "text 2", "text 3", "text 4"]
    assert [start.message_id for start in stage.turns.opened] == ["msg_1", "msg_2", "msg_3", "msg_4"]
    assert stage.turns.completed == [(f"msg_{number}", "success") for number in (1, 2, 3, 4)]


async def test_h28_a_message_leaves_the_shelf_exactly_when_it_starts(stage: Any) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2)
    await until(lambda: stage.released == ["msg_1"])
    agent.done.set()
    await stage.running("text 2")
    await until(lambda: stage.released == ["msg_1", "msg_2"])


async def test_a_message_that_arrives_while_a_lifecycle_unwinds_is_not_lost(stage: Any) -> None:
    stage.turns.slow = 0.05
    await stage.say(1)
    (await stage.running("text 1")).done.set()
    for number in range(2, 12):
        await stage.say(number)
        await asyncio.sleep(0.01)
    for number in range(2, 12):
        (await stage.running(f"text {number}")).done.set()
    await stage.idle()
    assert stage.runner.runs == [f"text {number}" for number in range(1, 12)]


async def test_an_interrupt_ends_the_run_and_its_message_starts_a_turn_of_its_own(stage: Any) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2, intent="interrupt")
    (await stage.running("text 2")).done.set()
    await stage.idle()
    assert agent.interrupts == 1
    assert stage.turns.completed == [("msg_1", "cancelled"), ("msg_2", "success")], "its answer must not be published"


async def test_an_interrupt_reaches_a_run_whose_agent_is_still_being_built(stage: Any) -> None:
    built = asyncio.Event()
    stage.runner.building = built
    await stage.say(1)
    await until(lambda: stage.turns.opened)
    await stage.say(2, intent="interrupt")
    built.set()
    (await stage.running("text 2")).done.set()
    await stage.idle()
    assert stage.turns.completed == [("msg_1", "cancelled"), ("msg_2", "success")]


@pytest.mark.parametrize("probe", ["subagents", "compressing"])
async def test_h5_an_interrupt_waits_while_subagents_or_a_compression_run(stage: Any, probe: str) -> None:
    setattr(stage.runner, probe, True)
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2, intent="interrupt")
    assert agent.interrupts == 0
    assert stage.lanes.queue_depth(KEY) == 1


async def test_h5_a_probe_that_raises_holds_the_interrupt_back(stage: Any) -> None:
    async def broken(key: str) -> bool:
        raise RuntimeError(key)

    stage.runner._session_has_compression_in_flight = broken
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2, intent="interrupt")
    assert agent.interrupts == 0


async def test_stop_drops_what_waits_releases_it_and_runs_its_own_message(stage: Any) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2)
    await stage.say(3)
    await stage.say(4, intent="stop")
    (await stage.running("text 4")).done.set()
    await stage.idle()
    assert agent.interrupts == 1
    assert stage.runner.runs == ["text 1", "text 4"]
    await until(lambda: sorted(stage.released) == ["msg_1", "msg_2", "msg_3", "msg_4"])


async def test_interleave_steers_lifts_silence_and_releases(stage: Any) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2, intent="interleave")
    assert agent.steered == ["text 2"]
    assert stage.turns.lifted == [KEY]
    assert stage.lanes.queue_depth(KEY) == 0
    await until(lambda: stage.released == ["msg_1", "msg_2"])
    agent.done.set()
    await stage.idle()
    assert stage.forgotten == ["msg_1", "msg_2"], "the trusted media of everything in the lifecycle is dropped (H23)"


async def test_interleave_reaches_a_run_whose_agent_the_host_does_not_show_yet(stage: Any) -> None:
    built = stage.runner.building = asyncio.Event()
    await stage.say(1)
    await until(lambda: KEY in stage.runner._running_agents)
    asyncio.get_running_loop().call_later(0.1, built.set)
    await stage.say(2, intent="interleave")
    agent = await stage.running("text 1")
    assert agent.steered == ["text 2"]
    assert stage.lanes.queue_depth(KEY) == 0
    agent.done.set()
    await stage.idle()


async def test_another_agents_interleaved_text_reaches_the_run_and_leaves_its_silence(stage: Any) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2, intent="interleave", user_id=None)
    assert (agent.steered, stage.turns.lifted) == (["text 2"], [])
    agent.done.set()
    await stage.idle()


async def test_what_was_steered_in_too_late_becomes_a_turn_of_its_own(stage: Any) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2, intent="interleave")
    await stage.say(3, intent="interleave")
    agent.leftover = "text 3"
    await asyncio.to_thread(stage.lanes.run_finished, KEY, None)
    agent.done.set()
    (await stage.running("text 3")).done.set()
    await stage.idle()
    assert stage.runner.runs == ["text 1", "text 3"]


async def test_what_the_hosts_own_steer_command_left_unread_is_not_lost(stage: Any) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2, intent="interleave")
    agent.leftover = "typed with /steer\ntext 2"
    await asyncio.to_thread(stage.lanes.run_finished, KEY, None)
    agent.done.set()
    (await stage.running("typed with /steer")).done.set()
    (await stage.running("text 2")).done.set()
    await stage.idle()


async def test_h06_the_hosts_steer_command_lifts_silence(stage: Any) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2, text="/steer look here", kind="command")
    assert stage.turns.lifted == [KEY]
    agent.done.set()
    await stage.idle()


async def test_after_a_run_ended_nothing_is_steered_into_it(stage: Any) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    await asyncio.to_thread(stage.lanes.run_finished, KEY, None)
    await stage.say(2, intent="interleave")
    assert agent.steered == []
    assert stage.lanes.queue_depth(KEY) == 1


async def test_the_run_of_a_job_inside_the_turn_ends_nothing_of_it(stage: Any) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    agent.session_id = "20261130_120000_abcdef"
    assert not await asyncio.to_thread(stage.lanes.run_finished, KEY, "cron_job_1")
    await stage.say(2, intent="interleave")
    assert agent.steered == ["text 2"]
    assert await asyncio.to_thread(stage.lanes.run_finished, KEY, agent.session_id)
    await stage.say(3, intent="interleave")
    assert agent.steered == ["text 2"]
    agent.done.set()
    (await stage.running("text 3")).done.set()
    await stage.idle()


async def test_a_full_queue_refuses_visibly_and_releases(stage: Any) -> None:
    await stage.say(0)
    await stage.running("text 0")
    for number in range(1, MAX_WAITING + 2):
        await stage.say(number)
    assert stage.lanes.queue_depth(KEY) == MAX_WAITING
    await until(lambda: stage.turns.texts)
    (turn, notice), *rest = stage.turns.texts
    assert (turn, notice.conversation_id, notice.reply_to, rest) == (None, "c1", f"msg_{MAX_WAITING + 1}", [])
    await until(lambda: f"msg_{MAX_WAITING + 1}" in stage.released)


async def test_stop_command_cancels_the_run_and_the_queue_goes_on(stage: Any) -> None:
    await stage.say(1)
    await stage.running("text 1")
    await stage.say(2)
    await stage.say(3)
    await stage.say(9, text="/stop", kind="command")
    (await stage.running("text 2")).done.set()
    (await stage.running("text 3")).done.set()
    await stage.idle()
    assert stage.turns.completed == [("msg_1", "cancelled"), ("msg_2", "success"), ("msg_3", "success")]


async def test_field_4_an_answer_that_is_ready_when_the_run_is_stopped_does_not_follow_the_confirmation(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = stage.turns.text

    async def slow(turn: Any, said: Any) -> Any:
        await until(lambda: stage.turns.completed)  # the lifecycle ends by itself while the confirmation travels
        return await text(turn, said)

    monkeypatch.setattr(stage.turns, "text", slow)
    await stage.say(1)
    await stage.running("text 1")
    await stage.say(2, text="/stop", kind="command")
    assert stage.turns.completed == [("msg_1", "cancelled")]


async def test_a_stop_the_host_refuses_costs_nobody_the_answer(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = stage.runner.handle

    async def refuse(event: Any) -> str | None:
        return "not yours" if event.text == "/new" else await handle(event)

    stage.adapter.set_message_handler(refuse)
    monkeypatch.setattr(stage.adapter, "cancel_session_processing", lambda *_, **__: until(lambda: True))
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2, text="/new", kind="command")
    agent.done.set()
    await stage.idle()
    assert stage.turns.completed == [("msg_1", "success")]


async def test_h2_what_the_host_queued_for_itself_runs_as_its_own_turn(stage: Any) -> None:
    from canon_hermes_plugin.infrastructure.hermes import host

    await stage.say(1)
    agent = await stage.running("text 1")
    slot, overflow = (host.to_event(stage.adapter, stage.message(number)) for number in (2, 3))
    stage.adapter._pending_messages[KEY] = slot
    stage.runner._queued_events[KEY] = [overflow]
    assert stage.adapter.get_pending_message(KEY) is None, "the host's in-run drain must find nothing"
    assert stage.runner._queued_events == {}
    agent.done.set()
    (await stage.running("text 2")).done.set()
    (await stage.running("text 3")).done.set()
    await stage.idle()


@pytest.mark.parametrize("intent", [None, "queue", "interleave"])
async def test_what_arrives_while_the_gateway_stops_waits_and_the_host_hears_nothing_of_it(
    stage: Any, intent: str | None
) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    stage.runner._draining = True
    await stage.say(2, intent=intent)
    await stage.say(3, conversation_id="c2", intent=intent)
    await stage.say(4, text="/status", kind="command")
    agent.done.set()
    await until(lambda: stage.turns.completed)
    await stage.say(5)
    await asyncio.sleep(0.05)
    assert (stage.runner.runs, stage.runner.delegated, agent.steered) == (["text 1"], [], [])
    assert stage.lanes.waiting() == {"msg_2", "msg_3", "msg_5"}, "the checkpoint stays before them"
    assert stage.released == ["msg_1"], "they lie on the queued shelf until somebody works on them"
    assert not stage.adapter._pending_messages


async def test_an_interrupt_while_the_gateway_stops_ends_the_run_and_waits(stage: Any) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    stage.runner._draining = True
    await stage.say(2, intent="interrupt")
    await until(lambda: agent.interrupts and stage.turns.completed)
    assert (stage.runner.runs, stage.lanes.waiting()) == (["text 1"], {"msg_2"})


@pytest.mark.parametrize(("ended", "draining", "outcome"), [
    (True, True, "success"), (False, True, "cancelled"), (True, False, "cancelled"),
])  # fmt: skip
async def test_the_answer_of_a_run_that_ended_while_the_gateway_stops_is_whole(
    stage: Any, monkeypatch: pytest.MonkeyPatch, ended: bool, draining: bool, outcome: str
) -> None:
    """The stopping host waits for the run, and cancels the lifecycle around it."""
    monkeypatch.setattr("canon_hermes_plugin.infrastructure.hermes.compat.works_for", lambda agent, session: True)
    await stage.say(1)
    await stage.running("text 1")
    stage.runner._draining = draining
    if ended:
        assert stage.lanes.run_finished(KEY, "session")
    await stage.adapter.cancel_background_tasks()
    await until(lambda: stage.turns.completed)
    assert stage.turns.completed == [("msg_1", outcome)]


async def test_a_word_for_an_approval_is_the_hosts_to_refuse_while_the_gateway_stops(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the next process it could answer another request."""
    await stage.say(1)
    await stage.running("text 1")
    stage.runner._draining = True
    monkeypatch.setattr("canon_hermes_plugin.infrastructure.hermes.compat.approval_blocks", lambda key: True)
    await stage.say(2, text="yes")
    assert ([event.text for event in stage.runner.delegated], stage.lanes.waiting()) == (["yes"], frozenset())


async def test_what_the_plugin_made_is_given_back_while_the_gateway_stops(stage: Any) -> None:
    stage.runner._draining = True
    with pytest.raises(CanonError, match="stopping"):
        await stage.say(1, synthetic=True, message_id=None)
    assert stage.lanes.waiting() == frozenset()


async def test_an_event_of_the_host_waits_without_interrupting(stage: Any) -> None:
    from gateway.platforms.base import MessageEvent

    await stage.say(1)
    agent = await stage.running("text 1")
    source = stage.adapter.build_source(chat_id="c1", chat_type="dm", user_id="user_dana")
    await stage.adapter.handle_message(MessageEvent(text="task done", source=source, internal=True))
    assert (agent.interrupts, stage.runner.delegated) == (0, [])
    agent.done.set()
    (await stage.running("task done")).done.set()
    await stage.idle()


async def test_a_message_that_meets_an_event_of_the_host_on_its_way_keeps_its_place(stage: Any) -> None:
    from gateway.platforms.base import MessageEvent

    source = stage.adapter.build_source(chat_id="c1", chat_type="dm", user_id="user_dana")
    recover, raced = stage.adapter._apply_topic_recovery, []

    def slow(event: Any) -> None:
        if event.text == "text 2" and not raced:
            raced.append(event)
            made_up = MessageEvent(text="task done", source=source, internal=True)
            asyncio.run_coroutine_threadsafe(stage.adapter.handle_message(made_up), loop).result(5)
        recover(event)

    loop = asyncio.get_running_loop()
    stage.adapter._apply_topic_recovery = slow
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2)
    await stage.say(3)
    agent.done.set()
    for text in ("task done", "text 2", "text 3"):
        (await stage.running(text)).done.set()
    await stage.idle()


async def test_two_people_in_one_group_have_lanes_of_their_own(stage: Any) -> None:
    await stage.say(1, chat_kind="group")
    await stage.say(2, chat_kind="group", user_id="user_bob")
    await until(lambda: len(stage.runner.runs) == 2)
    assert set(stage.runner._running_agents) == {
        "agent:main:canon:group:c1:user_dana",
        "agent:main:canon:group:c1:user_bob",
    }


async def test_h29_a_stop_signal_reaches_a_run_somebody_else_started(stage: Any) -> None:
    await stage.say(1, chat_kind="group")
    await stage.running("text 1", "agent:main:canon:group:c1:user_dana")
    await stage.lanes.apply_signal("c1", "interrupt", "user_bob")
    await stage.idle()
    assert stage.turns.completed == [("msg_1", "cancelled")]


async def test_h29_a_stop_signal_prefers_the_senders_own_run_and_the_owner_stops_all(stage: Any) -> None:
    for number, user in ((1, "user_dana"), (2, "user_bob"), (3, "user_cleo")):
        await stage.say(number, chat_kind="group", user_id=user)
    await until(lambda: len(stage.runner._running_agents) == 3)
    await stage.lanes.apply_signal("c1", "interrupt", "user_bob")
    await until(lambda: stage.turns.completed == [("msg_2", "cancelled")])
    await stage.lanes.apply_signal("c1", "interrupt", "user_owner")
    await stage.idle()
    assert sorted(stage.turns.completed) == [("msg_1", "cancelled"), ("msg_2", "cancelled"), ("msg_3", "cancelled")]


async def test_stop_and_drop_empties_the_queue_and_releases_it(stage: Any) -> None:
    await stage.say(1)
    await stage.running("text 1")
    await stage.say(2)
    await stage.say(3)
    await stage.lanes.apply_signal("c1", "stop_and_drop", "user_dana")
    await stage.idle()
    assert stage.runner.runs == ["text 1"]
    await until(lambda: sorted(stage.released) == ["msg_1", "msg_2", "msg_3"])


@pytest.mark.parametrize("how", ["signal", "message"])
async def test_a_decision_on_its_way_to_the_model_survives_stop_and_clear(stage: Any, how: str) -> None:
    await stage.say(1)
    await stage.running("text 1")
    await stage.say(2)
    await stage.say(3, message_id="canon-detached-approval:a", text="wake", synthetic=True, queued=False)
    if how == "signal":
        await stage.lanes.apply_signal("c1", "stop_and_drop", "user_dana")
    else:
        await stage.say(4, intent="stop")
    (await stage.running("wake")).done.set()
    if how == "message":
        (await stage.running("text 4")).done.set()
    await stage.idle()
    assert "text 2" not in stage.runner.runs


async def test_a_full_queue_gives_a_decision_back_to_whoever_brought_it(stage: Any) -> None:
    from canon_hermes_plugin.ports.errors import CanonError

    for number in range(MAX_WAITING + 1):
        await stage.say(number)
    with pytest.raises(CanonError):
        await stage.say(99, message_id="canon-detached-approval:a", text="wake", synthetic=True, queued=False)
    assert stage.turns.texts == [], "nobody is asked to send again what nobody sent"


async def test_a_stop_signal_for_an_idle_conversation_does_nothing(stage: Any) -> None:
    await stage.lanes.apply_signal("c1", "interrupt", None)
    assert stage.turns.opened == []


async def test_a_reconnect_keeps_what_waits(stage: Any) -> None:
    await stage.say(1)
    agent = await stage.running("text 1")
    old = stage.adapter
    stage.adapter = stage.new_adapter()
    stage.lanes.unbind(old)
    await stage.say(2)
    assert stage.lanes.queue_depth(KEY) == 1
    agent.done.set()
    (await stage.running("text 2")).done.set()
    await stage.idle()
    assert [message for message, _ in stage.turns.completed] == ["msg_1", "msg_2"]


async def test_what_was_about_to_start_when_the_connection_went_away_starts_on_the_next_one(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawn = stage.tasks.spawn

    def late(work: Any, *, name: str) -> None:
        spawn(work, name=name)
        if name.startswith("start "):
            stage.lanes.unbind(stage.adapter)

    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2)
    with monkeypatch.context() as patch:
        patch.setattr(stage.tasks, "spawn", late)
        agent.done.set()
        await until(lambda: stage.lanes._adapter is None)
        await until(lambda: stage.lanes.queue_depth(KEY) == 1)
    stage.adapter = stage.new_adapter()
    (await stage.running("text 2")).done.set()
    await stage.idle()
    assert stage.runner.runs == ["text 1", "text 2"]


async def test_a_message_whose_task_is_cancelled_before_its_first_step_leaves_the_shelf(stage: Any) -> None:
    await stage.say(1)
    stage.adapter._session_tasks[KEY].cancel()
    await until(lambda: stage.released == ["msg_1"])
    assert stage.turns.opened == []


async def test_a_decision_whose_task_is_cancelled_before_its_first_step_stays_to_be_told(stage: Any) -> None:
    await stage.say(1, message_id="canon-detached-approval:a", text="wake", synthetic=True, queued=False)
    stage.adapter._session_tasks[KEY].cancel()
    # The command that cancelled it holds the guard; when it ends, the host starts what lies in its slot.
    await until(lambda: KEY in stage.adapter._pending_messages)
    assert stage.adapter._pending_messages[KEY].text == "wake"


async def test_without_a_connection_a_hand_over_fails_so_that_the_claim_is_released(stage: Any) -> None:
    from canon_hermes_plugin.ports.errors import CanonError

    stage.lanes.unbind(stage.adapter)
    with pytest.raises(CanonError):
        await stage.say(1)


async def test_approval_words_reach_the_host_only_while_an_approval_waits(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from canon_hermes_plugin.infrastructure.hermes import compat

    await stage.say(1)
    await stage.running("text 1")
    await stage.say(2, text="Yes")
    monkeypatch.setattr(compat, "approval_blocks", lambda key: True)
    await stage.say(3, text="  YES ")
    await stage.say(4, text="yes, and then more")
    assert [event.text for event in stage.runner.delegated] == ["  YES "]
    assert stage.lanes.queue_depth(KEY) == 2


async def test_only_a_person_answers_what_the_host_asks(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from canon_hermes_plugin.infrastructure.hermes import compat

    async def take(event: Any) -> None:
        answers.append(event.text)

    answers: list[str] = []
    await stage.say(1)
    await stage.running("text 1")
    monkeypatch.setattr(stage.adapter, "handle_message", take)
    for question in ("approval_blocks", "clarify_waits"):
        with monkeypatch.context() as patch:
            patch.setattr(compat, question, lambda key: True)
            await stage.say(2, text="yes", user_id=None)
            await stage.say(3, text="no", user_id=None, message_id=None, synthetic=True)
            await stage.say(4, text="yes")
    assert stage.lanes.queue_depth(KEY) == 4
    assert answers == ["yes", "yes"]


async def test_what_waits_is_named_until_its_turn_begins_or_it_is_dropped(stage):
    assert stage.lanes.waiting() == frozenset()
    await stage.say(1)
    first = await stage.running("text 1")
    assert stage.lanes.waiting() == frozenset()
    await stage.say(2)
    await stage.say(3)
    await stage.say(4, conversation_id="c2")
    await stage.running("text 4", "agent:main:canon:dm:c2")
    assert stage.lanes.waiting() == {"msg_2", "msg_3"}
    first.done.set()
    await stage.running("text 2")
    assert stage.lanes.waiting() == {"msg_3"}
    stage.lanes.drop("agent:main:canon:dm:c1")
    assert stage.lanes.waiting() == frozenset()


async def test_a_message_counts_as_waiting_until_the_host_says_that_it_began(stage, monkeypatch):
    """A process killed in between must get it again."""
    opening = asyncio.Event()
    open_turn = stage.turns.open

    async def slowly(start):
        await opening.wait()
        return await open_turn(start)

    monkeypatch.setattr(stage.turns, "open", slowly)
    await stage.say(1)
    assert stage.lanes.waiting() == {"msg_1"}
    opening.set()
    await stage.running("text 1")
    assert stage.lanes.waiting() == frozenset()


async def test_a_message_counts_as_waiting_until_the_host_asks_the_model(stage):
    """Before that the host has nothing of it on disk: the message would be lost with the process."""
    stage.runner.asking = asyncio.Event()
    await stage.say(1)
    await stage.running("text 1")
    assert stage.lanes.waiting() == {"msg_1"}
    told = len(stage.changes)
    stage.runner.asking.set()
    await until(lambda: not stage.lanes.waiting())
    await until(lambda: len(stage.changes) > told)


async def test_a_message_whose_run_never_asks_a_model_is_safe_when_its_turn_ends(stage, monkeypatch):
    monkeypatch.setattr(stage.lanes, "run_recorded", lambda key: None)
    await stage.say(1)
    agent = await stage.running("text 1")
    assert stage.lanes.waiting() == {"msg_1"}
    agent.done.set()
    await stage.idle()
    assert stage.lanes.waiting() == frozenset()


async def test_a_steered_message_counts_as_waiting_until_the_run_it_joined_has_ended(stage):
    await stage.say(1)
    agent = await stage.running("text 1")
    await stage.say(2, intent="interleave")
    assert agent.steered == ["text 2"]
    assert stage.lanes.waiting() == {"msg_2"}
    told = len(stage.changes)
    agent.done.set()
    await stage.idle()
    assert stage.lanes.waiting() == frozenset()
    assert len(stage.changes) > told, "the next process must hear of it"


async def test_a_message_that_the_host_refuses_to_take_does_not_wait(stage, monkeypatch):
    async def broken(event):
        raise OSError("the host is ill")

    monkeypatch.setattr(stage.adapter, "handle_message", broken)
    with pytest.raises(OSError, match="the host is ill"):
        await stage.say(1)
    assert stage.lanes.waiting() == frozenset()


async def test_a_message_that_waits_without_a_connection_is_named(stage):
    await stage.say(1)
    first = await stage.running("text 1")
    await stage.say(2)
    stage.lanes.unbind(stage.adapter)
    first.done.set()
    await until(lambda: stage.turns.completed)
    assert stage.lanes.waiting() == {"msg_2"}
