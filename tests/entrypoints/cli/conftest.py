"""A throw-away Hermes home and a runner for the command line."""

import os
from unittest import mock

import pytest
from canon_hermes_plugin.cli import main
from click.testing import CliRunner

FOREIGN = ("CANON_", "HERMES_", "GATEWAY_")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty Hermes home; no Canon or Hermes variable of the outer process leaks in."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    with mock.patch.dict(os.environ, environ, clear=True):
        yield _home(tmp_path, monkeypatch)


def _home(tmp_path, monkeypatch):
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
