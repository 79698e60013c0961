"""captain-webhook §5 on the real gateway: HTTP with HMAC in, the scripted model behind, a recording platform out."""

import hashlib
import hmac
import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import httpx
import pytest
from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewaySettings
from canon_hermes_plugin.infrastructure.sandbox.model import Gate, ModelRequest, ScriptedModel

pytestmark = pytest.mark.gateway

SECRET = "a-test-secret"
COLLECTOR = """
import json, os
from gateway.config import Platform
from gateway.platforms.base import BasePlatformAdapter, SendResult

class Collector(BasePlatformAdapter):
    gateway_runner = None
    def __init__(self, config):
        super().__init__(config, Platform("collector"))
    async def connect(self, *, is_reconnect=False):
        self._mark_connected()
        return True
    async def disconnect(self):
        self._mark_disconnected()
    async def send(self, chat_id, content, reply_to=None, metadata=None):
        with open(os.path.join(os.environ["HERMES_HOME"], "collected.jsonl"), "a", encoding="utf-8") as out:
            out.write(json.dumps([chat_id, content]) + "\\n")
        return SendResult(success=True, message_id="1")
    async def get_chat_info(self, chat_id):
        return {"name": chat_id, "type": "dm"}

def register(ctx):
    ctx.register_platform(name="collector", label="Collector", adapter_factory=Collector, check_fn=lambda: True)
"""


@dataclass
class Hooked:
    """A gateway with a webhook route, and the deliveries its answers made."""

    gateway: Gateway
    port: int

    def post(self, payload: object, *, delivery: str, secret: str = SECRET) -> httpx.Response:
        body = json.dumps(payload).encode()
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {"X-Request-ID": delivery, "X-Hub-Signature-256": f"sha256={signature}"}
        return httpx.post(f"http://127.0.0.1:{self.port}/webhooks/chat", content=body, headers=headers, timeout=20)

    def answers(self) -> list[tuple[str, str]]:
        path = self.gateway.home / "collected.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [(chat_id, content) for chat_id, content in map(json.loads, lines)]

    def wait_answers(self, wanted: set[tuple[str, str]]) -> None:
        until(lambda: wanted <= set(self.answers()))

    def sessions(self) -> list[tuple[str | None, str | None]]:
        """Start-ordered (session id, end reason) of every webhook session."""
        with sqlite3.connect(f"file:{self.gateway.home / 'state.db'}?mode=ro", uri=True) as db:
            return list(db.execute("SELECT id, end_reason FROM sessions WHERE source = 'webhook' ORDER BY started_at"))


def until(done: Any, timeout: float = 40.0) -> None:
    deadline = time.monotonic() + timeout
    while not done():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def history(request: ModelRequest) -> list[str]:
    """What the model was shown besides the system prompt."""
    return [str(message.get("content")) for message in request.body["messages"] if message["role"] != "system"]


def asked(model: ScriptedModel, text: str) -> list[str]:
    """The history of the (last) request whose newest user text contains ``text``."""
    return history([r for r in model.requests if r.streaming and text in r.user_text][-1])


def start(model: ScriptedModel, root: Path, enabled: list[str], folder: Path | None = None) -> Hooked:
    port = free_port()
    route = {"secret": SECRET, "prompt": "{text}", "deliver": "collector", "deliver_extra": {"chat_id": "{callback}"}}
    config: dict[str, Any] = {
        "plugins": {"enabled": ["collector", *enabled]},
        "platforms": {
            "collector": {"enabled": True},
            "webhook": {"enabled": True, "extra": {"host": "127.0.0.1", "port": port, "routes": {"chat": route}}},
        },
    }
    gateway = Gateway(GatewaySettings({}, model.url, config=config), root=root)
    plugins = gateway.home / "plugins"
    (plugins / "collector").mkdir(parents=True)
    (plugins / "collector" / "plugin.yaml").write_text("name: collector\nkind: platform\n", encoding="utf-8")
    (plugins / "collector" / "__init__.py").write_text(COLLECTOR, encoding="utf-8")
    if folder is not None:
        shutil.copytree(folder, plugins / "copied")
    gateway.start()
    return Hooked(gateway, port)


@pytest.fixture(scope="module")
def hooked(model, tmp_path_factory) -> Iterator[Hooked]:
    running = start(model, tmp_path_factory.mktemp("captain"), ["captain-webhook"])
    yield running
    running.gateway.close()


@pytest.fixture(scope="module")
def built_in(model, tmp_path_factory) -> Iterator[Hooked]:
    running = start(model, tmp_path_factory.mktemp("built-in"), [])
    yield running
    running.gateway.close()


def test_field_91_the_second_request_of_a_conversation_carries_the_first_exchange(hooked, model):
    model.script("red", ["I will remember red."])
    model.script("which colour", ["It was red."])
    assert hooked.post({"conversation_id": "m1", "text": "red", "callback": "m"}, delivery="m1-1").status_code == 202
    hooked.wait_answers({("m", "I will remember red.")})
    hooked.post({"conversation_id": "m1", "text": "which colour", "callback": "m"}, delivery="m1-2")
    hooked.wait_answers({("m", "It was red.")})
    shown = "\n".join(asked(model, "which colour"))
    assert "red" in shown
    assert "I will remember red." in shown
    assert any(reason is None for _, reason in hooked.sessions()), "a lasting session must stay open"


