"""The adapter on the host's real base class: what it tells the host, and what it makes of the host's calls."""

from __future__ import annotations

import asyncio
import inspect
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from canon_hermes_plugin.domain.turns.context import current_turn
from canon_hermes_plugin.domain.turns.model import Ack
from canon_hermes_plugin.infrastructure.hermes import compat
from canon_hermes_plugin.infrastructure.hermes.adapter import adapter_class
from canon_hermes_plugin.infrastructure.hermes.config import Access, Settings
from canon_hermes_plugin.ports.errors import CanonError, CanonTransportError
from gateway.platforms.base import BasePlatformAdapter


def last(stage: Any) -> Any:
    return stage.turns.texts[-1][1]


@pytest.mark.parametrize(
    ("metadata", "marks"),
    [
        (None, (False, False, None)),
        ({"expect_edits": True}, (True, False, None)),
        ({"expect_edits": True, "notify": True, "reply_to_message_id": "msg_1"}, (True, True, None)),
        ({"notify": True}, (False, True, None)),
        ({"job_id": "job 7"}, (False, False, "job 7")),
    ],
)
async def test_every_way_the_host_sends_is_recognised(stage: Any, metadata: Any, marks: Any) -> None:
    result = await stage.adapter.send("c1", "text", reply_to="msg_1", metadata=metadata)
    assert result.success
    assert result.message_id
    text = last(stage)
    assert (text.expect_edits, text.notify, text.job_id) == marks
    assert (text.conversation_id, text.content, text.reply_to, text.finalize) == ("c1", "text", "msg_1", None)


async def test_h34_only_the_callers_own_bags_travel(stage: Any) -> None:
    metadata = {"canon_metadata": {"a": 1}, "canon_options": {"b": 2}, "reply_to_message_id": "x", "thread_id": "y"}
    await stage.adapter.send("c1", "text", metadata=metadata)
    assert (last(stage).metadata, last(stage).options) == ({"a": 1}, {"b": 2})
    await stage.adapter.send("c1", "text", metadata={"canon_metadata": "no", "canon_options": ["no"]})
    assert (last(stage).metadata, last(stage).options) == ({}, {})


async def test_edits_come_positionally_and_by_keyword(stage: Any) -> None:
    await stage.adapter.edit_message("c1", "b1", "text")
    assert (last(stage).bubble, last(stage).finalize) == ("b1", False)
    await stage.adapter.edit_message(chat_id="c1", message_id="b1", content="text", finalize=True, metadata={"x": 1})
    assert (last(stage).bubble, last(stage).finalize) == ("b1", True)


@pytest.mark.parametrize(
    ("error", "told", "retryable"),
    [
        (CanonTransportError("away", executed=False), "canon_transport", True),
        (CanonError("no"), "canon", False),
        (ZeroDivisionError("secret text"), "canon_internal", False),
    ],
)
async def test_send_never_raises_and_never_quotes(stage: Any, error: Exception, told: str, retryable: bool) -> None:
    async def broken(turn: Any, text: Any) -> Ack:
        raise error

    stage.turns.text = broken
    result = await stage.adapter.send("c1", "text")
    assert (result.success, result.error, result.retryable) == (False, told, retryable)


async def test_nothing_is_sent_before_the_address_is_proven(stage: Any) -> None:
    stage.adapter.services.runtime.proven = False
    result = await stage.adapter.send("c1", "text")
    assert (result.success, result.retryable, stage.turns.texts) == (False, True, [])


async def test_before_connect_a_send_is_a_retryable_failure(stage: Any) -> None:
    stage.adapter._opened = None
    result = await stage.adapter.send("c1", "text")
    assert (result.success, result.retryable) == (False, True)


async def test_h25_a_call_from_a_foreign_loop_runs_on_the_owning_loop(stage: Any) -> None:
    home = asyncio.get_running_loop()
    stage.adapter._owner = home
    seen: list[Any] = []

    async def text(turn: Any, text: Any) -> Ack:
        seen.append((asyncio.get_running_loop(), text.foreign_loop))
        return Ack(ok=True, message_id="m")

    stage.turns.text = text
    result = await asyncio.to_thread(lambda: asyncio.run(stage.adapter.send("c1", "from a tool")))
    assert (result.success, seen) == (True, [(home, True)])
    await stage.adapter.send("c1", "from the gateway")
    assert seen[1] == (home, False)


async def test_a_call_after_the_owning_loop_closed_fails_without_raising(stage: Any) -> None:
    gone = asyncio.new_event_loop()
    gone.close()
    stage.adapter._owner = gone
    result = await stage.adapter.send("c1", "text")
    assert not result.success


