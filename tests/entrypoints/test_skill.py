"""The installed host shows the skill that comes with the package (cards §7)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from canon_hermes_plugin import plugin
from canon_hermes_plugin.domain.cards.teach import SKILL_DESCRIPTION, skill_text

VIEW = "from tools.skills_tool import skill_view; print(skill_view('canon-hermes:rich-cards'))"


def test_the_skill_is_registered_under_its_bare_name_with_an_existing_file():
    calls: list[tuple[str, Path, str]] = []

    class Context:
        def register_skill(self, name: str, path: Path, description: str) -> None:
            calls.append((name, path, description))

        def __getattr__(self, name):
            return lambda *_args, **_kwargs: None

    plugin.register(Context())
    ((name, path, description),) = calls
    assert name == "rich-cards"
    assert path.read_text(encoding="utf-8") == skill_text()
    assert description == SKILL_DESCRIPTION


def test_skill_view_of_the_host_shows_the_skill(tmp_path):
    """A fresh process of the real host, with a throw-away home that enables nothing but this plugin."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("plugins:\n  enabled: [canon-hermes]\n", encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HERMES_", "CANON_"))}
    environment = {**kept, "HERMES_HOME": str(home), "HOME": str(tmp_path), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, "-c", VIEW],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=100,
    )
    shown = json.loads(done.stdout.splitlines()[-1])
    assert shown["success"] is True, shown
    assert shown["name"] == "canon-hermes:rich-cards"
    assert shown["description"] == SKILL_DESCRIPTION
    assert shown["content"].endswith(skill_text())
    assert shown["readiness_status"] == "available"
    assert "prompt injection" not in done.stderr
