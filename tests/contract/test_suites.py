"""A suite tells whoever subclasses it what its factory lacks, in one line and before a test runs into it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from canon_hermes_plugin.testing import MemoryCheckpoints, MemoryOutbox, MemoryProfileStore
from canon_hermes_plugin.testing.contracts import (
    SUITES,
    CanonStreamContract,
    CheckpointStoreContract,
    ClockContract,
    Contract,
    OutboxContract,
    ProfileStoreContract,
)

DRIVER = r"a CheckpointDriver \(store, restart, fill_up, close\)"


class Whole:
    def __init__(self):
        self.store = MemoryCheckpoints()

    def restart(self):
        return self.store

    def fill_up(self):
        self.store.full = True

    async def close(self):
        pass


def made_by(suite, factory, *arguments):
    """What the suite gets from a factory."""
    return type("TestMine", (suite,), {"factory": factory})().factory(*arguments)


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        (CheckpointStoreContract, rf"^TestMine must define factory\(self, tmp_path\), which returns {DRIVER}$"),
        (
            ProfileStoreContract,
            r"^TestMine must define factory\(self, tmp_path, profiles, bootstrap\), which returns a Pro.* \(location",
        ),
        (ClockContract, r"^TestMine must define factory\(self\), which returns a Clock \(now_ms, monotonic, sleep\)$"),
        (
            CanonStreamContract,
            r"^TestMine must define driver\(self\), which returns a CanonStreamDriver \(stream, emit, refuse\)$",
        ),
    ],
)
def test_a_test_class_without_a_factory_is_told_what_to_write(suite, message):
    with pytest.raises(TypeError, match=message):
        type("TestMine", (suite,), {})


@pytest.mark.parametrize("suite", sorted(set(SUITES.values()), key=lambda suite: suite.__name__))
def test_every_suite_says_what_its_factory_returns(suite):
    assert suite.made is not None
    with pytest.raises(
        TypeError, match=rf"^TestMine must define \w+\(self.*\), which returns a {suite.made.__name__} \("
    ):
        type("TestMine", (suite,), {})
    nameless = type("Mine", (suite,), {})()  # another name of test class, which pytest may be told to collect
    arguments = [] if suite.__module__.endswith((".time", ".canon_stream")) else ["here"]
    with pytest.raises(NotImplementedError, match="Mine must define"):
        getattr(nameless, suite.maker)(*arguments)


@pytest.mark.parametrize(
    ("made", "lacks"),
    [(MemoryCheckpoints, "MemoryCheckpoints has no store, restart, fill_up"), (lambda: None, "NoneType")],
)
def test_a_factory_that_returns_something_else_is_told_what_it_lacks(made, lacks):
    with pytest.raises(TypeError, match=rf"^TestMine.factory must return {DRIVER}: {lacks}"):
        made_by(CheckpointStoreContract, lambda _self, _place: made(), "here")


def test_a_factory_of_one_object_is_told_what_it_lacks():
    with pytest.raises(
        TypeError, match=r"must return a ProfileStore \(location, load, save\): MemoryOutbox has no loc"
    ):
        made_by(ProfileStoreContract, lambda _self, _place: MemoryOutbox(), "here")


@pytest.mark.filterwarnings("error")
def test_a_factory_is_not_async():
    async def factory(_self, _place):
        return Whole()

    with pytest.raises(TypeError, match=rf"^TestMine.factory is async and must not be: it returns {DRIVER}$"):
        made_by(CheckpointStoreContract, factory, "here")


def test_a_factory_may_come_from_a_mixin_and_call_the_one_above():
    class Mixin:
        def factory(self, tmp_path):
            return MemoryCheckpoints()

    class TestMixed(Mixin, CheckpointStoreContract):
        pass

    class TestRight(TestMixed):
        def factory(self, tmp_path):
            with pytest.raises(TypeError, match="MemoryCheckpoints has no"):
                super().factory(tmp_path)
            return Whole()

    with pytest.raises(TypeError, match="MemoryCheckpoints has no"):
        TestMixed().factory("here")
    assert isinstance(TestRight().factory("here"), Whole)


def test_a_suite_of_ones_own_asks_for_its_own_driver():
    class Own(Contract[Whole]):
        pass

    with pytest.raises(TypeError, match=r"returns a Whole \(restart, fill_up, close\)"):
        type("TestMine", (Own,), {})


STRANGER = """
from canon_hermes_plugin.testing.contracts import CheckpointStoreContract

class TestMine(CheckpointStoreContract):
    pass
"""


def test_pytest_tells_a_missing_factory_once(tmp_path):
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_stranger.py").write_text(STRANGER, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    environ = {name: value for name, value in os.environ.items() if name != "CI"}  # there the summary repeats it whole
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environ, check=False, encoding="utf-8"
    )
    assert done.stdout.count("must define factory(self, tmp_path), which returns a CheckpointDriver") == 1
    assert "1 error" in done.stdout


def test_without_pytest_the_suites_say_what_is_missing():
    code = "import sys; sys.modules['pytest'] = None; import canon_hermes_plugin.testing.contracts"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, encoding="utf-8")
    wanted = "ImportError: the suites of the ports need pytest, which is not installed: install it, or"
    assert wanted in done.stderr.splitlines()[-1]


class _Careless(MemoryOutbox):
    """Keeps everything."""

    async def keep(self, entry):
        if entry.messages and entry.messages[0].message_id:
            await super().keep(entry)


class _Rig:
    def __init__(self):
        self.store = _Careless()

    def reopened(self):
        return self.store

    def other_agent(self):
        return None

    def damage(self, operation_id, keep_bytes):
        pass

    def stored(self, operation_id):
        return None

    async def close(self):
        pass


def test_an_outbox_that_keeps_what_it_must_refuse_is_told_which_input(tmp_path):
    mine = type("TestMine", (OutboxContract,), {"factory": lambda _self, _place: _Rig()})()
    with pytest.raises(
        pytest.fail.Exception, match=r"keep\(\) took a message without an id; it must raise OutboxError"
    ):
        mine.test_what_cannot_be_stored_is_refused_and_stores_nothing(tmp_path)


@pytest.mark.parametrize("bad", ["5", '{" ": {}}'])
def test_a_profile_store_that_takes_a_malformed_bootstrap_is_told_which(tmp_path, bad):
    mine = type("TestMine", (ProfileStoreContract,), {"factory": lambda _self, _place, **_: MemoryProfileStore()})()
    with pytest.raises(pytest.fail.Exception, match="took the bootstrap"):
        mine.test_a_malformed_bootstrap_is_refused_without_quoting_it(tmp_path, bad)
