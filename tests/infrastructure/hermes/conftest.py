"""The stage of the host's side, one for each test."""

from __future__ import annotations

from typing import Any

import pytest

from .stage import Stage, register_platform


@pytest.fixture(scope="session")
def canon_platform() -> None:
    register_platform()


@pytest.fixture
async def stage(canon_platform: None) -> Any:
    made = Stage()
    yield made
    await made.close()
