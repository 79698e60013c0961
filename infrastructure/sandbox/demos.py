"""The named demonstrations of the scripted model: each shows one capability of the plugin to a newcomer.

``demo`` lists them. A demonstration that needs a tool the host does not offer says so instead of failing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from canon_hermes_plugin.infrastructure.sandbox.model import ModelRequest, Round, ScriptedModel, ToolCall

TRIGGER = "demo"


@dataclass(frozen=True, slots=True)
class Demo:
    """One demonstration: ``demo <name>``. ``tool`` is the tool its rounds call, when they call one."""

    name: str
    about: str
    rounds: Sequence[Round]
    tool: str | None = None

    def answer(self, request: ModelRequest) -> Round:
        """Return the round to play."""
        if self.tool is not None and self.tool not in request.tool_names:
            return (f"This host does not offer the tool {self.tool}, so there is nothing to show.",)
        return self.rounds[min(request.round, len(self.rounds) - 1)]


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


DEMOS: tuple[Demo, ...] = (
    Demo("long", "an answer too long for one message, posted in parts", [[long_answer()]]),
    Demo(
        "tools",
        "a tool call, visible while it runs and in the answer's trail",
        [
            ["Let me look at the clock. ", ToolCall("terminal", {"command": "date -u"})],
            ["I asked the machine for its time with a tool, and this is the answer that followed."],
        ],
        tool="terminal",
    ),
)


def demo_name(text: str) -> str | None:
    """Return the word after ``demo`` in the text's last line that has it (``""`` for none), or ``None``."""
    words = text.lower().replace('"', " ").split()
    positions = [index for index, word in enumerate(words) if word == TRIGGER]
    if not positions or len(words) > positions[-1] + 2:
        return None
    return words[positions[-1] + 1] if len(words) > positions[-1] + 1 else ""


def menu() -> str:
    """Return the list of demonstrations."""
    return "\n".join(["I can show:", *(f"- demo {demo.name}: {demo.about}" for demo in DEMOS)])


def install_demos(model: ScriptedModel) -> None:
    """Teach the model every demonstration."""
    known = {demo.name: demo for demo in DEMOS}

    def answer(request: ModelRequest) -> Round:
        demo = known.get(demo_name(request.user_text) or "")
        return (menu(),) if demo is None else demo.answer(request)

    model.script_with(lambda request: demo_name(request.user_text) is not None, answer)
