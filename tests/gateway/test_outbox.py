"""An answer that is being delivered when the gateway is killed is completed by the next one (field fault 90)."""

from __future__ import annotations

import itertools
import time

import pytest
from canon_hermes_plugin.infrastructure.files.outbox import DIRECTORY
from canon_hermes_plugin.infrastructure.sandbox.model import Gate

pytestmark = pytest.mark.gateway

PARTS = [letter * 3600 for letter in "abcd"]
STALLED = {"kind": "delay", "delay": 300.0}
_numbers = itertools.count(1)


def part(record):
    return (record.body or {}).get("metadata", {}).get("messageChunk", {}).get("index", 1)


def kept(gateway):
    return [path for path in (gateway.canon_home / DIRECTORY).rglob("*") if path.is_file()]


def begin(chat, model, how, stored):
    """Let an answer of four parts begin; Canon stores ``stored`` of them and then fails in a way. Return the place."""
    conversation, asked = chat.direct(), f"tell me all, number {next(_numbers)}"
    model.script(asked, ["\n\n".join(PARTS)])
    chat.canon.fault("send", times=None, matching=lambda record: part(record) > stored, **how)
    chat.canon.say(conversation, "user_dana", asked)

    def begun(canon):
        return [record for record in canon.requests("send") if part(record) == stored + 1] or None

    chat.wait(begun, 60, "the part that fails was not begun")
    return conversation


def kill(chat):
    chat.gateway.kill()
    assert len(kept(chat.gateway)) == 1
    chat.canon.clear_faults()


def assert_said_once(chat, conversation):
    """The whole answer is there, in order, once; nothing of it is left anywhere else."""

    def parts(canon):
        return [message for message in canon.messages(conversation) if message.text[:1] in set("abcd")]

    chat.wait(lambda canon: parts(canon)[len(PARTS) - 1 :], 60, "the answer was not completed")
    chat.wait(lambda _: not kept(chat.gateway) or None, 20, "something is kept still")
    chat.wait(lambda canon: canon.node(conversation) is None or None, 20, "the node stays")
    own = parts(chat.canon)
    assert [message.text for message in own] == PARTS
    assert [message.final for message in own] == [False, False, False, True]
    chunks = [message.metadata["messageChunk"] for message in own]
    assert [(chunk["index"], chunk["count"]) for chunk in chunks] == [(index, 4) for index in range(1, 5)]
    assert not any(message.salvaged for message in chat.canon.messages(conversation))


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("how", "stored"), [(STALLED, 0), (STALLED, 2), ({"status": 500}, 2)], ids=str)
def test_field_90_a_killed_delivery_is_completed_once_by_the_next_process(
    own_canon, new_gateway, model, streaming, how, stored
):
    chat = new_gateway(canon=own_canon, streaming=streaming)
    conversation = begin(chat, model, how, stored)
    dead = own_canon.logs.turns[-1]["turnId"]
    kill(chat)
    assert len(own_canon.messages(conversation)) == stored
    asked = len(model.requests)
    chat.gateway.start()
    chat.wait_connected()
    assert_said_once(chat, conversation)
    chat.settled(conversation)
    assert [turn["state"] for turn in own_canon.logs.turns if turn["turnId"] == dead][-1] == "completed"
    # The host resumes what was running, and this was over: no further word, no further run.
    deadline = time.monotonic() + 60
    while "Gateway housekeeping started" not in chat.gateway.full_log().rpartition("Starting Hermes Gateway")[2]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(2)
    assert [message.text for message in own_canon.messages(conversation)] == PARTS
    assert len(model.requests) == asked
    model.script("and then", ["That was all."])
    assert chat.ask(conversation, "and then").text == "That was all."
    chat.gateway.close()


def test_field_90_a_second_death_during_the_recovery_loses_and_doubles_nothing(own_canon, new_gateway, model):
    chat = new_gateway(canon=own_canon)
    conversation = begin(chat, model, STALLED, 1)
    kill(chat)
    seen = len(own_canon.requests("send"))
    own_canon.fault("send", times=None, matching=lambda record: part(record) > 2, status=500)
    chat.gateway.start()
    chat.wait(lambda canon: any(part(r) == 3 for r in canon.requests("send")[seen:]) or None, 60, "not replayed")
    kill(chat)
    chat.gateway.start()
    assert_said_once(chat, conversation)
    chat.gateway.close()


def test_field_90_a_run_that_was_killed_beside_a_delivery_is_still_resumed_by_the_host(own_canon, new_gateway, model):
    """The first answer settles, the second question runs: the host's mark belongs to the second."""
    chat = new_gateway(canon=own_canon)
    conversation = begin(chat, model, {"status": 500}, 2)
    chat.settled(conversation)
    gate = Gate()
    model.script("the second question", ["Half of an ans", gate, "wer."])
    own_canon.say(conversation, "user_dana", "the second question")
    gate.wait_reached(60)
    kill(chat)
    gate.open()
    asked = len(model.requests)
    chat.gateway.start()
    assert_said_once(chat, conversation)
    chat.wait(lambda _: len(model.requests) > asked or None, 60, "the host resumed nothing")
    chat.gateway.close()


def test_field_90_an_orderly_stop_leaves_the_rest_to_the_next_process(own_canon, new_gateway, model):
    chat = new_gateway(canon=own_canon)
    conversation = begin(chat, model, {"status": 500}, 2)
    chat.gateway.stop()
    own_canon.clear_faults()
    assert len(kept(chat.gateway)) == 1
    chat.gateway.start()
    assert_said_once(chat, conversation)
    chat.gateway.close()