async def test_h39_the_turn_is_found_in_its_lifecycle_and_by_its_threads_but_not_by_commands(stage: Any) -> None:
    found: dict[str, Any] = {}
    started, go_on = asyncio.Event(), asyncio.Event()

    async def handle(event: Any) -> str:
        if event.text == "/status":
            return "status reply"
        found["agent thread"] = await asyncio.to_thread(current_turn.get)
        task = asyncio.create_task(stage.adapter.send("c1", "preview", metadata={"expect_edits": True}))
        await task
        started.set()
        await go_on.wait()
        return "final answer"

    stage.adapter.set_message_handler(handle)
    await stage.say(1)
    await started.wait()
    await stage.say(2, text="/status", kind="command")
    go_on.set()
    while not stage.turns.completed:
        await asyncio.sleep(0.01)
    turns = {text.content: turn for turn, text in stage.turns.texts}
    assert turns["preview"] is turns["final answer"] is found["agent thread"]
    assert turns["preview"].start.message_id == "msg_1"
    assert turns["status reply"] is None


async def test_field_37_a_long_scheduled_text_reaches_the_adapter_whole(stage: Any, tmp_path: Any) -> None:
    """The host's own delivery router cuts at 4,000 characters unless the adapter says that it splits."""
    from gateway import delivery
    from gateway.config import GatewayConfig
    from gateway.delivery import DeliveryRouter

    router = DeliveryRouter(GatewayConfig(), {stage.adapter.platform: stage.adapter})
    target = delivery.DeliveryTarget(platform=stage.adapter.platform, chat_id="c1", is_explicit=True)
    text = "x" * 4100
    await router._deliver_to_platform(target, text, {"job_id": "job_1"})
    assert last(stage).content == text


def test_field_60_every_override_accepts_what_the_installed_base_class_is_called_with() -> None:
    surface = adapter_class()
    for name in (
        *("connect", "disconnect", "send", "edit_message", "send_typing", "stop_typing", "get_chat_info"),
        *("send_image", "send_animation", "send_image_file", "send_voice", "send_video", "send_document"),
        *("on_processing_start", "on_processing_complete", "set_busy_session_handler", "get_pending_message"),
        "streaming_overflow_limit",
    ):
        ours = inspect.signature(getattr(surface, name)).parameters
        theirs = inspect.signature(getattr(BasePlatformAdapter, name)).parameters
        tolerant = any(item.kind is item.VAR_KEYWORD for item in ours.values())
        missing = [key for key, item in theirs.items() if key not in ours and item.kind is not item.VAR_KEYWORD]
        assert tolerant or not missing, f"{name} does not know {missing}"


def test_the_host_can_inject_its_gateway_object_on_both_lines(stage: Any) -> None:
    assert "gateway_runner" in vars(adapter_class().__mro__[1])
    stage.adapter.gateway_runner = "runner"
    assert stage.adapter.gateway_runner == "runner"


def test_length_is_counted_in_bytes_and_overflow_is_out_of_reach(stage: Any) -> None:
    assert stage.adapter.message_len_fn("שלום") == 8
    assert stage.adapter.MAX_MESSAGE_LENGTH == 3900
    assert stage.adapter.streaming_overflow_limit() > 10**12
    assert stage.adapter.splits_long_messages
    assert stage.adapter.REQUIRES_EDIT_FINALIZE


@pytest.mark.parametrize(
    ("access", "upstream"),
    [(Access(), False), (Access(everyone=True), True), (Access(allowed=frozenset({"u"})), True)],
)
def test_authorisation_is_upstream_only_together_with_our_admission(stage: Any, access: Access, upstream: bool) -> None:
    stage.adapter.settings = Settings(access=access)
    assert stage.adapter.authorization_is_upstream is upstream


def test_an_agents_event_passes_the_real_hosts_check_only_when_admission_is_ours(
    stage: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    monkeypatch.setenv("CANON_ALLOW_ALL_USERS", "true")
    from gateway.config import GatewayConfig
    from gateway.run import GatewayRunner

    runner = GatewayRunner(GatewayConfig())
    runner.adapters[stage.adapter.platform] = stage.adapter
    source = stage.adapter.build_source(chat_id="c1", chat_type="group", user_id=None)
    assert runner._is_user_authorized(source) is True
    stage.adapter.settings = Settings(access=Access())
    assert runner._is_user_authorized(source) is False


async def test_field_90_connecting_takes_back_the_marks_of_sessions_that_owe_only_a_delivery(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, str, int]] = []

    def drop(runner: Any, key: str, ended_at: int) -> bool:
        asked.append((runner, key, ended_at))
        return True

    async def unsaid() -> dict[str, int]:
        return {"agent:main:canon:dm:c1": 5, "agent:main:canon:dm:c2": 6}

    monkeypatch.setattr("canon_hermes_plugin.infrastructure.hermes.compat.drop_resume", drop)
    fresh = stage.new_adapter()
    monkeypatch.setattr(fresh.services.turns, "left_unsaid", unsaid, raising=False)
    await fresh._keep_host_from_resuming()
    runner = fresh.gateway_runner
    assert asked == [(runner, "agent:main:canon:dm:c1", 5), (runner, "agent:main:canon:dm:c2", 6)]


