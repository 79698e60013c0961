"""A throw-away Hermes home and a runner for the command line."""

import os

import pytest
from canon_hermes_plugin.cli import main
from click.testing import CliRunner


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty Hermes home; no Canon or Hermes variable of the outer process leaks in."""
    for name in list(os.environ):
        if name.startswith(("CANON_", "HERMES_", "GATEWAY_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    monkeypatch.setenv("CANON_HOME", str(tmp_path / "canon"))
    (tmp_path / "hermes").mkdir()
    return tmp_path / "hermes"


@pytest.fixture
def cli(home):
    """Run one command and return its result."""

    def run(*arguments, **options):
        return CliRunner().invoke(main, list(arguments), catch_exceptions=False, **options)

    return run
