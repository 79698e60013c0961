"""A throw-away Hermes home and the installed real gateway on it (hermes-host §13).

Decides: what the home contains, when the gateway counts as ready, how it is stopped. It leaves no child process and,
unless asked to keep them, no files. Knows Canon only as a set of environment variables.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import urlsplit

from canon_hermes_plugin.infrastructure.sandbox.guard import Guard

PLUGIN = "canon-hermes"
PLATFORM = "canon"
MODEL_KEY_VARIABLE = "CANON_SANDBOX_MODEL_KEY"
READY_LINE = "Press Ctrl+C to stop"
START_LIMIT = 90.0
"""Seconds a gateway may take to be ready: the first start on a cold file cache can take 20."""
STOP_LIMIT = 15.0
_POLL = 0.05
_REASON_CHARS = 500
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|BOOTSTRAP")
_COMPLAINT = re.compile(r"\b(ERROR|CRITICAL)\b|^\w*(Error|Exit|Exception)\b: ")
_INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_NOWHERE = "http://127.0.0.1:9"

ConfigTree = dict[str, Any]


class GatewayError(RuntimeError):
    """The gateway did not start, or stopped on its own. ``log`` is the end of what it wrote."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What a gateway runs with.

    Attributes:
        canon: environment variables that point the plugin at a Canon (``LoopbackCanon.environment()``).
        model_url: base URL of an OpenAI-compatible endpoint.
        model_name: the model's name there.
        model_key: its key; travels in the environment, never in a file.
        streaming: whether the host streams answers.
        home_channel: the conversation for messages without a destination; also silences a notice of the host.
        config: merged deeply over the home's ``config.yaml``.
        env: merged over the environment; an empty value removes a variable.
    """

    canon: Mapping[str, str]
    model_url: str
    model_name: str = "scripted-model"
    model_key: str = field(default="sk-loopback", repr=False)
    streaming: bool = True
    home_channel: str = "conv_direct"
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    env: Mapping[str, str] = field(default_factory=dict[str, str])


class Gateway:
    """One gateway on its own home. Use it as a context manager, or call :meth:`start` and :meth:`close`.

    Args:
        settings: what it runs with.
        root: the directory for its home; a temporary one when absent. It survives :meth:`restart`.
        keep: leave the directory behind on :meth:`close`.
    """

    def __init__(self, settings: GatewaySettings, *, root: Path | None = None, keep: bool = False) -> None:
        self.settings = settings
        self.root = Path(tempfile.mkdtemp(prefix="canon-hermes-")) if root is None else root
        self.keep = keep
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @property
    def home(self) -> Path:
        """The Hermes home."""
        return self.root / "hermes"

    @property
    def canon_home(self) -> Path:
        """The plugin's own directory (``CANON_HOME``)."""
        return self.root / "canon"

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id.

        Raises:
            GatewayError: it does not run.
        """
        if self._process is None or self._process.poll() is not None:
            raise GatewayError("the gateway does not run", self.log())
        return self._process.pid

    def start(self, *, timeout: float = START_LIMIT) -> None:
        """Write the home, start the gateway and wait until it says that it is ready.

        Raises:
            GatewayError: it ended or did not get ready in ``timeout`` seconds.
        """
        self._prepare()
        ready_before = self._ready_lines()
        with (self.root / "console.log").open("ab") as console:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter's gateway
                _command(),
                cwd=self.root,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._guard = Guard(self._process.pid, None if self.keep else self.root)
        deadline = time.monotonic() + timeout
        while self._ready_lines() <= ready_before:
            if not self.running:
                raise GatewayError(self._end(self._process.returncode), self.log())
            if time.monotonic() > deadline:
                self.kill()
                raise GatewayError(f"the gateway was not ready within {timeout:g} s", self.log())
            time.sleep(_POLL)

    def stop(self) -> int | None:
        """Ask it to stop, kill it after 15 s; return the exit code (``None`` when it did not run)."""
        if self._process is None:
            return None
        if self.running:
            _interrupt(self._process)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_LIMIT)
        return self.kill()

    def kill(self) -> int | None:
        """Kill it and whatever it started, at once; return the exit code."""
        if self._process is None:
            return None
        if self._guard is not None:
            self._guard.release()
            self._guard = None
        _kill_group(self._process)
        return self._process.wait(STOP_LIMIT)

    def restart(self, settings: GatewaySettings | None = None) -> None:
        """Stop it and start it again on the same home."""
        self.stop()
        self.settings = settings or self.settings
        self.start()

    def close(self) -> None:
        """Stop it and remove its files unless they are to be kept; idempotent."""
        self.stop()
        self._process = None
        if not self.keep:
            shutil.rmtree(self.root, ignore_errors=True)

    def log(self, lines: int = 40) -> str:
        """Return the end of what the gateway wrote: its log when there is one, else its console."""
        parts: list[str] = []
        for name in (self.home / "logs" / "gateway.log", self.root / "console.log"):
            text = _read(name)
            if text.strip():
                parts.append(f"--- {name.name}\n" + "\n".join(text.splitlines()[-lines:]))
        return "\n".join(parts) or "(no output)"

    def full_log(self) -> str:
        """Return everything the gateway wrote to its log files and console."""
        names = [*sorted((self.home / "logs").glob("*.log")), self.root / "console.log"]
        return "\n".join(_read(name) for name in names)

    def environment(self) -> dict[str, str]:
        """Return the whole environment of the child: nothing of the caller's but the bare necessities."""
        loopback_model = _is_loopback(self.settings.model_url)
        inherited = {name: os.environ[name] for name in (*_INHERITED, *_PROXIES) if name in os.environ}
        if loopback_model:  # nothing outside this machine is needed, so nothing outside is reached
            inherited |= dict.fromkeys(_PROXIES, _NOWHERE)
        own = {
            "HOME": str(self.root / "user"),
            "HERMES_HOME": str(self.home),
            "CANON_HOME": str(self.canon_home),
            "CANON_ALLOW_ALL_USERS": "true",
            "CANON_HOME_CHANNEL": self.settings.home_channel,
            MODEL_KEY_VARIABLE: self.settings.model_key,
            "NO_PROXY": "127.0.0.1,localhost,::1",
            "no_proxy": "127.0.0.1,localhost,::1",
            "PYTHONUNBUFFERED": "1",
        }
        merged = {**inherited, **own, **self.settings.canon, **self.settings.env}
        return {name: value for name, value in merged.items() if value}

    def _prepare(self) -> None:
        for directory in (self.home, self.canon_home, self.root / "user"):
            directory.mkdir(parents=True, exist_ok=True)
        # JSON is YAML, and the host rewrites the file in its own way.
        config = json.dumps(_config(self.settings), indent=2)
        (self.home / "config.yaml").write_text(config, encoding="utf-8")

    def _end(self, code: int) -> str:
        """Return why it ended, as far as its output tells: the plugin's own words first, else the newest complaint."""
        complaints = [line for line in self.full_log().splitlines() if _COMPLAINT.search(line)]
        told = [line for line in complaints if "canon_hermes_plugin" in line] or complaints
        reason = told[-1].strip() if told else ""
        for name, value in self.environment().items():
            reason = reason.replace(value, "***") if _SECRET.search(name) else reason
        return f"the gateway ended with exit code {code}" + (f": {reason[:_REASON_CHARS]}" if reason else "")

    def _ready_lines(self) -> int:
        return _read(self.home / "logs" / "gateway.log").count(READY_LINE)


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in {"127.0.0.1", "localhost", "::1"}


