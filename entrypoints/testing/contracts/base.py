"""How a suite gets its subject: a factory per test, and an event loop of the test's own.

It decides what a factory must return, and tells whoever wrote one what it lacks, before a test runs into it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Protocol, TypeVar, get_args

_SUITES = __name__.rpartition(".")[0] + "."


class Driver(Protocol):
    """What a suite drives: the subject, and what a test needs to do around it."""

    async def close(self) -> None:
        """Leave nothing behind."""
        ...


D = TypeVar("D", bound=Driver)
S = TypeVar("S")
P = ParamSpec("P")


class Suite(Generic[S]):
    """A suite whose subclasses say in a method how to make what is tested.

    Attributes:
        maker: the name of that method.
        made: the protocol of what it returns; the argument of the class in brackets by default.
    """

    maker: ClassVar[str] = "factory"
    made: ClassVar[type[Any] | None] = None

    def __init_subclass__(cls) -> None:
        """Refuse a test class that does not say how; let the method say what is wrong with its result."""
        super().__init_subclass__()
        named = [kind for base in vars(cls).get("__orig_bases__", ()) for kind in get_args(base)]
        if "made" not in vars(cls) and named and isinstance(named[0], type):
            cls.made = named[0]
        owner = next((base for base in cls.__mro__ if cls.maker in vars(base)), None)
        if owner is None or owner.__module__.startswith(_SUITES):
            if cls.__name__.startswith("Test"):
                raise TypeError(wanted(cls))
            return
        make = vars(owner)[cls.maker]
        if cls.made is not None and inspect.isfunction(make) and not hasattr(make, "__wrapped__"):
            setattr(cls, cls.maker, _checked(make, cls))


class Contract(Suite[D]):
    """A suite. Subclass it in a test module, name the class ``Test…`` and override :meth:`factory`."""

    def factory(self, tmp_path: Path) -> D:
        """Return a fresh driver; called on the test's event loop, with a directory of the test's own."""
        raise NotImplementedError(wanted(type(self)))


def wanted(suite: type[Suite[Any]]) -> str:
    """Say what a test class must define, in one line."""
    parameters = ", ".join(inspect.signature(getattr(suite, suite.maker)).parameters)
    return f"{suite.__name__} must define {suite.maker}({parameters}), which returns {_called(suite.made)}"


def _called(made: type[Any] | None) -> str:
    return "the subject" if made is None else f"a {made.__name__} ({', '.join(_members(made))})"


def _members(protocol: type[Any]) -> list[str]:
    """Return what a protocol asks for, its own members first."""
    homes = [base for base in protocol.__mro__ if base not in {Protocol, Generic, object}]
    names = [name for base in homes for name in (*inspect.get_annotations(base), *vars(base))]
    return list(dict.fromkeys(name for name in names if not name.startswith("_")))


def _checked(make: Callable[..., object], suite: type[Suite[Any]]) -> Callable[..., object]:
    """Let a factory say what its result lacks."""

    @wraps(make)
    def run(*arguments: object, **options: object) -> object:
        made, name = make(*arguments, **options), f"{suite.__name__}.{suite.maker}"
        if inspect.iscoroutine(made):
            made.close()
            raise TypeError(f"{name} is async and must not be: it returns {_called(suite.made)}")
        missing = [member for member in _members(suite.made or object) if not hasattr(made, member)]
        if missing:
            lacks = f"{type(made).__name__} has no {', '.join(missing)}"
            raise TypeError(f"{name} must return {_called(suite.made)}: {lacks}")
        return made

    return run


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
