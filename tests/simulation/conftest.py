"""What every simulated world needs of the machine."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    """The HTTP client would build a pool for each proxy the environment names."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
