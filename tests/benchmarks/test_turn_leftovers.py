"""What 300 turns leave behind in the process: nothing."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections import Counter
from pathlib import Path

import pytest
from canon_hermes_plugin.domain.inbound.lanes import MAX_WORKERS
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.model import ToolEnd, ToolStart

pytestmark = pytest.mark.bench

CONVERSATIONS = 20
PIXEL = b"\x89PNG\r\n\x1a\n" + b"\0" * 64
RECORDS = "canon_hermes_plugin.infrastructure.sandbox"
"""The stand-in remembers every request; that is its purpose."""


async def run(plugin, event):
    """One scripted run: streamed or whole, with a tool, silent, failing, or with a file."""
    adapter, chat, turn = plugin.adapter, str(event.source.chat_id), current_turn.get()
    turns, kind = plugin.services.turns, event.text.split()[0]
    turns.tool_started(turn, ToolStart("look", "call_1", {"path": "a.txt"}))
    await asyncio.sleep(0)
    turns.tool_finished(turn, ToolEnd("look", "call_1", result="found"))
    match kind:
        case "stream":
            sent = await adapter.send(chat, "Half ▉", metadata={"expect_edits": True})
            await adapter.edit_message(chat, sent.message_id, "Half and whole.", finalize=True)
            return None
        case "silent":
            turns.silence(turn)
            return "unheard"
        case "fail":
            raise RuntimeError("the run failed")
        case "file":
            await adapter.send_document(chat, str(plugin.file))
    return f"Answer to {event.text}"


KINDS = ("stream", "whole", "silent", "fail", "file", "picture")


async def converse(plugin, turns):
    """Hold ``turns`` turns in :data:`CONVERSATIONS` conversations side by side, one message after the other in each."""
    per_conversation = turns // CONVERSATIONS
    picture = plugin.canon.host_file(PIXEL, "image/png", "pixel.png")

    async def one(number):
        conversation = f"conv_{number}"
        for turn in range(per_conversation):
            kind = KINDS[(number + turn) % len(KINDS)]
            fields = {"attachments": [picture]} if kind == "picture" else {}
            before = closed(plugin.canon, conversation)
            plugin.canon.say(conversation, "user_dana", f"{kind} {turn}", **fields)
            async with asyncio.timeout(60):
                while closed(plugin.canon, conversation) == before:
                    await asyncio.sleep(0.02)

    await asyncio.gather(*(one(number) for number in range(CONVERSATIONS)))
    await plugin.idle()


def closed(canon, conversation):
    states = (turn["state"] for turn in canon.logs.turns if turn["conversationId"] == conversation)
    return sum(state in {"completed", "interrupted"} for state in states)


def descriptors():
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only the number counts


def tasks():
    """Count the tasks by what they run, but for the stream's workers: a bounded pool that grows when it is needed."""
    names = Counter(task.get_coro().__qualname__ for task in asyncio.all_tasks())
    assert names.pop("Lanes._work", 0) <= MAX_WORKERS
    return names


def living():
    """Count this package's objects by type, without the stand-in's records."""
    gc.collect()
    names = (f"{type(item).__module__}.{type(item).__qualname__}" for item in gc.get_objects())
    return Counter(name for name in names if name.startswith("canon_hermes_plugin") and not name.startswith(RECORDS))


@pytest.fixture
def _nothing_logged():
    """The test runner keeps log records, and with them the frames of failed runs."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("_nothing_logged")
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors through /proc")
async def test_300_turns_leave_no_task_descriptor_or_live_object(plugin_type, homes, monkeypatch, record_property):
    seen = []
    for turns in (CONVERSATIONS, 300):
        # A Canon of its own counts its events anew: what the plugin noted of the one before would belong to others.
        monkeypatch.setenv("CANON_HOME", str(homes / f"canon-{turns}"))
        # Each stand-in counts its messages from one: what was kept about the last one's is not about them.
        monkeypatch.setenv("HERMES_HOME", str(homes / f"hermes-{turns}"))
        monkeypatch.setenv("CANON_HOME", str(homes / f"canon-{turns}"))
        plugin = plugin_type(run)
        plugin.file = homes / "report.txt"
        plugin.file.write_bytes(b"a report")
        await plugin.start()
        for number in range(CONVERSATIONS):
            plugin.canon.add_conversation(f"conv_{number}", "user_dana")
        await converse(plugin, CONVERSATIONS)
        connected = tasks(), living()
        await converse(plugin, turns)
        grown = {name: more for name, more in (living() - connected[1]).items() if more > 0}
        assert tasks() == connected[0]
        assert not any(name.endswith((".Turn", ".Room", ".LiveView", ".DeliveryBook")) for name in living())
        assert sum(message.final for message in plugin.canon.messages()) >= turns // 2
        await plugin.stop()
        seen.append((grown, tasks(), descriptors()))
        del plugin
    record_property("figures", {"grown": seen[-1][0], "descriptors": [one[2] for one in seen]})
    assert seen[-1][0] == {}
    assert seen[0][1] == seen[1][1] == tasks()
    assert seen[1][2] <= seen[0][2]
