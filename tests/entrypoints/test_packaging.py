"""The package as a stranger meets it: light to import, complete in the wheel, one name for every class."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import entry_points, requires, version
from pathlib import Path

import pytest
from canon_hermes_plugin.infrastructure.sandbox.demos import DEMOS
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "dependency_injector",
    "fastapi",
    "gateway",
    "hermes_cli",
    "httpx",
    "pydantic",
    "rich",
    "ruamel",
    "starlette",
    "tenacity",
    "uvicorn",
}
in_checkout = pytest.mark.skipif(
    not (ROOT / "setup.py").is_file(), reason="needs the source tree, not an installed wheel"
)


def modules_after(code: str) -> set[str]:
    """Top-level names that a fresh interpreter has loaded after running ``code``."""
    report = "print(*{m.split('.')[0] for m in sys.modules}, file=sys.stderr)"
    script = f"import sys\ntry:\n    exec({code!r})\nexcept SystemExit:\n    pass\n{report}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8", check=True)
    return set(done.stderr.split())


def test_importing_the_root_loads_neither_container_nor_host_nor_fastapi() -> None:
    assert modules_after("import canon_hermes_plugin") & (HEAVY | {"click"}) == set()


def test_help_loads_neither_container_nor_host_nor_fastapi() -> None:
    code = "import sys; sys.argv = ['canon-hermes', '--help']; from canon_hermes_plugin.cli import main; main()"
    loaded = modules_after(code)
    assert "click" in loaded
    assert loaded & HEAVY == set()


def test_register_loads_neither_container_nor_fastapi() -> None:
    code = (
        "class Ctx:\n"
        "    def __getattr__(self, name): return lambda *a, **k: None\n"
        "from canon_hermes_plugin import plugin\n"
        "plugin.register(Ctx())"
    )
    assert modules_after(code) & {"dependency_injector", "fastapi", "httpx"} == set()


def test_field_58_the_host_finds_the_plugin_through_its_entry_point() -> None:
    (point,) = entry_points(group="hermes_agent.plugins", name="canon-hermes")
    assert callable(point.load().register)


def test_field_59_every_data_file_is_in_the_installed_package() -> None:
    """The tree's data files, mapped to their place in the package, are what an installation holds."""
    from canon_hermes_plugin import __file__ as here

    package = Path(here).parent
    assert (package / "py.typed").is_file()
    if (ROOT / "entrypoints").is_dir():
        wanted = {
            path.relative_to(ROOT / "entrypoints")
            for path in (ROOT / "entrypoints").rglob("*")
            if path.is_file() and path.suffix in {".json", ".yaml", ".md", ".typed"} and "__pycache__" not in path.parts
        }
        missing = {path for path in wanted if not (package / path).is_file()}
        assert missing == set()


@in_checkout
def test_field_59_the_wheel_holds_every_module_and_data_file(tmp_path: Path) -> None:
    junk = shutil.ignore_patterns(".git", ".nox", ".venv*", "build", "*.egg-info", "__pycache__")
    source = shutil.copytree(ROOT, tmp_path / "source", ignore=junk)
    subprocess.run([sys.executable, "-m", "build", "-w", "-o", tmp_path, source], check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        held = set(wheel.namelist())
    layers = {"entrypoints": "", "domain": "domain/", "ports": "ports/", "infrastructure": "infrastructure/"}
    wanted = {
        f"canon_hermes_plugin/{prefix}{path.relative_to(ROOT / folder).as_posix()}"
        for folder, prefix in layers.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix in {".py", ".json", ".yaml", ".md", ".typed", ".html", ".css", ".js"}
    }
    assert wanted - held == set()


def test_our_ranges_contain_the_installed_hosts_exact_pins() -> None:
    """A host pin outside our range would make the two uninstallable side by side."""
    pins = {
        req.name.lower(): spec.version
        for req in map(Requirement, requires("hermes-agent") or [])
        if req.marker is None or req.marker.evaluate({"extra": ""})
        for spec in req.specifier
        if spec.operator == "=="
    }
    ours = [Requirement(line) for line in requires("canon-hermes-plugin") or []]
    shared = [req for req in ours if req.name.lower() in pins]
    assert {"httpx", "rich", "tenacity"} <= {req.name.lower() for req in shared}
    assert [req for req in shared if not req.specifier.contains(pins[req.name.lower()])] == []


def test_the_package_says_its_version() -> None:
    assert version("canon-hermes-plugin") == "0.12.1"


@in_checkout
def test_no_module_uses_the_bare_folder_names() -> None:
    bare = re.compile(r"^\s*(?:from|import)\s+(?:domain|ports|infrastructure|entrypoints)\b", re.MULTILINE)
    guilty = [
        path.relative_to(ROOT).as_posix()
        for folder in ("domain", "ports", "infrastructure", "entrypoints", "tests")
        for path in (ROOT / folder).rglob("*.py")
        if bare.search(path.read_text(encoding="utf-8"))
    ]
    assert guilty == []


@in_checkout
@pytest.mark.parametrize("page", ["README.md", "docs/sandbox.md"])
def test_the_pages_for_newcomers_name_every_demonstration(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [demo.name for demo in DEMOS if f"`demo {demo.name}`" not in text] == []


@in_checkout
def test_ci_runs_the_readmes_test_line() -> None:
    commands = re.findall(r"^    (python -m .*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == 2, "the README holds exactly two commands"
    assert commands[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


@in_checkout
def test_the_example_plugin_asks_for_this_version_and_for_no_other_minor() -> None:
    example = tomllib.loads((ROOT / "examples/invoice_plugin/pyproject.toml").read_text(encoding="utf-8"))
    (needed,) = map(Requirement, example["project"]["dependencies"])
    major, minor = map(int, version("canon-hermes-plugin").split(".")[:2])
    assert needed.specifier.contains(version("canon-hermes-plugin"))
    assert not needed.specifier.contains(f"{major}.{minor + 1}.0")
