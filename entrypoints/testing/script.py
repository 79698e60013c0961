"""What a scripted turn does: a list of steps, written down before the message that starts it arrives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, Self, cast, final

Step = Callable[["Stage"], Awaitable[None]]


class Stage(Protocol):
    """What a running turn offers to its script: the host's calls, in the host's words."""

    async def says(self, text: str) -> None:
        """Deliver the run's final text."""
        ...

    async def streams(self, frames: tuple[str, ...]) -> None:
        """Stream one bubble that grows frame by frame and is finalized with the last."""
        ...

    async def calls_tool(self, name: str, tool: Callable[[], Any]) -> None:
        """Run a tool on a worker thread that inherits the turn's context, with the host's hooks around it."""
        ...

    async def is_silent(self) -> None:
        """Choose silence."""
        ...

    async def waits(self, seconds: float) -> None:
        """Work for some time."""
        ...


class ToolError(RuntimeError):
    """The run ends without an answer."""


class Script:
    """The steps of one turn, in order. Every method appends one and returns the script."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.results: list[object] = []
        self.required = True
        self._words: list[str] = []

    def says(self, text: str) -> Self:
        """Answer with ``text``."""
        return self._does(f"says({text!r:.60})", lambda stage: stage.says(text))

    def streams(self, *frames: str) -> Self:
        """Answer in growing frames; the last one is the whole text."""
        return self._does("streams(…)", lambda stage: stage.streams(frames))

    def calls_tool(self, tool: Callable[..., Any], /, *arguments: object, **options: object) -> Self:
        """Call ``tool``, a function or a coroutine function; its result is appended to :attr:`results`."""

        def call() -> object:
            result: object = tool(*arguments, **options)
            self.results.append(_finished(result))
            return self.results[-1]

        name = getattr(tool, "__name__", "tool")
        return self._does(f"calls_tool({name})", lambda stage: stage.calls_tool(name, call))

    def is_silent(self) -> Self:
        """End without a message, on purpose."""
        return self._does("is_silent()", lambda stage: stage.is_silent())

    def waits(self, seconds: float) -> Self:
        """Work for ``seconds`` of the virtual clock."""
        return self._does(f"waits({seconds})", lambda stage: stage.waits(seconds))

    def fails(self) -> Self:
        """Let the run break off here: it answers nothing more, and the turn completes."""
        return self._does("fails()", _break_off)

    def runs(self, step: Step) -> Self:
        """Do anything: ``step`` is awaited on the gateway's loop, inside the turn's context."""
        return self._does("runs(…)", step)

    def optional(self) -> Self:
        """Let it be no mistake if no turn ever takes this script: its message is dropped, for example."""
        self.required = False
        return self

    def __str__(self) -> str:
        return ".".join(self._words) or "an empty script"

    def _does(self, word: str, step: Step) -> Self:
        self._words.append(word)
        self.steps.append(step)
        return self


@final
class Scripts:
    """The scripts of the turns to come, first in, first out; a turn without one ends without a message."""

    def __init__(self) -> None:
        self.waiting: list[Script] = []

    def new(self) -> Script:
        """Append a script and return it."""
        self.waiting.append(Script())
        return self.waiting[-1]

    def first(self, script: Script) -> None:
        """Let ``script`` be the next one, before those that wait."""
        self.waiting.insert(0, script)

    def withdraw(self, script: Script) -> None:
        """Forget a script unless it was taken out already."""
        if script in self.waiting:
            self.waiting.remove(script)

    def next(self) -> Script:
        """Take out the next script."""
        return self.waiting.pop(0) if self.waiting else Script()

    def unused(self) -> list[str]:
        """Say which scripts no turn took though one should have, one line each."""
        return [f"no turn took the script {script}" for script in self.waiting if script.required]


async def _break_off(_stage: Stage) -> None:
    raise ToolError


def _finished(result: object) -> object:
    """Return what a tool returns; a coroutine runs on a fresh loop of the tool's own thread, as in the host."""
    import asyncio
    import inspect

    return asyncio.run(cast("Any", result)) if inspect.iscoroutine(result) else result
