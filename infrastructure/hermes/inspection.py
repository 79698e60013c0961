"""Looks at the installed host without running it: versions, launcher, hooks, borrowed names, the gateway's own note.

The host's sources are read as text. Importing its gateway would take seconds and do things.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from canon_hermes_plugin.domain.doctor.install import InstallFacts, Launcher
from canon_hermes_plugin.domain.host_config import PLATFORM, PLUGIN
from canon_hermes_plugin.infrastructure.hermes.compat import BORROWED
from canon_hermes_plugin.infrastructure.hermes.home import HostHome

DISTRIBUTION = "canon-hermes-plugin"
GROUP = "hermes_agent.plugins"
USED_HOOKS = ("pre_tool_call", "post_tool_call", "post_llm_call", "subagent_stop")
_OWNERS = {"adapter": ("gateway/platforms/base.py",), "runner": ("gateway/run.py", "gateway/authz_mixin.py")}
_HOOKS = re.compile(r"^VALID_HOOKS\b[^\n]*\{(.*?)^\}", re.MULTILINE | re.DOTALL)
_EXEC = re.compile(rb"'''exec' \"?([^\" ]+)\"?")


def install_facts() -> InstallFacts:
    """Look at this environment."""
    launcher, launcher_path = _launcher()
    found = next(iter(entry_points(group=GROUP, name=PLUGIN)), None)
    return InstallFacts(
        plugin_version=_version(DISTRIBUTION),
        checkout=_is_checkout(),
        python=(sys.version_info.major, sys.version_info.minor),
        host_version=_version("hermes-agent"),
        entry_point=None if found is None else found.value,
        launcher=launcher,
        launcher_path=launcher_path,
        hooks_missing=_hooks_missing(),
        internals_missing=_internals_missing(),
    )


def gateway_note(home: HostHome) -> tuple[bool | None, Mapping[str, Any]]:
    """Return whether the profile's gateway runs (``None``: unknown) and what it noted about the Canon platform."""
    document = _object(home.root / "gateway_state.json")
    platforms = document.get("platforms")
    note = cast("Mapping[str, Any]", platforms).get(PLATFORM) if isinstance(platforms, Mapping) else None
    pid = document.get("pid")
    running = _is_alive(pid) if isinstance(pid, int) and pid > 0 else (None if document else False)
    if document.get("gateway_state") in {"stopped", "startup_failed"}:
        running = False
    return running, cast("Mapping[str, Any]", note) if isinstance(note, Mapping) else {}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _is_checkout() -> bool:
    try:
        found: Distribution = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return True
    return '"editable": true' in (found.read_text("direct_url.json") or "").replace('":true', '": true')


def _launcher() -> tuple[Launcher, str]:
    path = shutil.which("hermes")
    if path is None:
        return "absent", ""
    try:
        with Path(path).open("rb") as file:
            head = file.read(4096)
    except OSError:
        return "unreadable", path
    first = head.partition(b"\n")[0]
    if not first.startswith(b"#!"):
        return ("unreadable" if head.startswith(b"MZ") else "not python"), path
    exec_line = _EXEC.search(head)
    words = first[2:].split()
    interpreter = os.fsdecode(exec_line[1] if exec_line else words[-1] if words else b"")
    if "python" not in Path(interpreter).name:
        return "not python", path
    return ("same" if _same_folder(interpreter, sys.executable) else "other"), path


def _same_folder(one: str, other: str) -> bool:
    """Tell whether two programs lie in one folder; their own links, which lead out of it, are not followed."""
    return Path(one).parent.resolve() == Path(other).parent.resolve()


def _hooks_missing() -> tuple[str, ...] | None:
    text = _source("hermes_cli/plugins.py")
    if text is None:
        return None
    if "def register_hook(" not in text:
        return USED_HOOKS
    block = _HOOKS.search(text)
    if block is None:
        return None
    return tuple(name for name in USED_HOOKS if f'"{name}"' not in block[1])


def _internals_missing() -> tuple[tuple[str, str], ...] | None:
    sources = {owner: _joined(paths) for owner, paths in _OWNERS.items()}
    if any(text is None for text in sources.values()):
        return None
    return tuple(
        (item.name, item.effect)
        for item in BORROWED
        if not re.search(rf"(?:def |self\.){re.escape(item.name)}\b", sources.get(item.owner) or "")
    )


def _joined(paths: Iterable[str]) -> str | None:
    texts = [text for text in map(_source, paths) if text is not None]
    return "\n".join(texts) if texts else None


def _source(relative: str) -> str | None:
    """Return the text of a host module, found without importing it."""
    package, _, rest = relative.partition("/")
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        try:
            return (Path(folder) / rest).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    return None


def _object(path: Path) -> Mapping[str, Any]:
    try:
        value: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _is_alive(pid: int) -> bool | None:
    if sys.platform == "win32":
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
