"""The named demonstrations of the scripted model: each shows one capability of the plugin to a newcomer.

``demo`` lists them. A demonstration that needs a tool the host does not offer says so instead of failing.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from canon_hermes_plugin.infrastructure.sandbox.model import ModelRequest, Round, ScriptedModel, ToolCall
from canon_hermes_plugin.infrastructure.sandbox.records import Json, as_object

TRIGGER = "demo"
CONTROL = "canon_runtime_control"
_DECISION = re.compile(r"Canon approval \S+ resolved: (allow|deny)")
_PICTURE = re.compile(r"(/[^\s\"\\]+/canon-sandbox\.png)")

Part: TypeAlias = Round | Callable[[ModelRequest], Round]


@dataclass(frozen=True, slots=True)
class Demo:
    """One demonstration: ``demo <name>``. ``tool`` is the tool its rounds call, when they call one."""

    name: str
    about: str
    rounds: Sequence[Part]
    tool: str | None = None

    def answer(self, request: ModelRequest) -> Round:
        """Return the round to play."""
        if self.tool is not None and self.tool not in request.tool_names:
            return (f"This host does not offer the tool {self.tool}, so there is nothing to show.",)
        part = self.rounds[min(request.round, len(self.rounds) - 1)]
        return part(request) if callable(part) else part


def long_answer(size: int = 12_000) -> str:
    """Return about ``size`` characters of numbered paragraphs, so that a lost or doubled part is seen at once."""
    paragraphs: list[str] = []
    length, number = 0, 1
    while length < size:
        paragraph = f"{number}. This paragraph is one of many, to show how a long answer is cut into parts. " * 3
        paragraphs.append(paragraph.strip())
        length += len(paragraph) + 2
        number += 1
    return "\n\n".join([*paragraphs, "That was the whole answer."])


def picture(width: int = 48, height: int = 32) -> bytes:
    """Return a small PNG with a colour gradient."""
    rows = b"".join(
        b"\0" + bytes(value for x in range(width) for value in (x * 255 // width, y * 255 // height, 160))
        for y in range(height)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(name, data) for name, data in chunks)


def _png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _card() -> Json:
    actions = [
        {"id": "file", "label": "File it", "tone": "positive"},
        {"id": "later", "label": "Not now"},
    ]
    rows = [{"label": "Supplier", "value": "Acme Paper"}, {"label": "Amount", "value": "120.00 EUR"}]
    return {
        "schema": "canon.card.v1",
        "title": "Invoice 12345",
        "fallbackText": "Invoice 12345 from Acme Paper over 120.00 EUR. File it?",
        "blocks": [
            {"kind": "details", "rows": rows},
            {"kind": "actions", "actions": actions},
        ],
    }


def _after_card(request: ModelRequest) -> Round:
    result = _result(request)
    if result.get("status") == "submitted":
        return (f'You picked "{result.get("actionId")}" on the card.',)
    return (f"The card ended with: {result.get('status') or result.get('error')}.",)


def _after_question(request: ModelRequest) -> Round:
    answer = _result(request).get("user_response") or request.tool_results[-1][:300]
    return (f"Thank you. Your answer reached me: {answer}",)


def _after_command(request: ModelRequest) -> Round:
    denied = "denied" in request.tool_results[-1].lower()
    return ("You did not allow the command." if denied else "You allowed the command, and it ran.",)


def _after_picture(request: ModelRequest) -> Round:
    found = _PICTURE.search(request.tool_results[-1])
    return (f"Here is the picture.\nMEDIA:{found[1]}" if found else "The picture could not be written.",)


def _picture_command() -> str:
    data = base64.b64encode(picture()).decode()
    return f'f="$(pwd)/canon-sandbox.png"; echo {data} | base64 -d > "$f" && echo "$f"'


def _after_wake(request: ModelRequest) -> Round:
    found = _DECISION.search(request.user_text)
    allowed = found is not None and found[1] == "allow"
    return ("Thank you, I go ahead." if allowed else "Understood, I leave it.",)


def _result(request: ModelRequest) -> Json:
    try:
        return as_object(json.loads(request.tool_results[-1]))
    except (IndexError, ValueError):
        return {}


_APPROVAL: Json = {
    "action": "request_approval",
    "title": "File invoice",
    "question": "File invoice 12345?",
    "context": {"Supplier": "Acme Paper", "Amount": "120.00 EUR"},
}
_QUESTION: Json = {"question": "Tea or coffee?", "choices": ["tea", "coffee"]}

DEMOS: tuple[Demo, ...] = (
    Demo("long", "an answer too long for one message, posted in parts", [[long_answer()]]),
    Demo(
        "tools",
        "a tool call, visible while it runs and in the answer's trail",
        [
            ["Let me look at the clock. ", ToolCall("terminal", {"command": "sleep 2; date -u"})],
            ["I asked the machine for its time with a tool, and this is the answer that followed."],
        ],
        tool="terminal",
    ),
    Demo(
        "card",
        "a card with actions; the answer waits for your choice",
        [[ToolCall(CONTROL, {"action": "request_card", "card": _card(), "timeoutSeconds": 300})], _after_card],
        tool=CONTROL,
    ),
    Demo(
        "approval",
        "an approval that may take hours; your decision wakes me again",
        [
            [ToolCall(CONTROL, _APPROVAL)],
            ["I asked for your approval and do not wait for it. Your decision will wake me."],
        ],
        tool=CONTROL,
    ),
    Demo(
        "command",
        "a dangerous command that runs only when you allow it",
        [[ToolCall("terminal", {"command": "rm -rf ./canon-sandbox-scratch"})], _after_command],
        tool="terminal",
    ),
    Demo("question", "a question with choices", [[ToolCall("clarify", _QUESTION)], _after_question], tool="clarify"),
    Demo(
        "silence",
        "the choice to say nothing",
        [[ToolCall(CONTROL, {"action": "no_reply", "reason": "a demonstration"})], ["This text is never posted."]],
        tool=CONTROL,
    ),
    Demo(
        "media",
        "a picture in the answer",
        [[ToolCall("terminal", {"command": _picture_command()})], _after_picture],
        tool="terminal",
    ),
)


def demo_name(text: str) -> str | None:
    """Return the word after a ``demo`` that ends the text, ``""`` when none follows, ``None`` without ``demo``."""
    words = text.lower().replace('"', " ").split()
    positions = [index for index, word in enumerate(words) if word == TRIGGER]
    if not positions or len(words) > positions[-1] + 2:
        return None
    return words[positions[-1] + 1] if len(words) > positions[-1] + 1 else ""


def menu() -> str:
    """Return the list of demonstrations."""
    return "\n".join(["I can show:", *(f"- demo {demo.name}: {demo.about}" for demo in DEMOS)])


def install_demos(model: ScriptedModel) -> None:
    """Teach the model every demonstration, and what to say when an approval was decided."""
    known = {demo.name: demo for demo in DEMOS}

    def answer(request: ModelRequest) -> Round:
        demo = known.get(demo_name(request.user_text) or "")
        return (menu(),) if demo is None else demo.answer(request)

    model.script_with(lambda request: demo_name(request.user_text) is not None, answer)
    model.script_with(lambda request: _DECISION.search(request.user_text) is not None, _after_wake)