async def test_disconnect_is_idempotent_and_safe_before_connect(stage: Any) -> None:
    fresh = stage.new_adapter()
    fresh._opened = None
    await fresh.disconnect()
    await fresh.disconnect()


async def test_a_key_that_another_gateway_uses_connects_nothing(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[str, str]] = []

    def refuse(scope: str, identity: str, metadata: object = None) -> tuple[bool, dict[str, int]]:
        taken.append((scope, identity))
        return False, {"pid": 7}

    monkeypatch.setattr("gateway.status.acquire_scoped_lock", refuse)
    fresh = stage.new_adapter()
    fresh.services.claim = "digest"
    assert await fresh.connect() is False
    assert taken == [("canon", "digest")]
    assert fresh.fatal_error_retryable is True
    assert "PID 7" in fresh.fatal_error_message
    await fresh.disconnect()


async def test_rule_8_a_fatal_error_is_told_from_a_task_that_disconnect_does_not_cancel(stage: Any) -> None:
    done = threading.Event()

    async def handler(adapter: Any) -> None:
        await adapter.disconnect()
        await asyncio.sleep(0.01)
        done.set()

    stage.adapter.set_fatal_error_handler(handler)
    reader = asyncio.create_task(asyncio.sleep(0))
    reader.add_done_callback(lambda _: stage.adapter._gave_up(CanonError("refused")))
    await reader
    for _ in range(100):
        if done.is_set():
            break
        await asyncio.sleep(0.01)
    assert done.is_set()
    assert (stage.adapter.fatal_error_code, stage.adapter.fatal_error_retryable) == ("canon", False)


async def test_typing_failures_stay_inside(stage: Any) -> None:
    async def broken(*_: Any) -> None:
        raise CanonTransportError("away", executed=False)

    stage.turns.typing = broken
    await stage.adapter.send_typing("c1")
    await stage.adapter.stop_typing("c1", metadata={"thread_id": "x"})


async def test_field_85_a_local_file_outside_the_hosts_policy_is_refused(stage: Any) -> None:
    result = await stage.adapter.send_document("c1", "/etc/passwd")
    assert (result.success, result.retryable) == (False, False)
    assert result.error == "the host does not allow this file to be sent"


async def test_files_reach_their_turn_with_name_type_and_caption(stage: Any, tmp_path: Any) -> None:
    taken: list[Any] = []

    async def media(turn: Any, media: Any) -> Ack:
        taken.append(media)
        return Ack(ok=True, message_id="m")

    stage.turns.media = media
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG data")
    assert (await stage.adapter.send_image_file(chat_id="c1", image_path=str(picture), caption="Look")).success
    assert (await stage.adapter.send_document(chat_id="c1", file_path=str(picture), file_name="named.bin")).success
    await stage.adapter.send_multiple_images("c1", [(picture.as_uri(), "alt")])
    assert [(m.method, m.mime_type, m.file_name, m.caption) for m in taken] == [
        ("image", "image/png", "picture.png", "Look"),
        ("file", "image/png", "named.bin", None),
        ("image", "image/png", "picture.png", "alt"),
    ]
    big = tmp_path / "big.bin"
    big.write_bytes(b"x" * (10 * 1024 * 1024 + 1))
    assert not (await stage.adapter.send_document("c1", str(big))).success
    assert not (await stage.adapter.send_document("c1", str(tmp_path / "absent"))).success


async def test_a_resumed_turn_has_no_message_id(stage: Any) -> None:
    """After a restart the host makes up turns with an empty text and no id (hermes-host §17.22)."""
    from gateway.platforms.base import MessageEvent

    source = stage.adapter.build_source(chat_id="c1", chat_type="dm", user_id="user_dana", message_id="msg_old")
    event = MessageEvent(text="", source=source, internal=True)
    start = stage.adapter._start_of(event, "key")
    assert (start.message_id, start.responder, start.kind) == (None, "user_dana", "direct")


async def test_defect_18_an_id_that_canon_never_gave_is_no_message_of_the_turn(stage: Any) -> None:
    from canon_hermes_plugin.infrastructure.hermes import host

    starts = [
        stage.adapter._start_of(host.to_event(stage.adapter, stage.message(1, synthetic=synthetic)), "key")
        for synthetic in (False, True)
    ]
    assert [start.message_id for start in starts] == ["msg_1", None]


def test_a_queue_command_keeps_the_id_of_the_message_it_was_typed_in(stage: Any) -> None:
    from canon_hermes_plugin.infrastructure.hermes import host

    event = SimpleNamespace(metadata={}, raw_message={"message": {"id": "msg_9"}}, message_id="msg_9")
    assert host.canon_message_id(event) == "msg_9"


def test_field_24_the_session_key_is_the_hosts_own(stage: Any) -> None:
    from gateway.session import build_session_key

    event = stage.lanes
    source = stage.adapter.build_source(chat_id="g1", chat_type="group", user_id="u1")
    assert event.key_of(SimpleNamespace(source=source)) == build_session_key(source)
    assert compat.session_is_busy(stage.adapter, build_session_key(source)) is False
