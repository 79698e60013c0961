"""The scripted model: an OpenAI-compatible endpoint whose answers are programmed (hermes-host §13.3).

A *script* answers one user message. It is a list of *rounds*: round 1 answers the message, round 2 answers after the
host ran the tools of round 1, and so on; the last round repeats. A round is a list of steps: text, tool calls,
pauses, gates::

    model.script("weather", ["Let me look.", ToolCall("terminal", {"command": "date"})], ["It is sunny."])
    gate = Gate(); model.script("slow", ["Thinking", gate, " done."])     # holds the answer until gate.open()

Decides which script answers a request. Knows nothing of Canon.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias, cast

from canon_hermes_plugin.infrastructure.sandbox.records import Json, as_list, as_object
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackServer, Served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

MODEL_NAME = "scripted-model"
_TITLE = "Sandbox conversation"
_GATE_LIMIT = 120.0
_NEW_MESSAGE = "[New message]"
_SYSTEM_NOTE = re.compile(r"\n\s*\[System note: [^\]]*\]\s*$")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model calls a tool with JSON arguments. ``arguments`` may be a raw string, to be malformed on purpose.

    Without a ``call_id`` each playing gets one of its own: the host drops a call whose id its history already holds.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait this many seconds before the next step."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer the request with an HTTP error (only as the first step of a round)."""

    status: int = 400
    message: str = "scripted failure"


@dataclass(eq=False)
class Gate:
    """Holds the answer until a test opens it. ``reached`` is set when the model stands in front of it."""

    reached: threading.Event = field(default_factory=threading.Event)
    _opened: threading.Event = field(default_factory=threading.Event)
    _waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = field(
        default_factory=list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]
    )

    def open(self) -> None:
        """Let every answer that waits here, or comes later, go on."""
        self._opened.set()
        for loop, event in self._waiting:
            loop.call_soon_threadsafe(event.set)

    def wait_reached(self, timeout: float = 30.0) -> None:
        """Block until the model stands in front of the gate; TimeoutError otherwise."""
        if not self.reached.wait(timeout):
            raise TimeoutError(f"the model did not reach the gate within {timeout:g} s")

    async def passing(self) -> None:
        """Wait for :meth:`open`, at most two minutes."""
        event = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), event))
        self.reached.set()
        if not self._opened.is_set():
            async with asyncio.timeout(_GATE_LIMIT):
                await event.wait()


