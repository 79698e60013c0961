"""captain-webhook on the installed host's own adapter, over real HTTP with HMAC; only the agent is scripted.

What needs the agent's memory runs against the whole gateway in ``tests/gateway/test_captain_webhook.py``.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from canon_hermes_plugin.infrastructure.hermes import compat_webhook, webhook

SECRET = "a-test-secret"


@dataclass
class Recorder:
    """Stands where a chat platform's adapter would: remembers what was delivered where."""

    sent: list[tuple[str, str]] = field(default_factory=list)

    async def send(self, chat_id: str, content: str, **_: Any) -> Any:
        from gateway.platforms.base import SendResult

        self.sent.append((chat_id, content))
        return SendResult(success=True, message_id=str(len(self.sent)))


@dataclass
class Bench:
    """A running adapter, the answers it delivered, and the runs it started."""

    adapter: Any
    url: str
    target: Recorder
    runs: list[Any] = field(default_factory=list)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)

    async def post(
        self, payload: object, *, delivery: str, secret: str = SECRET, route: str = "chat"
    ) -> httpx.Response:
        body = json.dumps(payload).encode()
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "X-Request-ID": delivery,
            "X-Hub-Signature-256": f"sha256={signature}",
            "Content-Type": "application/json",
        }
        async with httpx.AsyncClient() as client:
            return await client.post(f"{self.url}/webhooks/{route}", content=body, headers=headers)

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not done():
                await asyncio.sleep(0.01)

    def texts(self) -> list[str]:
        return [event.text for event in self.runs]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(params=["captain", "built-in"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def started(kind: str, monkeypatch: pytest.MonkeyPatch, home: Path) -> Bench:
    from gateway.config import Platform, PlatformConfig

    monkeypatch.setenv("HERMES_HOME", str(home))
    port = free_port()
    route = {
        "secret": SECRET,
        "prompt": "{text}",
        "deliver": "telegram",
        "deliver_extra": {"chat_id": "{callback}"},
    }
    extra = {"host": "127.0.0.1", "port": port, "routes": {"chat": route, "other": route}}
    config = PlatformConfig(enabled=True, extra=extra)
    adapter = (
        webhook.build_captain_webhook_adapter(config)
        if kind == "captain"
        else compat_webhook.webhook_adapter_class()(config)
    )
    bench = Bench(adapter, f"http://127.0.0.1:{port}", Recorder())
    adapter.gateway_runner = SimpleNamespace(adapters={Platform.TELEGRAM: bench.target})

    async def agent(event: Any) -> str:
        bench.runs.append(event)
        gate = bench.gates.get(event.text)
        if gate is not None:
            await gate.wait()
        return f"re: {event.text}"

    async def host_busy(event: Any, session_key: str) -> bool:
        del event, session_key
        return False

    adapter.set_message_handler(agent)
    adapter.set_busy_session_handler(host_busy)
    assert await adapter.connect()
    return bench


@pytest.fixture
async def captain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await started("captain", monkeypatch, tmp_path)
    yield bench
    await bench.adapter.cancel_background_tasks()
    await bench.adapter.disconnect()


@pytest.fixture
async def either(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await started(kind, monkeypatch, tmp_path)
    yield bench
    await bench.adapter.cancel_background_tasks()
    await bench.adapter.disconnect()


def test_the_installed_host_has_everything_we_borrow() -> None:
    assert compat_webhook.missing() == []


def test_a_missing_host_method_is_named_and_nothing_is_registered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from canon_hermes_plugin import captain_webhook

    adapter = compat_webhook.webhook_adapter_class()
    registered: list[str] = []
    ctx = SimpleNamespace(register_platform=lambda **entry: registered.append(entry["name"]))
    captain_webhook.register(ctx)
    assert registered == ["webhook"]

    async def other_shape(self: Any, happening: object) -> None: ...

    monkeypatch.setattr(adapter, "on_processing_complete", other_shape)
    captain_webhook.register(ctx)
    assert registered == ["webhook"]
    assert "on_processing_complete(event, outcome)" in caplog.text


async def test_two_posts_of_one_conversation_share_a_session(captain: Bench) -> None:
    for number in (1, 2):
        reply = await captain.post({"conversation_id": 7, "text": f"t{number}", "callback": "x"}, delivery=f"d{number}")
        assert reply.status_code == 202
        await captain.until(lambda: len(captain.target.sent) == number)  # noqa: B023 - awaited at once
    assert {event.source.chat_id for event in captain.runs} == {"webhook:chat:session:7"}


async def test_another_conversation_has_another_session(captain: Bench) -> None:
    await captain.post({"conversation_id": "a", "text": "one", "callback": "x"}, delivery="d1")
    await captain.post({"conversation_id": "b", "text": "two", "callback": "x"}, delivery="d2")
    await captain.until(lambda: len(captain.runs) == 2)
    assert len({event.source.chat_id for event in captain.runs}) == 2


async def test_one_shot_deliveries_behave_as_the_built_in(either: Bench) -> None:
    reply = await either.post({"text": "hello", "callback": "x"}, delivery="d1")
    assert reply.json() == {"status": "accepted", "route": "chat", "event": "unknown", "delivery_id": "d1"}
    await either.until(lambda: bool(either.target.sent))
    assert either.target.sent == [("x", "re: hello")]
    assert [event.source.chat_id for event in either.runs] == ["webhook:chat:d1"]
    again = await either.post({"text": "hello", "callback": "x"}, delivery="d1")
    assert (again.status_code, again.json()) == (200, {"status": "duplicate", "delivery_id": "d1"})
    refused = await either.post({"text": "hello"}, delivery="d2", secret="wrong")
    assert refused.status_code == 401


async def test_a_one_shot_that_looks_like_a_conversation_stays_apart_and_is_answered(captain: Bench) -> None:
    await captain.post({"conversation_id": "7", "text": "chat", "callback": "x"}, delivery="d1")
    await captain.post({"text": "shot", "callback": "y"}, delivery="session:7")
    await captain.until(lambda: len(captain.target.sent) == 2)
    assert sorted(captain.target.sent) == [("x", "re: chat"), ("y", "re: shot")]
    assert len({event.source.chat_id for event in captain.runs}) == 2


async def test_each_delivery_is_answered_at_its_own_callback(captain: Bench) -> None:
    captain.gates["A"] = asyncio.Event()
    await captain.post({"conversation_id": "7", "text": "A", "callback": "x"}, delivery="d1")
    await captain.until(lambda: captain.texts() == ["A"])
    await captain.post({"conversation_id": "7", "text": "B", "callback": "y"}, delivery="d2")
    captain.gates["A"].set()
    await captain.until(lambda: len(captain.target.sent) == 2)
    assert captain.target.sent == [("x", "re: A"), ("y", "re: B")]


async def test_field_68_every_waiting_delivery_runs_in_order(captain: Bench) -> None:
    captain.gates["0"] = asyncio.Event()
    for number in range(6):
        await captain.post(
            {"conversation_id": "7", "text": str(number), "callback": f"c{number}"}, delivery=f"d{number}"
        )
    await captain.until(lambda: captain.texts() == ["0"])
    captain.gates["0"].set()
    await captain.until(lambda: len(captain.target.sent) == 6)
    assert captain.target.sent == [(f"c{number}", f"re: {number}") for number in range(6)]


async def test_a_delivery_the_starting_host_hands_in_twice_keeps_its_callback(captain: Bench) -> None:
    """While it restores interrupted sessions, the host completes deliveries unrun and replays them afterwards."""
    held: list[Any] = []
    restoring = True

    async def agent(event: Any) -> str | None:
        if restoring:
            held.append(event)
            return None
        return f"re: {event.text}"

    captain.adapter.set_message_handler(agent)
    await captain.post({"conversation_id": "7", "text": "A", "callback": "x"}, delivery="e1")
    await captain.post({"conversation_id": "7", "text": "B", "callback": "y"}, delivery="e2")
    await captain.post({"text": "C", "callback": "z"}, delivery="session:7")
    await captain.until(lambda: len(held) == 3 and not captain.adapter._active_sessions)
    restoring = False
    chat_ids = {event.source.chat_id for event in held}
    for event in held:
        await captain.adapter.handle_message(event)
    await captain.until(lambda: len(captain.target.sent) == 3)
    assert sorted(captain.target.sent) == [("x", "re: A"), ("y", "re: B"), ("z", "re: C")]
    assert {event.source.chat_id for event in held} == chat_ids


async def test_an_event_of_the_host_itself_stays_in_its_conversation(captain: Bench) -> None:
    """After a restart the host continues an interrupted conversation by an event without a payload."""
    await captain.post({"conversation_id": "7", "text": "A", "callback": "x"}, delivery="d1")
    await captain.until(lambda: len(captain.target.sent) == 1)
    resumed = replace(captain.runs[0], text="go on", internal=True, raw_message=None, message_id=None, metadata={})
    await captain.until(lambda: not captain.adapter._active_sessions)
    await captain.adapter.handle_message(resumed)
    await captain.until(lambda: len(captain.runs) == 2)
    assert captain.runs[1].source.chat_id == "webhook:chat:session:7"
    await captain.until(lambda: captain.target.sent[1:] == [("x", "re: go on")])


async def test_a_full_conversation_says_so_and_keeps_what_waits(
    captain: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(webhook, "MAX_WAITING", 1)
    captain.gates["0"] = asyncio.Event()
    for number in range(3):
        await captain.post(
            {"conversation_id": "7", "text": str(number), "callback": f"c{number}"}, delivery=f"d{number}"
        )
        if number == 0:
            await captain.until(lambda: captain.texts() == ["0"])
    await captain.until(lambda: "dropped" in caplog.text)
    captain.gates["0"].set()
    await captain.until(lambda: len(captain.target.sent) == 2)
    assert captain.texts() == ["0", "1"]


async def test_a_merged_delivery_is_answered_at_the_newest_target_and_the_log_says_so(
    captain: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HERMES_GATEWAY_BUSY_INPUT_MODE", "steer")
    caplog.set_level("INFO", logger="canon_hermes_plugin")
    merged: list[str] = []

    async def host_merges(event: Any, session_key: str) -> bool:
        del session_key
        merged.append(event.text)
        return True

    captain.adapter.set_busy_session_handler(host_merges)
    captain.gates["A"] = asyncio.Event()
    await captain.post({"conversation_id": "7", "text": "A", "callback": "x"}, delivery="d1")
    await captain.until(lambda: captain.texts() == ["A"])
    await captain.post({"conversation_id": "7", "text": "B", "callback": "y"}, delivery="d2")
    await captain.until(lambda: merged == ["B"])
    captain.gates["A"].set()
    await captain.until(lambda: bool(captain.target.sent))
    assert captain.target.sent == [("y", "re: A")]
    assert "the answer goes to the newest target" in caplog.text


async def test_field_94_one_delivery_id_on_two_routes_is_the_hosts_known_limit_and_not_widened(either: Bench) -> None:
    first = await either.post({"text": "one", "callback": "x"}, delivery="same", route="chat")
    second = await either.post({"text": "two", "callback": "x"}, delivery="same", route="other")
    assert (first.json()["status"], second.json()["status"]) == ("accepted", "duplicate")
    third = await either.post({"text": "three", "callback": "x"}, delivery="another", route="other")
    assert third.json()["status"] == "accepted"


async def test_field_95_a_request_id_makes_a_byte_equal_retry_one_delivery(captain: Bench) -> None:
    payload = {"conversation_id": "7", "text": "once", "callback": "x"}
    statuses = [(await captain.post(payload, delivery="r1")).json()["status"] for _ in range(2)]
    assert statuses == ["accepted", "duplicate"]
    again = await captain.post(payload, delivery="r2")
    assert again.json()["status"] == "accepted"
    await captain.until(lambda: len(captain.target.sent) == 2)


async def test_field_93_a_target_pruned_during_a_long_run_is_still_found(captain: Bench) -> None:
    captain.gates["A"] = asyncio.Event()
    await captain.post({"conversation_id": "7", "text": "A", "callback": "x"}, delivery="d1")
    await captain.until(lambda: captain.texts() == ["A"])
    captain.adapter._delivery_info.clear()
    captain.adapter._delivery_info_created.clear()
    captain.gates["A"].set()
    await captain.until(lambda: bool(captain.target.sent))
    assert captain.target.sent == [("x", "re: A")]


async def test_the_interim_notice_does_not_consume_the_target(captain: Bench) -> None:
    captain.gates["A"] = asyncio.Event()
    await captain.post({"conversation_id": "7", "text": "A", "callback": "x"}, delivery="d1")
    await captain.until(lambda: captain.texts() == ["A"])
    await captain.adapter.send("webhook:chat:session:7", "still working")
    captain.gates["A"].set()
    await captain.until(lambda: len(captain.target.sent) == 2)
    assert captain.target.sent == [("x", "still working"), ("x", "re: A")]


async def test_memory_of_idle_conversations_is_bounded(captain: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "MAX_CONVERSATIONS", 3)
    for number in range(8):
        await captain.post({"conversation_id": number, "text": "t", "callback": "x"}, delivery=f"d{number}")
        await captain.until(lambda: len(captain.target.sent) == number + 1)  # noqa: B023 - awaited at once
    await captain.until(lambda: not any(c.targets for c in captain.adapter._conversations.values()))
    assert len(captain.adapter._conversations) <= 4


async def test_a_stopped_run_does_not_strand_what_waits(captain: Bench) -> None:
    captain.gates["A"] = asyncio.Event()
    await captain.post({"conversation_id": "7", "text": "A", "callback": "x"}, delivery="d1")
    await captain.until(lambda: captain.texts() == ["A"])
    await captain.post({"conversation_id": "7", "text": "B", "callback": "y"}, delivery="d2")
    (session_key,) = captain.adapter._active_sessions
    await captain.until(lambda: any(c.waiting for c in captain.adapter._conversations.values()))
    await captain.adapter.cancel_session_processing(session_key)
    await captain.until(lambda: bool(captain.target.sent))
    assert captain.target.sent == [("y", "re: B")]


@pytest.mark.parametrize("payload", [["a list"], "text", 3, None])
async def test_a_payload_that_is_not_an_object_is_left_to_the_built_in(either: Bench, payload: object) -> None:
    reply = await either.post(payload, delivery="d1")
    assert reply.status_code in {202, 400, 500}
    assert not any("session" in event.source.chat_id for event in either.runs)


async def test_unusable_fields_are_logged_by_name_and_type_only(
    captain: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="canon_hermes_plugin")
    await captain.post({"conversation_id": ["hidden"], "text": "t", "callback": "x"}, delivery="d1")
    await captain.until(lambda: bool(captain.target.sent))
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("canon_hermes_plugin")]
    assert any("conversation_id" in line and "list" in line for line in ours)
    assert not any("hidden" in line for line in ours)
