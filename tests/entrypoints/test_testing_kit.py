"""The testing kit offers every twin and loads nothing before it is asked for."""

import ast
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from canon_hermes_plugin import testing
from canon_hermes_plugin.infrastructure import memory


@pytest.mark.parametrize("name", dir(testing))
def test_every_offered_name_exists_and_documents_itself(name):
    offered = getattr(testing, name)
    assert offered.__name__ == name
    assert offered.__doc__


def test_what_type_checkers_see_is_what_is_offered():
    tree = ast.parse(Path(testing.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    assert sorted(alias.name for node in block.body for alias in node.names) == dir(testing) == testing.__all__


def test_every_twin_of_a_port_is_offered():
    twins = set()
    for module in pkgutil.iter_modules(memory.__path__):
        loaded = import_module(f"{memory.__name__}.{module.name}")
        own = [
            value for value in vars(loaded).values() if isinstance(value, type) and value.__module__ == loaded.__name__
        ]
        twins |= {twin.__name__ for twin in own if twin.__name__.startswith("Memory")}
    assert twins - {"MemoryLedgerView"} <= set(dir(testing))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Nothing"):
        testing.Nothing  # noqa: B018


def test_importing_the_kit_loads_neither_servers_nor_the_host():
    code = "import sys, canon_hermes_plugin.testing; print({'starlette', 'uvicorn', 'gateway'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
