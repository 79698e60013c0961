"""The spine: a lifecycle becomes one turn, and a successful turn becomes exactly one durable answer (turns §4)."""

from canon_hermes_plugin.infrastructure.memory.time import settle


async def test_a_streamed_answer_becomes_one_durable_message_at_completion(bench):
    turn = await bench.open()
    await bench.stream(turn, "The ans", "The answer", "The answer is 42.")
    assert bench.texts == []

    await bench.complete(turn)

    (final,) = bench.canon.messages
    assert final.text == "The answer is 42."
    assert final.reply_to == "msg_77"
    assert final.metadata == {"turnSemantics": "turn_complete", "turnComplete": True, "turnId": turn.id}
    assert final.message_id.startswith("hermes-final-")


async def test_field_11_without_streaming_the_marked_answer_is_delivered_once(bench):
    turn = await bench.open()
    await bench.say(turn, "Done.", notify=True, reply_to="msg_77")
    await bench.complete(turn)
    assert bench.finals == ["Done."]


async def test_the_states_of_a_plain_turn_are_published_in_order(bench):
    turn = await bench.open()
    await bench.stream(turn, "Hi", "Hi there")
    await bench.complete(turn)
    assert bench.states == ["thinking", "streaming", "completed"]
    opening, _, closing = bench.canon.turns
    assert opening.active_message_ids == ("msg_77",)
    assert closing.active_message_ids == ()
    assert {p.turn_id for p in bench.canon.turns} == {turn.id}


async def test_h37_thinking_is_published_before_the_node_is_retired(bench):
    await bench.open()
    operations = bench.canon.operations()
    assert operations.index("publish_turn") < operations.index("write_node")


async def test_a_long_answer_is_split_and_only_its_last_part_completes_the_turn(bench):
    turn = await bench.open()
    await bench.say(turn, "\n\n".join(letter * 3000 for letter in "abc"), notify=True)
    await bench.complete(turn)

    parts = bench.canon.messages
    assert [p.text[0] for p in parts] == ["a", "b", "c"]
    assert [p.metadata["turnSemantics"] for p in parts] == ["progress", "progress", "turn_complete"]
    assert [p.metadata.get("replyBehavior") for p in parts] == ["suppress_auto_reply", "suppress_auto_reply", None]
    assert {p.metadata["messageChunk"]["groupId"] for p in parts} == {parts[0].message_id.removesuffix("-part-1")}


async def test_the_node_is_handed_over_in_the_background_after_the_close(bench):
    turn = await bench.open()
    await bench.stream(turn, "Hi", "Hi there")
    await bench.complete(turn)
    assert bench.states[-1] == "completed"
    assert "clear_node" not in bench.canon.operations()
    await bench.clock.advance(0.75)
    assert bench.canon.operations().count("clear_node") == 1
    assert bench.finals == ["Hi there"]


async def test_nothing_is_remembered_of_a_closed_turn(bench):
    turn = await bench.open()
    await bench.say(turn, "Hi", notify=True)
    await bench.complete(turn)
    await bench.clock.advance(11)
    assert bench.coordinator.open_turns(turn.conversation_id) == ()
    assert len(bench.coordinator._rooms) == 0
    assert bench.clock.sleepers == 0


async def test_host_calls_do_not_wait_for_a_slow_canon(bench):
    gate = bench.canon.faults.hold_next("publish_turn")
    turn = await bench.open()
    await bench.stream(turn, "a", "ab")
    assert bench.canon.operations() == ["publish_turn"]
    gate.set()
    await settle()
    await bench.complete(turn)
    assert bench.finals == ["ab"]
