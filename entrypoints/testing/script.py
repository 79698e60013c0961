"""What a scripted turn does: a list of steps, written down before the message that starts it arrives."""

from __future__ import annotations

import math
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
        self.required = True
        self._words: list[str] = []
        self._results: list[object] = []
        self._failure: tuple[str, Exception] | None = None
        self._told: Exception | None = None

    @property
    def results(self) -> list[object]:
        """What the tools returned so far, in order.

        Raises:
            RuntimeError: a step raised; its exception is the cause, and the plugin does not report it again.
        """
        if self._failure is not None:
            step, error = self._failure
            self._told = error
            raise RuntimeError(f"the script broke off at {step}: {type(error).__name__}: {error}") from error
        return self._results

    @property
    def told(self) -> Exception | None:
        """The exception that :attr:`results` told."""
        return self._told

    async def play(self, stage: Stage) -> None:
        """Do the steps in the turn of ``stage``; raises what a step raises."""
        for step, word in zip(self.steps, self._words, strict=True):
            try:
                await step(stage)
            except ToolError:
                raise
            except Exception as error:
                self._failure = (word, error)
                raise

    def says(self, text: str) -> Self:
        """Answer with ``text``; raises TypeError for what is no text."""
        check_text(text)
        return self._does(f"says({text!r:.60})", lambda stage: stage.says(text))

    def streams(self, *frames: str) -> Self:
        """Answer in growing frames; the last one is the whole text.

        Raises:
            TypeError: a frame is no text.
            ValueError: there is no frame.
        """
        if not frames:
            raise ValueError("streams needs at least one frame; the last one is the whole text")
        for frame in frames:
            check_text(frame)
        return self._does("streams(…)", lambda stage: stage.streams(frames))

    def calls_tool(self, tool: Callable[..., Any], /, *arguments: object, **options: object) -> Self:
        """Call ``tool``, a function or a coroutine function; its result is appended to :attr:`results`.

        Raises:
            TypeError: ``tool`` cannot be called; its name is not enough.
        """
        check_callable("calls_tool", tool)

        def call() -> object:
            result: object = tool(*arguments, **options)
            self._results.append(_finished(result))
            return self._results[-1]

        name = getattr(tool, "__name__", "tool")
        return self._does(f"calls_tool({name})", lambda stage: stage.calls_tool(name, call))

    def is_silent(self) -> Self:
        """End without a message, on purpose."""
        return self._does("is_silent()", lambda stage: stage.is_silent())

    def waits(self, seconds: float) -> Self:
        """Work for ``seconds`` of the virtual clock; raises TypeError or ValueError for what is no length of time."""
        checked_seconds(seconds)
        return self._does(f"waits({seconds})", lambda stage: stage.waits(seconds))

    def fails(self) -> Self:
        """Let the run break off here: it answers nothing more, and the turn completes."""
        return self._does("fails()", _break_off)

    def runs(self, step: Step) -> Self:
        """Do anything: ``step`` is awaited on the gateway's loop, inside the turn's context.

        Raises:
            TypeError: ``step`` cannot be called.
        """
        check_callable("runs", step)
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

    def add(self, script: Script) -> Script:
        """Append ``script`` and return it."""
        self.waiting.append(script)
        return script

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


def checked_seconds(seconds: object) -> float:
    """Return a length of time that can pass; raise TypeError or ValueError for what is none."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"seconds must be a number, not {seconds!r:.80}")
    if not 0 <= seconds < math.inf:
        raise ValueError(f"seconds must be 0 or more and have an end, not {seconds!r}")
    return float(seconds)


def check_text(text: object) -> None:
    """Raise TypeError unless this is a text."""
    if not isinstance(text, str):
        raise TypeError(f"what the agent says is a text, not {text!r:.80}")


def check_callable(method: str, function: object) -> None:
    """Raise TypeError unless ``method`` can call ``function``."""
    if not callable(function):
        raise TypeError(f"{method} takes a function, which it calls when the turn runs, not {function!r:.80}")


async def _break_off(_stage: Stage) -> None:
    raise ToolError


def _finished(result: object) -> object:
    """Return what a tool returns; a coroutine runs on a fresh loop of the tool's own thread, as in the host."""
    import asyncio
    import inspect

    return asyncio.run(cast("Any", result)) if inspect.iscoroutine(result) else result
