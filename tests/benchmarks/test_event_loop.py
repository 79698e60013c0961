"""Field fault 71: nothing of ours blocks the gateway's event loop, shown by asyncio's own debug mode."""

from __future__ import annotations

import asyncio
import logging
import re
import time

import pytest
from canon_hermes_plugin import decisions
from canon_hermes_plugin.domain.approvals.creation import ApprovalOrder
from canon_hermes_plugin.domain.approvals.question import build_question
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.model import ToolEnd, ToolStart

pytestmark = pytest.mark.bench

BLOCKED = 0.1
ROUNDS = 3
BIG = 9 * 2**20
LINE = "The supplier wrote again; see invoice A-4711 — übermorgen. 🚚\n"


class Scenario:
    """One turn with everything heavy in it, and the wake after its approval."""

    def __init__(self, homes, pause=0.0):
        self.pause = pause
        self.file = homes / "scan.bin"
        self.file.write_bytes(b"x" * BIG)
        self.approval = None

    async def run(self, plugin, event):
        adapter, chat, turn = plugin.adapter, str(event.source.chat_id), current_turn.get()
        if event.text != "work":
            return "Good."
        time.sleep(self.pause)  # noqa: ASYNC251 - the control: a run that blocks
        turns, text = plugin.services.turns, LINE * (2**18 // len(LINE.encode()))
        turns.tool_started(turn, ToolStart("ask", "call_1", {"document": text}))
        deps = await asyncio.to_thread(decisions.action_deps, plugin.container.live_adapter())
        question = build_question(title="Pay", question="Pay the invoice?", options=None, context=None)
        order = ApprovalOrder(question, chat, "user_dana", 60_000)
        self.approval = await deps.creation.request(order, deps.access.verified)
        turns.tool_finished(turn, ToolEnd("ask", "call_1", result=text))
        sent = await adapter.send(chat, f"{text[:100]} ▉", metadata={"expect_edits": True})
        for end in range(2**15, len(text), 2**15):
            await adapter.edit_message(chat, sent.message_id, f"{text[:end]} ▉")
        await adapter.send_document(chat, str(self.file))
        await adapter.edit_message(chat, sent.message_id, text, finalize=True)
        turns.answer_confirmed(turn, text)
        return None


async def play(plugin, scenario, number):
    """Play the scenario in a conversation of its own, to the end of the turn that the approval wakes."""
    canon, conversation = plugin.canon, f"conv_loop_{number}"
    canon.add_conversation(conversation, "user_dana")
    picture = canon.host_file(b"\x89PNG\r\n\x1a\n" + b"\0" * BIG, "image/png", "photo.png")
    canon.say(conversation, "user_dana", "work", attachments=[picture])
    await canon.until(lambda canon: len(canon.finals(conversation)) == 1)
    canon.interactions.answer(scenario.approval["approvalId"], decision="allow")
    await canon.until(lambda canon: len(canon.finals(conversation)) == 2)
    await plugin.idle()


async def blocking_steps(plugin, scenario, caplog):
    """Return what held the loop for longer than :data:`BLOCKED` in every round: one slow round is the machine's."""
    loop = asyncio.get_running_loop()
    await play(plugin, scenario, "warm")  # the host imports what it needs on first use
    loop.slow_callback_duration = BLOCKED
    rounds = []
    for number in range(ROUNDS):
        caplog.clear()
        loop.set_debug(True)
        try:
            await play(plugin, scenario, number)
        finally:
            loop.set_debug(False)
        slow = [record.getMessage() for record in caplog.records if record.name == "asyncio"]
        rounds.append({step(message) for message in slow if message.startswith("Executing")})
    return set.intersection(*rounds)


def step(message):
    """Name what ran, without the numbers that differ from round to round."""
    found = re.search(r"coro=<([^ ]+)", message) or re.search(r"<(?:Timer)?Handle ([^ (]+)", message)
    return found.group(1) if found else message


@pytest.mark.parametrize("pause", [0.0, 0.2], ids=["ours", "control"])
async def test_field_71_a_turn_with_ledger_and_media_never_blocks_the_loop(
    plugin_type, homes, caplog, pause, record_property
):
    caplog.set_level(logging.WARNING, "asyncio")
    scenario = Scenario(homes, pause)
    plugin = plugin_type(scenario.run)
    await plugin.start()
    try:
        blocking = await blocking_steps(plugin, scenario, caplog)
    finally:
        await plugin.stop()
    record_property("blocking", sorted(blocking))
    if pause:
        assert any("_process_message_background" in name for name in blocking), "the measure sees nothing"
    else:
        assert blocking == set()