def _config(settings: GatewaySettings) -> ConfigTree:
    base: ConfigTree = {
        "model": {
            "default": settings.model_name,
            "provider": "custom",
            "base_url": settings.model_url,
            "api_key": f"${{{MODEL_KEY_VARIABLE}}}",
            "context_length": 200_000,
        },
        "plugins": {"enabled": [PLUGIN]},
        "platforms": {PLATFORM: {"enabled": True, "gateway_restart_notification": False}},
        "streaming": {"enabled": settings.streaming},
        "onboarding": {"profile_build": "off"},
        # Neither packages nor helper programs are fetched behind the user's back. A Canon on this machine hosts its
        # files here, at an address the host refuses unless it is told otherwise.
        "security": {
            "allow_lazy_installs": False,
            "tirith_enabled": False,
            "allow_private_urls": _is_loopback(settings.canon.get("CANON_BASE_URL", "")),
        },
        "approvals": {"mode": "manual"},
        "display": {
            "platforms": {
                PLATFORM: {
                    "tool_progress": "off",
                    "interim_assistant_messages": False,
                    "long_running_notifications": False,
                    "busy_ack_detail": False,
                }
            }
        },
    }
    return _merged(base, settings.config)


def _merged(base: ConfigTree, over: Mapping[str, Any]) -> ConfigTree:
    result = dict(base)
    for key, value in over.items():
        known = result.get(key)
        both = isinstance(known, dict) and isinstance(value, Mapping)
        result[key] = _merged(cast("ConfigTree", known), cast("ConfigTree", value)) if both else value
    return result


def _command() -> list[str]:
    script = Path(sys.executable).parent / ("hermes.exe" if os.name == "nt" else "hermes")
    start = [str(script)] if script.exists() else [sys.executable, "-m", "hermes_cli.main"]
    return [*start, "gateway", "run"]


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """Ask for an orderly end: SIGINT gives exit code 0, where there are signals (hermes-host §13.2)."""
    if os.name == "nt":
        process.terminate()
    else:
        process.send_signal(signal.SIGINT)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and what it started. Its session is its own, so nobody else is in the group."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
