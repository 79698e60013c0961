"""Every port has a public suite, and every suite is passed by a real adapter and by a twin."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest
from canon_hermes_plugin import ports
from canon_hermes_plugin.testing import contracts
from canon_hermes_plugin.testing.contracts import SUITES

TWINS = ("canon_hermes_plugin.infrastructure.memory.", "canon_hermes_plugin.testing.")
HERE = Path(__file__).parent
BY_NAME = {suite.__name__: suite for suite in SUITES.values()}


def protocols() -> list[type]:
    """Every Protocol that a module of the ports defines."""
    names = [f"{ports.__name__}.{module.name}" for module in pkgutil.iter_modules(ports.__path__)]
    assert "canon_hermes_plugin.ports.interactions" in names
    return [
        item
        for name in names
        for item in vars(importlib.import_module(name)).values()
        if isinstance(item, type) and item.__module__ == name and getattr(item, "_is_protocol", False)
    ]


def declared() -> dict[type, set[type]]:
    """The subjects of each suite, as the test classes beside this file declare them; the conftest checks that."""
    found: dict[type, set[type]] = {}
    for path in HERE.glob("test_*.py"):
        if path.samefile(__file__):
            continue
        module = importlib.import_module(f".{path.stem}", __package__)
        for item in vars(module).values():
            if isinstance(item, type) and item.__name__.startswith("Test"):
                for suite in set(item.__mro__) & set(SUITES.values()):
                    found.setdefault(suite, set()).add(vars(item).get("subject", object))
    return found


@pytest.fixture(scope="module")
def subjects() -> dict[type, set[type]]:
    return declared()


def members(port: type) -> set[str]:
    """The names a port promises."""
    return {
        name for base in port.__mro__ for name in vars(base) if not name.startswith("_") and base.__module__ != "typing"
    }


def test_every_port_has_a_suite() -> None:
    assert set(protocols()) == set(SUITES)


def test_every_public_suite_is_the_suite_of_a_port() -> None:
    public = {
        getattr(contracts, name) for name in contracts.__all__ if name.endswith("Contract") and name != "Contract"
    }
    assert public == set(SUITES.values())


@pytest.mark.parametrize("suite", sorted(BY_NAME))
def test_every_suite_is_passed_by_an_adapter_and_by_a_twin(suite: str, subjects: dict[type, set[type]]) -> None:
    found = subjects[BY_NAME[suite]]
    twins = {subject for subject in found if subject.__module__.startswith(TWINS)}
    assert twins
    assert found - twins


def test_every_subject_has_all_that_its_port_names(subjects: dict[type, set[type]]) -> None:
    for suite, classes in subjects.items():
        own = [port for port in SUITES if SUITES[port] is suite]
        for subject in classes:
            assert any(members(port) <= set(dir(subject)) for port in own), f"{subject} implements none of {own}"


@pytest.mark.parametrize("suite", sorted(BY_NAME))
def test_every_suite_holds_tests_of_its_own(suite: str) -> None:
    assert [name for name in vars(BY_NAME[suite]) if name.startswith("test_")]
