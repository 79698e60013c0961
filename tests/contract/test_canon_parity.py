"""Any sequence of calls: the twin and the loopback Canon behind the real client answer and remember the same."""

from __future__ import annotations

import itertools

import pytest
from canon_hermes_plugin.infrastructure.canon.client import CanonHttp
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.ports.canon import NodeWrite, OutboundMessage, RuntimeSignal
from canon_hermes_plugin.ports.errors import DeliveryError
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TURNS = st.sampled_from(["t1", "t2"])
TEXTS = st.sampled_from(["", "one", "two", "é" * 2048, "é" * 2049])
BLOCKS = st.sampled_from([None, [], [{"id": "b"}], [{"id": str(n)} for n in range(35)]])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), TEXTS, st.sampled_from(["m1", "m2", "m3"]), TURNS, st.booleans()),
        st.tuples(st.just("write"), TEXTS, TURNS, BLOCKS),
        st.tuples(st.just("clear")),
        st.tuples(st.just("signal"), st.sampled_from(["interrupt", "stop_and_drop", "new_session"])),
        st.tuples(st.just("consume")),
    ),
    max_size=14,
)


@pytest.fixture
async def pair():
    """Return the loopback Canon with a client for it, and a source of fresh conversation ids."""
    with LoopbackCanon() as canon:
        identity, base = canon.identity, canon.base_url
        environment = Environment(identity.environment_id, identity.project_id, base, base, "http://localhost:9", "k")
        connection = Connection(Secret(identity.api_key), environment, "direct", "test")
        client = CanonHttp(CanonLink(connection, clock=VirtualClock(instant=True)))
        yield canon, client, itertools.count()
        await client.close()


async def perform(api, conversation, step):
    """Do one step; return what its caller learns."""
    match step:
        case ("send", text, message_id, turn, final):
            semantics = "turn_complete" if final else "progress"
            metadata = {"turnSemantics": semantics, "turnId": f"{conversation}-{turn}"}
            name = f"{conversation}-{message_id}"
            try:
                return (await api.send(OutboundMessage(conversation, text, name, metadata=metadata))).message_id
            except DeliveryError as error:
                return error.certainty, error.retryable
        case ("write", text, turn, blocks):
            return await api.write_node(NodeWrite(conversation, f"{conversation}-{turn}", text, blocks=blocks))
        case ("clear",):
            return await api.clear_node(conversation)
        case ("consume",):
            return await api.consume_signal(conversation)
    return None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_the_twin_and_the_loopback_canon_agree_on_every_sequence(pair, steps):
    canon, client, numbers = pair
    conversation, twin = f"conv_{next(numbers)}", MemoryCanon()
    canon.add_conversation(conversation, "user_dana")
    pending = None
    for step in steps:
        if step[0] == "signal":
            # Canon keeps one signal per conversation, the newest; the twin queues them.
            if pending is None:
                pending = RuntimeSignal(step[1], "user_dana")
                canon.signal(conversation, step[1], "user_dana")
                twin.put_signal(conversation, pending)
            continue
        assert await perform(client, conversation, step) == await perform(twin, conversation, step), step
        pending = None if step[0] == "consume" else pending
    mine = [m for m in canon.state.messages if m.conversation_id == conversation and m.sender_id != "user_dana"]
    real = [(m.text, m.metadata.get("turnSemantics"), m.metadata.get("turnTrail")) for m in mine]
    twins = [(m.text, m.metadata.get("turnSemantics"), m.metadata.get("turnTrail")) for m in twin.messages]
    assert real == twins
    node, other = canon.state.nodes.get(conversation), twin.nodes.get(conversation)
    assert (node is None) == (other is None)
    if node is not None and other is not None:
        assert (node["text"], node["turnId"], node.get("blocks", [])) == (other.text, other.turn_id, list(other.blocks))
    noticed = [entry for entry in canon.logs.notifications if entry["conversationId"] == conversation]
    assert len(noticed) == len(twin.notifications)
