"""The public functions at the package root (interactions §10): names, signatures, checks in order, late network."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import canon_hermes_plugin as api_root
import pytest
from canon_hermes_plugin import api
from canon_hermes_plugin.domain.approvals.creation import ApprovalCreation
from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.interactions.actions import ActionDeps
from canon_hermes_plugin.domain.media.captures import Capture, CaptureStore
from canon_hermes_plugin.infrastructure.hermes.live import LIVE, LiveAdapter
from canon_hermes_plugin.infrastructure.memory.approval_store import MemoryLedger
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.time import SeededIds, VirtualClock
from canon_hermes_plugin.ports.host import SessionSnapshot

NAMES = {
    "CanonTurnContext",
    "CanonInboundMedia",
    "RUNTIME_CARD_LIMITS",
    "check_detached_approval",
    "current_canon_inbound_media",
    "current_canon_turn",
    "register",
    "request_card_for_current_human",
    "request_detached_approval_for_current_human",
    "send_card_to_current_conversation",
    "upload_media_for_current_conversation",
    "validate_card",
}
ASYNC = sorted(name for name in NAMES if inspect.iscoroutinefunction(getattr(api_root, name)))
CARD = {
    "schema": "canon.card.v1",
    "cardId": "berth_42",
    "title": "Berth",
    "fallbackText": "Release?",
    "blocks": [{"kind": "actions", "actions": [{"id": "release", "label": "Release"}]}],
}
PLAIN = {**CARD, "blocks": [{"kind": "callout", "text": "Hello"}]}
TURN = SessionSnapshot("canon", "cv", "u_77", "Dana", "s_1", "key", "msg_1")


def test_the_export_list_is_exactly_the_contracts():
    assert set(api_root.__all__) == NAMES
    assert all(hasattr(api_root, name) for name in NAMES)


def test_nobody_can_name_another_conversation_or_person():
    assert len(ASYNC) == 5
    for name in ASYNC:
        parameters = set(inspect.signature(getattr(api_root, name)).parameters)
        assert not parameters & {"target", "conversation_id", "response_user_id", "responder"}


def test_the_signatures_are_the_contracts():
    signatures = {name: str(inspect.signature(getattr(api_root, name))) for name in [*ASYNC, "current_canon_turn"]}
    assert signatures == {
        "check_detached_approval": "(approval_id: 'str') -> 'dict[str, Any]'",
        "current_canon_turn": "(*, require_human: 'bool' = False) -> 'CanonTurnContext'",
        "request_card_for_current_human": (
            "(card: 'object', *, timeout_seconds: 'int' = 300, native: 'dict[str, Any] | None' = None)"
            " -> 'dict[str, Any]'"
        ),
        "request_detached_approval_for_current_human": (
            "(*, title: 'str | None' = None, question: 'str | None' = None, options: 'list[str] | None' = None,"
            " context: 'str | dict[str, Any] | None' = None, timeout_seconds: 'int | None' = None) -> 'dict[str, Any]'"
        ),
        "send_card_to_current_conversation": (
            "(card: 'object', *, native: 'dict[str, Any] | None' = None) -> 'dict[str, Any]'"
        ),
        "upload_media_for_current_conversation": (
            "(data: 'bytes', mime_type: 'str', *, file_name: 'str | None' = None) -> 'dict[str, Any]'"
        ),
    }


def test_importing_the_root_loads_neither_host_nor_container_nor_http():
    code = "import sys, canon_hermes_plugin; print(sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(done.stdout))
    heavy = {"httpx", "dependency_injector", "gateway", "tools", "hermes_cli", "filelock", "starlette", "click", "rich"}
    assert not loaded & heavy


class World:
    """A Canon turn with everything behind it in memory."""

    def __init__(self) -> None:
        self.clock = VirtualClock(instant=True)
        self.canon = MemoryCanon(clock=self.clock)
        self.ledger = MemoryLedger(self.clock.now_ms)
        self.snapshot = TURN
        self.opened = self.closed = 0
        ids = SeededIds()
        self.desk = ApprovalDesk(self.ledger, self.clock, ids, "p")
        unused: Any = None
        self.deps = ActionDeps(
            unused, self, self.desk, ApprovalCreation(self.desk, self.clock, ids), unused, unused, self.clock,
            lambda: None, lambda: False,
        )  # fmt: skip

    @asynccontextmanager
    async def verified(self):
        self.opened += 1
        try:
            yield self.canon
        finally:
            self.closed += 1

    async def provide(self) -> ActionDeps:
        return self.deps

    def answer_at_once(self, kind: str, answer: dict[str, Any], **how: Any) -> None:
        create = self.canon.interactions.create

        def answered(body):
            made = create(body)
            self.canon.interactions.answer(kind, made[f"{kind}Id"], answer, **how)
            return made

        self.canon.interactions.create = answered  # type: ignore[method-assign]

    def respond_create(self, **fields: Any) -> None:
        create = self.canon.interactions.create
        self.canon.interactions.create = lambda body: {**create(body), **fields}  # type: ignore[method-assign]


@pytest.fixture
def world(monkeypatch):
    made = World()
    monkeypatch.setattr(api, "_snapshot", lambda: made.snapshot)
    monkeypatch.setattr(api, "_deps", made.provide)
    return made


# --- the turn -------------------------------------------------------------------------------------------------------


def test_the_current_turn_says_where_the_code_runs(world):
    turn = api_root.current_canon_turn(require_human=True)
    assert turn == api_root.CanonTurnContext("cv", "u_77", "Dana", "s_1", "msg_1")
    world.snapshot = replace(TURN, user_id=None)
    assert api_root.current_canon_turn().user_id is None
    with pytest.raises(RuntimeError):
        api_root.current_canon_turn(require_human=True)


@pytest.mark.parametrize(
    "snapshot", [SessionSnapshot(), replace(TURN, platform="cli"), replace(TURN, conversation_id=None)]
)
def test_outside_a_canon_turn_everything_is_refused(world, snapshot):
    world.snapshot = snapshot
    with pytest.raises(RuntimeError):
        api_root.current_canon_turn()
    with pytest.raises(RuntimeError):
        api_root.current_canon_inbound_media()


@pytest.fixture
def captures():
    store = CaptureStore(lambda: 0.0)
    unused: Any = None
    adapter = LiveAdapter(unused, unused, store, unused, unused, unused)
    LIVE.add(adapter)
    yield store
    LIVE.remove(adapter)


def test_inbound_media_is_the_current_messages_alone(world, captures):
    captures.register("cv", "msg_1", [Capture(0, b"abc", "image/png", "a.png")])
    captures.register("cv", "msg_2", [Capture(0, b"other", "image/png", "b.png")])
    (item,) = api_root.current_canon_inbound_media()
    assert item == api_root.CanonInboundMedia("msg_1", 0, "image/png", "a.png", b"abc")
    assert item.size_bytes == 3
    assert "abc" not in repr(item)
    world.snapshot = replace(TURN, message_id="msg_3")
    assert api_root.current_canon_inbound_media() == ()
    world.snapshot = replace(TURN, message_id=None)
    with pytest.raises(RuntimeError):
        api_root.current_canon_inbound_media()


# --- cards ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("card", [None, [], "x", {}, {"schema": "canon.card.v1"}, PLAIN])
async def test_a_card_to_ask_with_is_an_object_valid_and_has_an_action(world, card):
    world.snapshot = SessionSnapshot()  # the card is judged first
    with pytest.raises(ValueError, match="card"):
        await api_root.request_card_for_current_human(card)
    assert world.opened == 0


async def test_all_faults_of_a_card_are_told(world):
    with pytest.raises(ValueError, match=r"title.*fallbackText|fallbackText.*title"):
        await api_root.request_card_for_current_human({"schema": "canon.card.v1"})


async def test_without_a_human_nobody_is_asked(world):
    world.snapshot = replace(TURN, user_id=None)
    with pytest.raises(RuntimeError):
        await api_root.request_card_for_current_human(CARD)
    assert world.opened == 0


async def test_the_human_answers(world):
    world.answer_at_once("card", {"status": "submitted", "actionId": "release"})
    result = await api_root.request_card_for_current_human(CARD, native={"mine": 1})
    assert (result["status"], result["actionId"], result["respondedBy"]) == ("submitted", "release", "u_77")
    body = next(call.subject for call in world.canon.calls if call.operation == "create_interaction")
    assert (body["responseUserId"], body["native"], body["conversationId"]) == ("u_77", {"mine": 1}, "cv")
    assert world.closed == 1


async def test_d28_wrong_routing_is_noticed_before_waiting_and_taken_back(world):
    world.respond_create(responseUserId="u_other")
    with pytest.raises(RuntimeError):
        await api_root.request_card_for_current_human(CARD)
    assert [call.subject.get("cancel") for call in world.canon.calls if call.operation == "consume_interaction"] == [
        True
    ]


@pytest.mark.parametrize(
    ("answer", "by"), [({"respondedBy": ""}, None), ({"respondedBy": None}, None), ({}, "u_other")]
)
async def test_an_answer_of_nobody_or_somebody_else_is_refused(world, answer, by):
    world.answer_at_once("card", {"status": "submitted", **answer}, by=by)
    with pytest.raises(RuntimeError):
        await api_root.request_card_for_current_human(CARD)


async def test_a_timeout_is_a_result(world):
    result = await api_root.request_card_for_current_human(CARD, timeout_seconds=5)
    assert result["status"] == "timeout"


@pytest.mark.parametrize("card", [None, {}, CARD])
async def test_a_card_to_show_has_no_action(world, card):
    with pytest.raises(ValueError, match="card"):
        await api_root.send_card_to_current_conversation(card)
    assert world.opened == 0


async def test_a_shown_card_names_no_responder_and_waits_for_nobody(world):
    world.snapshot = replace(TURN, user_id=None)
    result = await api_root.send_card_to_current_conversation(PLAIN)
    assert (result["status"], result["cardId"]) == ("displayed", "berth_42")
    (call,) = [call for call in world.canon.calls if call.operation == "create_interaction"]
    assert "responseUserId" not in call.subject


@pytest.mark.parametrize("native", ["text", [1], [], "", 7])
@pytest.mark.parametrize(
    ("show", "card"),
    [(api_root.request_card_for_current_human, CARD), (api_root.send_card_to_current_conversation, PLAIN)],
)
async def test_native_data_is_a_mapping(world, show, card, native):
    with pytest.raises(ValueError, match="native must be a mapping, not"):
        await show(card, native=native)
    assert world.opened == 0


@pytest.mark.parametrize("native", [{"a": object()}, {"a": float("nan")}, {("a", 1): 2}, {"a": {"b": b"x"}}])
async def test_native_data_is_what_json_can_hold(world, native):
    native = {**native, "mine": native}
    with pytest.raises(ValueError, match="native must hold only what JSON can hold"):
        await api_root.request_card_for_current_human(CARD, native=native)
    assert world.opened == 0


@pytest.mark.parametrize("seconds", [None, "soon", float("nan"), -1, True, 10**400, float("inf"), 7.9, "7"])
async def test_odd_times_are_clamped_as_the_documentation_says(world, seconds):
    began = world.clock.now_ms()
    await api_root.request_card_for_current_human(CARD, timeout_seconds=seconds)
    body = next(call.subject for call in world.canon.calls if call.operation == "create_interaction")
    expected = {"7": 7, "7.9": 7, "-1": 5, "True": 5, "inf": 1800, "soon": 300, "nan": 300, "None": 300}
    assert body["expiresAt"] - began == expected.get(str(seconds), 1800) * 1000


@pytest.mark.parametrize("flag", [None, 1, 0, "yes", ""])
def test_a_flag_is_true_or_false(world, flag):
    with pytest.raises(TypeError, match="require_human must be True or False"):
        api_root.current_canon_turn(require_human=flag)


async def test_errors_say_what_to_do_instead(world):
    with pytest.raises(ValueError, match="needs an action: use send_card_to_current_conversation"):
        await api_root.request_card_for_current_human(PLAIN)
    with pytest.raises(ValueError, match="must not have actions: use request_card_for_current_human"):
        await api_root.send_card_to_current_conversation(CARD)
    world.snapshot = SessionSnapshot()
    with pytest.raises(RuntimeError, match=r"inside a Canon turn: call it from a tool handler.*canon_turn fixture"):
        api_root.current_canon_turn()


@pytest.mark.parametrize("name", ASYNC)
def test_who_must_catch_a_refusal_reads_where_its_class_is(name):
    documented = inspect.getdoc(getattr(api_root, name)) or ""
    assert "import it from ``canon_hermes_plugin.ports.errors``" in documented
    assert ("timeout_seconds" in inspect.signature(getattr(api_root, name)).parameters) is ("clamped" in documented)


# --- uploads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "mime", "error"),
    [
        ("text", "a/b", TypeError),
        (bytearray(b"x"), "a/b", TypeError),
        (b"", "a/b", ValueError),
        (b"x", "png", ValueError),
        (b"x" * 10_485_761, "a/b", ValueError),
    ],
    ids=["text", "bytearray", "empty", "type", "large"],
)
async def test_what_cannot_be_uploaded_is_refused_before_the_network(world, data, mime, error):
    with pytest.raises(error):
        await api_root.upload_media_for_current_conversation(data, mime)
    assert world.opened == 0


@pytest.mark.parametrize("mime", [None, 5, b"image/png", ["image/png"], "", "a/b\nc", "a/" + "b" * 254])
async def test_a_mime_type_is_a_short_text_with_a_slash(world, mime):
    with pytest.raises(ValueError, match="mime_type must be text like image/png"):
        await api_root.upload_media_for_current_conversation(b"x", mime)
    assert world.opened == 0


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (5, TypeError),
        (b"a.png", TypeError),
        ("", ValueError),
        (" ", ValueError),
        ("../a.png", ValueError),
        ("C:\\a.png", ValueError),
        ("a\x00.png", ValueError),
        ("a\nb", ValueError),
        ("x" * 256, ValueError),
    ],
)
async def test_a_file_name_is_a_name(world, name, error):
    with pytest.raises(error, match="file_name must be"):
        await api_root.upload_media_for_current_conversation(b"x", "a/b", file_name=name)
    assert world.opened == 0


@pytest.mark.parametrize("name", [None, "x" * 255, "Screenshot 10.10\u202fAM.png", "\u2764\ufe0f\u200d\U0001f525.png"])
async def test_unusual_names_are_names(world, name):
    await api_root.upload_media_for_current_conversation(b"x", "a/b", file_name=name)
    assert world.canon.uploads[0].file_name == name


async def test_an_upload_goes_to_this_conversation(world):
    result = await api_root.upload_media_for_current_conversation(b"x", " Image/PNG ", file_name="a.png")
    assert result["url"]
    (upload,) = world.canon.uploads
    assert (upload.conversation_id, upload.mime_type, upload.file_name) == ("cv", "image/png", "a.png")
    assert world.closed == 1


# --- detached approvals ---------------------------------------------------------------------------------------------


async def test_a_detached_approval_asks_this_human_here(world):
    result = await api_root.request_detached_approval_for_current_human(question="Q?", timeout_seconds=60)
    assert (result["status"], result["conversationId"], result["responseUserId"]) == ("pending", "cv", "u_77")
    world.snapshot = replace(TURN, user_id=None)
    with pytest.raises(RuntimeError):
        await api_root.request_detached_approval_for_current_human(question="Q?")


@pytest.mark.parametrize("argument", ["title", "question"])
@pytest.mark.parametrize("value", [5, b"Q?", ["Q?"], {"Q": 1}])
async def test_what_is_asked_is_text(world, argument, value):
    with pytest.raises(TypeError, match=f"{argument} must be text or None"):
        await api_root.request_detached_approval_for_current_human(**{argument: value})
    assert (world.opened, world.canon.calls) == (0, [])


async def test_options_and_context_of_another_form_are_ignored_as_documented(world):
    odd = {"options": "yes, no", "context": 5, "timeout_seconds": "soon"}
    assert (await api_root.request_detached_approval_for_current_human(question="Q?", **odd))["status"] == "pending"
    body = next(call.subject for call in world.canon.calls if call.operation == "create_interaction")
    assert "details" not in body


async def test_another_responder_makes_it_unusable(world):
    world.respond_create(responseUserId="u_other")
    with pytest.raises(RuntimeError):
        await api_root.request_detached_approval_for_current_human(question="Q?")


async def test_i34_a_check_from_another_conversation_touches_nothing(world):
    asked = await api_root.request_detached_approval_for_current_human(question="Q?")
    before, opened, calls = world.ledger.document, world.opened, len(world.canon.calls)
    world.snapshot = replace(TURN, conversation_id="cv_other")
    with pytest.raises(PermissionError):
        await api_root.check_detached_approval(asked["approvalId"])
    assert (world.ledger.document, world.opened, len(world.canon.calls)) == (before, opened, calls)


async def test_a_check_tells_pending_then_the_decision(world):
    asked = await api_root.request_detached_approval_for_current_human(question="Q?")
    assert (await api_root.check_detached_approval(asked["approvalId"]))["status"] == "pending"
    world.canon.interactions.answer("approval", asked["approvalId"], {"status": "deny"})
    told = await api_root.check_detached_approval(f" {asked['approvalId']} ")
    assert (told["status"], told["decision"]) == ("resolved", "deny")
    json.dumps(told)


async def test_blank_and_unknown_ids(world):
    for nothing in ("  ", None, 7, b"hermes-none"):
        with pytest.raises(ValueError, match="approval_id"):
            await api_root.check_detached_approval(nothing)
    assert (await api_root.check_detached_approval("hermes-none"))["status"] == "unknown"
    assert world.opened == 0
    world.snapshot = SessionSnapshot()
    with pytest.raises(RuntimeError):
        await api_root.check_detached_approval("hermes-none")
