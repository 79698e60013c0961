"""The scripted model answers like an OpenAI-compatible endpoint and plays its scripts (hermes-host §13.3)."""

import json
import threading

import httpx
import pytest
from canon_hermes_plugin.infrastructure.sandbox.demos import DEMOS, demo_name, install_demos
from canon_hermes_plugin.infrastructure.sandbox.model import Fail, Gate, ScriptedModel, ToolCall


@pytest.fixture(scope="module")
def running():
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def model(running):
    running._scripts.clear()
    running.requests.clear()
    return running


def complete(model, *messages, stream=True, tools=()):
    body = {"model": "m", "messages": list(messages), "stream": stream}
    body["tools"] = [{"type": "function", "function": {"name": name}} for name in tools]
    response = httpx.post(f"{model.url}/chat/completions", json=body, timeout=10)
    if not stream or response.is_error:
        return response
    lines = [line[6:] for line in response.text.split("\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def user(text):
    return {"role": "user", "content": text}


def text_of(chunks):
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk["choices"])


def test_any_text_gets_a_sensible_answer_in_chunks(model):
    chunks = complete(model, user("what is this?"))
    assert "what is this?" in text_of(chunks)
    assert len(chunks) > 3
    assert chunks[-1]["choices"] == []
    assert "usage" in chunks[-1]


def test_auxiliary_calls_get_one_plain_completion_and_use_up_no_script(model):
    model.script("hello", ["scripted"])
    answer = complete(model, user("hello"), stream=False).json()
    assert answer["choices"][0]["message"]["content"] != "scripted"
    assert answer["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("rounds", "complaint"),
    [
        ((ToolCall("t"),), r"round 1 is a list of steps, not ToolCall: write \[ToolCall\("),
        ((["a"], "text"), r"round 2 is a list of steps, not str: write \['text'\]"),
        ((None,), r"round 1 is a list of steps, not NoneType: write \[\"text\"\]"),
        ((["a"], ["b", 5]), "a step of round 2 is int; a step is one of: str, ToolCall, Pause, Gate, Fail"),
        (([["a"]],), "a step of round 1 is list"),
    ],
)
def test_a_round_that_cannot_be_played_is_refused_where_it_is_written(model, rounds, complaint):
    with pytest.raises(TypeError, match=complaint):
        model.script("x", *rounds)
    model.script_with("x", lambda request: rounds[-1])
    answer = complete(model, user("x"))
    assert answer.status_code == 400
    assert "round 1 is" in answer.json()["error"]["message"]


def test_rounds_follow_the_tool_results_and_the_last_one_repeats(model):
    model.script("clock", ["Let me look.", ToolCall("terminal", {"command": "date"})], ["It is late."])
    first = complete(model, user("clock"))
    deltas = [chunk["choices"][0]["delta"] for chunk in first if chunk["choices"]]
    (call,) = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert call["function"] == {"name": "terminal", "arguments": '{"command": "date"}'}
    assert first[-2]["choices"][0]["finish_reason"] == "tool_calls"
    history = [user("clock"), {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "12"}]
    assert text_of(complete(model, *history)) == "It is late."
    assert text_of(complete(model, *history, *history[1:])) == "It is late."
    assert model.requests[-2].tool_results == ["12"]


def test_every_call_of_a_tool_has_an_id_of_its_own_unless_the_script_names_one(model):
    model.script("clock", [ToolCall("terminal"), ToolCall("terminal"), ToolCall("terminal", call_id="mine")])
    choices = [chunk["choices"][0] for _ in range(2) for chunk in complete(model, user("clock")) if chunk["choices"]]
    calls = [call for choice in choices for call in choice["delta"].get("tool_calls", [])]
    assert [call["index"] for call in calls] == [0, 1, 2, 0, 1, 2]
    ids = [call["id"] for call in calls]
    assert (ids[2], ids[5], len(set(ids))) == ("mine", "mine", 5)


def test_chunking_loses_no_text(model):
    long = "word  \n\n" * 3000 + "end "
    for text in ("a  b", " lead", "x", long, "\u05e9" * 9000):
        model.script("go", [text])
        assert text_of(complete(model, user("go"))) == text


def test_background_and_content_parts_are_read_as_the_host_writes_them(model):
    complete(model, user("<old demo long>\n\n[New message]\nhi"), tools=["terminal"])
    complete(model, user([{"type": "text", "text": "parts"}]))
    complete(model, user("demo\n\n[System note: the user's very first message.]"))
    assert model.user_texts() == ["hi", "parts", "demo"]
    assert model.requests[0].tool_names == ["terminal"]


def test_a_gate_holds_the_answer_until_it_is_opened(model):
    gate = Gate()
    model.script("wait", ["before ", gate, "after"])
    results = []
    thread = threading.Thread(target=lambda: results.append(complete(model, user("wait"))))
    thread.start()
    gate.wait_reached(10)
    assert results == []
    gate.open()
    thread.join(10)
    assert text_of(results[0]) == "before after"


def test_a_failure_is_an_http_error(model):
    model.script("boom", [Fail(400, "no")])
    assert complete(model, user("boom")).status_code == 400


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("demo long", "long"),
        ("Demo Tools", "tools"),
        ("demo", ""),
        ("a demonstration", None),
        ("a demo for my boss", None),
    ],
)
def test_a_demonstration_is_named_at_the_end_of_the_text(text, name):
    assert demo_name(text) == name


def test_demo_alone_lists_every_demonstration(model):
    install_demos(model)
    menu = text_of(complete(model, user("demo")))
    assert all(f"demo {demo.name}" in menu for demo in DEMOS)


@pytest.mark.parametrize("demo", DEMOS, ids=lambda demo: demo.name)
def test_a_demonstration_without_its_tool_says_so(model, demo):
    install_demos(model)
    answer = text_of(complete(model, user(f"demo {demo.name}")))
    assert answer
    assert ("does not offer" in answer) == (demo.tool is not None)
