"""One command runs everything: ``nox`` checks and tests on the running Python, ``nox -t ci`` adds the rest.

Sessions install into environments of their own. The running interpreter serves the default sessions, so that a fresh
machine with one Python of the supported range needs nothing else.
"""

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "tests", "gateway"]
nox.options.error_on_missing_interpreters = True

NEWEST_HOST = "hermes-agent>=0.19,<0.20"
OLDEST_HOST = "hermes-agent==0.18.2"
STRICT = ("-C", "editable_mode=strict")  # mypy, pyright and import-linter cannot see the default editable mode
PARALLEL = ("-n", "2", "--dist", "loadfile")


def _install(session: nox.Session, host: str, *extras: str) -> None:
    shutil.rmtree("build", ignore_errors=True)  # strict mode keeps links of deleted files there
    session.install("-e", f".[{','.join(extras)}]", host, *STRICT)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, types and the arrows between the layers."""
    _install(session, NEWEST_HOST, "test", "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-cache")
    session.run("mypy")
    session.run("pyright", "--pythonpath", str(Path(session.bin) / "python"))


@nox.session
def tests(session: nox.Session) -> None:
    """Every test that needs no gateway process."""
    _install(session, NEWEST_HOST, "test")
    session.run("pytest", *PARALLEL, *session.posargs)


@nox.session
def gateway(session: nox.Session) -> None:
    """The real Hermes gateway, newest supported line, as a subprocess."""
    _install(session, NEWEST_HOST, "test")
    session.run("pytest", "-m", "gateway", *PARALLEL, *session.posargs)


@nox.session(tags=["ci"])
def bench(session: nox.Session) -> None:
    """Ratios and counts, each within one run; never in parallel with anything else.

    A ratio counts as missed when three runs miss it: the machines are noisy, a real slow-down is not.
    """
    _install(session, NEWEST_HOST, "test")
    session.run("pytest", "-m", "bench", "-p", "no:randomly", "--reruns", "2", *session.posargs)


@nox.session(python="3.11", tags=["ci"])
def oldest(session: nox.Session) -> None:
    """The oldest supported host on the oldest supported Python, gateway included."""
    _install(session, OLDEST_HOST, "test")
    session.run("pytest", *PARALLEL, *session.posargs)
    session.run("pytest", "-m", "gateway", *PARALLEL, *session.posargs)


@nox.session(python="3.13", tags=["ci"])
def newest(session: nox.Session) -> None:
    """The newest supported Python."""
    _install(session, NEWEST_HOST, "test")
    session.run("pytest", *PARALLEL, *session.posargs)


@nox.session(tags=["ci"])
def example(session: nox.Session) -> None:
    """Install the wheel and the example plugin as a stranger would, and run the example's tests on the kit."""
    session.install("build")
    out = Path(session.create_tmp()) / "dist"
    shutil.rmtree(out, ignore_errors=True)
    session.run("python", "-m", "build", "--wheel", "--outdir", str(out), silent=True)
    elsewhere = Path(session.create_tmp()) / "invoice_plugin"
    shutil.rmtree(elsewhere, ignore_errors=True)
    shutil.copytree("examples/invoice_plugin", elsewhere)
    session.install(str(next(out.glob("*.whl"))), f"{elsewhere}[test]", NEWEST_HOST)
    session.chdir(elsewhere)
    session.run("pytest", *session.posargs)


@nox.session(tags=["ci"])
def wheel(session: nox.Session) -> None:
    """Build the wheel, install it outside the tree, run the suite and the console scripts against it."""
    session.install("build")
    out = Path(session.create_tmp()) / "dist"
    shutil.rmtree(out, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(out), silent=True)
    built = next(out.glob("*.whl"))
    session.install(f"{built}[test]", NEWEST_HOST)
    elsewhere = Path(session.create_tmp()) / "elsewhere"
    shutil.rmtree(elsewhere, ignore_errors=True)
    shutil.copytree("tests", elsewhere / "tests")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(name, elsewhere / name)
    for folder in ("docs", "examples", ".ci"):
        if Path(folder).is_dir():
            shutil.copytree(folder, elsewhere / folder)
    session.chdir(elsewhere)
    session.run("pytest", *PARALLEL, *session.posargs)
    session.run("canon-hermes", "--help", silent=True)
    session.run("canon-hermes-plugin", "--version", silent=True)
    session.run("canon-hermes", "sandbox", "--say", "hello")
