"""How a suite gets its subject: a factory per test, and an event loop of the test's own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar


class Driver(Protocol):
    """What a suite drives: the subject, and what a test needs to do around it."""

    async def close(self) -> None:
        """Leave nothing behind."""
        ...


D = TypeVar("D", bound=Driver)
S = TypeVar("S")
P = ParamSpec("P")


class Contract(Generic[D]):
    """A suite. Subclass it in a test module, name the class ``Test…`` and override :meth:`factory`."""

    def factory(self, tmp_path: Path) -> D:
        """Return a fresh driver; called on the test's event loop, with a directory of the test's own."""
        raise NotImplementedError


def on_a_loop(test: Callable[Concatenate[Any, D, P], Awaitable[None]]) -> Callable[..., None]:
    """Turn a coroutine test of a suite into a plain one, so that no asyncio plugin is needed."""

    @wraps(test)
    def run(self: Contract[D], tmp_path: Path, *arguments: P.args, **parameters: P.kwargs) -> None:
        async def whole() -> None:
            driver = self.factory(tmp_path)
            try:
                await test(self, driver, *arguments, **parameters)
            finally:
                await driver.close()

        asyncio.run(whole())

    own, _, *others = inspect.signature(test).parameters.values()
    place = inspect.Parameter("tmp_path", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    vars(run)["__signature__"] = inspect.Signature([own, place, *others])
    del vars(run)["__wrapped__"]
    return run