def test_other_conversations_do_not_see_it(hooked, model):
    model.script("secret of m2", ["Noted."])
    model.script("stranger", ["I know nothing."])
    hooked.post({"conversation_id": "m2", "text": "secret of m2", "callback": "n"}, delivery="m2-1")
    hooked.wait_answers({("n", "Noted.")})
    hooked.post({"conversation_id": "m3", "text": "stranger", "callback": "n3"}, delivery="m3-1")
    hooked.wait_answers({("n3", "I know nothing.")})
    assert "secret of m2" not in "\n".join(asked(model, "stranger"))


def test_one_shot_deliveries_behave_as_the_built_in_byte_for_byte(hooked, built_in, model):
    model.script("one shot", ["Shot answered."])
    seen: list[Any] = []
    for side in (hooked, built_in):
        before = len(side.sessions())
        replies = [
            side.post({"text": "one shot 1", "callback": "s"}, delivery="shot-1"),
            side.post({"text": "one shot 1", "callback": "s"}, delivery="shot-1"),
            side.post({"text": "one shot 2", "callback": "s"}, delivery="shot-2"),
            side.post({"text": "one shot"}, delivery="shot-3", secret="wrong"),
        ]
        until(lambda: side.answers().count(("s", "Shot answered.")) == 2)  # noqa: B023 - awaited at once
        until(lambda: [r for _, r in side.sessions()[before:]] == ["webhook_complete"] * 2)  # noqa: B023
        shown = [asked(model, f"one shot {number}") for number in (1, 2)]
        # 0.19 adds a note to the very first message of a home, which only one of the two gets here.
        texts = [[part.split("\n\n[")[0] for part in history] for history in shown]
        seen.append(([(reply.status_code, reply.content) for reply in replies], texts))
    assert seen[0] == seen[1]
    assert [status for status, _ in seen[0][0]] == [202, 200, 202, 401]


def test_concurrent_deliveries_are_answered_at_their_own_callback(hooked, model):
    gate = Gate()
    model.script("first of two", ["Answer", gate, " one."])
    model.script("second of two", ["Answer two."])
    hooked.post({"conversation_id": "c1", "text": "first of two", "callback": "X"}, delivery="c1-1")
    gate.wait_reached()
    hooked.post({"conversation_id": "c1", "text": "second of two", "callback": "Y"}, delivery="c1-2")
    gate.open()
    hooked.wait_answers({("X", "Answer one."), ("Y", "Answer two.")})
    assert [answer for answer in hooked.answers() if answer[0] in {"X", "Y"}] == [
        ("X", "Answer one."),
        ("Y", "Answer two."),
    ]
    assert "Answer one." in "\n".join(asked(model, "second of two"))


def test_memory_survives_a_gateway_restart(hooked, model):
    model.script("before the restart", ["Stored."])
    model.script("after the restart", ["Recalled."])
    hooked.post({"conversation_id": "r1", "text": "before the restart", "callback": "r"}, delivery="r1-1")
    hooked.wait_answers({("r", "Stored.")})
    hooked.gateway.restart()
    hooked.post({"conversation_id": "r1", "text": "after the restart", "callback": "r"}, delivery="r1-2")
    hooked.wait_answers({("r", "Recalled.")})
    assert "Stored." in "\n".join(asked(model, "after the restart"))


def test_the_copied_folder_works_like_the_entry_point(model, tmp_path):
    folder = Path(str(resources.files("canon_hermes_plugin") / "captain_webhook"))
    running = start(model, tmp_path, ["captain-webhook"], folder)
    try:
        model.script("copied one", ["Copied."])
        model.script("copied two", ["Copied again."])
        running.post({"conversation_id": 5, "text": "copied one", "callback": "k"}, delivery="k1")
        running.wait_answers({("k", "Copied.")})
        running.post({"conversation_id": "5", "text": "copied two", "callback": "k"}, delivery="k2")
        running.wait_answers({("k", "Copied again.")})
        assert "Copied." in "\n".join(asked(model, "copied two"))
    finally:
        running.gateway.close()


def test_the_hosts_own_commands_see_and_enable_the_plugin(tmp_path):
    folder = Path(str(resources.files("canon_hermes_plugin") / "captain_webhook"))
    gateway = Gateway(GatewaySettings({}, "http://127.0.0.1:9/v1"), root=tmp_path)
    home = gateway.home
    shutil.copytree(folder, home / "plugins" / "anything")

    def hermes(*words: str) -> str:
        hermes_script = Path(sys.executable).parent / "hermes"
        done = subprocess.run(
            [str(hermes_script), *words],
            env=gateway.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    hermes("plugins", "enable", "captain-webhook", "--no-allow-tool-override")
    listed = json.loads(hermes("plugins", "list", "--json"))
    (row,) = [row for row in listed if row["name"] == "captain-webhook"]
    assert row["status"] == "enabled"


def test_a_copied_folder_without_the_package_says_what_to_install(tmp_path):
    folder = Path(str(resources.files("canon_hermes_plugin") / "captain_webhook"))
    shutil.copytree(folder, tmp_path / "copied")
    code = "import sys; sys.modules['canon_hermes_plugin'] = None; import copied"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.stderr.strip().splitlines()[-1].endswith("pip install canon-hermes-plugin")