Step: TypeAlias = str | ToolCall | Pause | Gate | Fail
_STEPS = (str, ToolCall, Pause, Gate, Fail)
Round: TypeAlias = Sequence[Step]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One completion request.

    Attributes:
        body: the request body.
        user_text: the text of the newest user message, without the host's background block and notes.
        round: how many tool rounds were answered since then (0 for the first answer).
        streaming: whether chunks were asked for. Auxiliary calls of the host ask for none.
    """

    body: Json
    user_text: str
    round: int
    streaming: bool

    @property
    def tool_names(self) -> list[str]:
        """The names of the tools on offer."""
        tools = as_list(self.body.get("tools"))
        return [str(as_object(as_object(tool).get("function")).get("name")) for tool in tools]

    @property
    def tool_results(self) -> list[str]:
        """The contents of the tool results since the newest user message."""
        return [_text_of(message.get("content")) for message in _since_user(self.body) if message.get("role") == "tool"]


Matcher: TypeAlias = str | Callable[[ModelRequest], bool]
Script: TypeAlias = Callable[[ModelRequest], Round]


class ScriptedModel(Served):
    """The endpoint. Scripts added later are asked first; a text no script matches gets a sensible answer.

    Args:
        host: a loopback address.
        port: 0 picks a free one.
        pace: seconds between streamed words, so that a person can watch an answer grow.
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, pace: float = 0.0) -> None:
        self.pace = pace
        self.requests: list[ModelRequest] = []
        self._scripts: list[tuple[Matcher, Script]] = []
        self._lock = threading.Lock()
        self._call_numbers = count(1)
        completions = Route("/v1/chat/completions", self._complete, methods=["POST"])
        models = Route("/v1/models", self._models, methods=["GET"])
        self._server = LoopbackServer(Starlette(routes=[completions, models]), host=host, port=port)

    @property
    def url(self) -> str:
        """The base URL for the host's model configuration."""
        return f"{self._server.base_url}/v1"

    def script(self, matcher: Matcher, *rounds: Round) -> None:
        """Answer messages that contain ``matcher`` (or for which it is true) with these rounds.

        Raises:
            TypeError: a round is no list of steps, or holds something that is no step.
        """
        for number, steps in enumerate(rounds, 1):
            _check_round(steps, number)

        def fixed(request: ModelRequest) -> Round:
            return rounds[min(request.round, len(rounds) - 1)] if rounds else ()

        self.script_with(matcher, fixed)

    def script_with(self, matcher: Matcher, answer: Script) -> None:
        """Answer with what ``answer(request)`` returns for each round."""
        with self._lock:
            self._scripts.insert(0, (matcher, answer))

    def user_texts(self) -> list[str]:
        """The user texts of the first rounds of all streamed requests, in order: what the agent was asked."""
        with self._lock:
            return [request.user_text for request in self.requests if request.streaming and request.round == 0]

    def _answer(self, request: ModelRequest) -> Round:
        with self._lock:
            self.requests.append(request)
            scripts = list(self._scripts)
        if not request.streaming:
            return (_TITLE,)
        for matcher, answer in scripts:
            if matcher in request.user_text if isinstance(matcher, str) else matcher(request):
                return _playable(answer(request), request.round + 1)
        return (_sensible(request.user_text),)

    async def _models(self, _request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": MODEL_NAME, "object": "model"}]})

    async def _complete(self, http: Request) -> Response:
        body = as_object(json.loads(await http.body()))
        since = _since_user(body)
        rounds = sum(1 for message in since if message.get("role") == "assistant" and message.get("tool_calls"))
        request = ModelRequest(body, _user_text(body), rounds, bool(body.get("stream")))
        steps = self._answer(request)
        if steps and isinstance(steps[0], Fail):
            error = {"error": {"message": steps[0].message, "type": "invalid_request_error"}}
            return JSONResponse(error, steps[0].status)
        if request.streaming:
            return StreamingResponse(self._chunks(steps), media_type="text/event-stream")
        text = "".join(step for step in steps if isinstance(step, str))
        return JSONResponse(_completion("chat.completion", {"message": {"role": "assistant", "content": text}}, "stop"))

    async def _chunks(self, steps: Round) -> AsyncIterator[bytes]:
        calls = 0
        for step in steps:
            match step:
                case str():
                    for word in _words(step):
                        yield _chunk({"content": word})
                        await asyncio.sleep(self.pace)
                case ToolCall():
                    yield _chunk({"tool_calls": [_tool_delta(step, calls, next(self._call_numbers))]})
                    calls += 1
                case Pause():
                    await asyncio.sleep(step.seconds)
                case Gate():
                    await step.passing()
                case Fail():
                    return
        yield _chunk({}, "tool_calls" if calls else "stop")
        yield _data({**_completion("chat.completion.chunk", {}, None), "choices": []})
        yield b"data: [DONE]\n\n"


def _check_round(steps: object, number: int) -> None:
    """Refuse what could not be played, where it is written and not in the middle of an answer."""
    if not isinstance(steps, list | tuple):
        shown = f"[{steps!r}]" if isinstance(steps, _STEPS) else '["text"]'
        raise TypeError(f"round {number} is a list of steps, not {type(steps).__name__}: write {shown}")
    for step in cast("Sequence[object]", steps):
        if not isinstance(step, _STEPS):
            known = ", ".join(kind.__name__ for kind in _STEPS)
            raise TypeError(f"a step of round {number} is {type(step).__name__}; a step is one of: {known}")


def _playable(steps: Round, number: int) -> Round:
    """Return the round a function gave, or the failure that tells the host, and so the test's log, what is wrong."""
    try:
        _check_round(steps, number)
    except TypeError as error:
        return (Fail(message=str(error)),)
    return steps


def _completion(kind: str, choice: Json, finish: str | None) -> Json:
    choices = [{"index": 0, **choice, "finish_reason": finish}]
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"id": "scripted", "object": kind, "created": 1, "model": MODEL_NAME}
    return {**head, "choices": choices, "usage": usage}


def _chunk(delta: Json, finish: str | None = None) -> bytes:
    chunk = _completion("chat.completion.chunk", {"delta": {"role": "assistant", **delta}}, finish)
    del chunk["usage"]
    return _data(chunk)


def _data(value: Json) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _tool_delta(call: ToolCall, index: int, number: int) -> Json:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    function = {"name": call.name, "arguments": arguments}
    call_id = call.call_id or f"call_{call.name}_{number}"
    return {"index": index, "id": call_id, "type": "function", "function": function}


def _words(text: str) -> list[str]:
    """Cut text after blanks, in pieces of at least one character and not too many pieces."""
    size = max(1, len(text) // 400)
    if size > 1:
        size = max(size, 24)
        return [text[start : start + size] for start in range(0, len(text), size)]
    pieces = text.split(" ")
    return [piece + " " for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _messages(body: Json) -> list[Json]:
    return [as_object(message) for message in as_list(body.get("messages"))]


def _since_user(body: Json) -> list[Json]:
    messages = _messages(body)
    newest = max((i for i, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    return messages[newest + 1 :]


def _user_text(body: Json) -> str:
    texts = [_text_of(message.get("content")) for message in _messages(body) if message.get("role") == "user"]
    return _SYSTEM_NOTE.sub("", texts[-1].rsplit(_NEW_MESSAGE, 1)[-1]).strip() if texts else ""


def _text_of(content: Any) -> str:  # noqa: ANN401 - the chat API's content is a string or a list of parts
    if isinstance(content, str):
        return content
    return " ".join(str(as_object(part).get("text", "")) for part in as_list(content))


def _sensible(text: str) -> str:
    shown = text if len(text) <= 300 else text[:297] + "..."  # noqa: PLR2004 - enough to recognise one's own words
    return f'Hello! I am the scripted model of the sandbox. You wrote: "{shown}". Write "demo" to see what I can show.'
