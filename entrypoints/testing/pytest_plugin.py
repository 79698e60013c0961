"""The fixtures ``canon_hermes``, ``canon`` and ``canon_turn``. Nothing is loaded until a test asks for one.

They are plain fixtures: tests may be functions or coroutines, under any asyncio plugin and mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from canon_hermes_plugin.testing.canon import FakeCanon
    from canon_hermes_plugin.testing.kit import CanonHermes
    from canon_hermes_plugin.testing.turn import CanonTurn


@pytest.fixture
def canon_hermes() -> Iterator[CanonHermes]:
    """The connected plugin: ``canon_hermes.canon``, ``canon_hermes.host``, ``canon_hermes.advance(seconds)``."""
    from canon_hermes_plugin.testing.kit import CanonHermes

    with CanonHermes() as plugin:
        yield plugin


@pytest.fixture
def canon(canon_hermes: CanonHermes) -> FakeCanon:
    """The fake Canon of the connected plugin."""
    return canon_hermes.canon


@pytest.fixture
def canon_turn(canon_hermes: CanonHermes) -> Iterator[CanonTurn]:
    """The test's own code inside a turn that Dana started; call it to start another one."""
    with canon_hermes.turn() as turn:
        yield turn()
