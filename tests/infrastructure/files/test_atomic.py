"""Whole-file replacement (interactions D16, D29; field faults 44, 46, 47)."""

import os
import stat
import subprocess
import sys
import types
from pathlib import Path

import pytest
from canon_hermes_plugin.infrastructure.files import locks
from canon_hermes_plugin.infrastructure.files.atomic import AtomicWriter, clean_strays, strays, write_atomic
from canon_hermes_plugin.infrastructure.files.locks import LockTimeoutError, locked


def sharing_violation(code):
    error = PermissionError(13, "in use")
    error.winerror = code
    return error


def names(directory):
    return sorted(entry.name for entry in directory.iterdir())


class Reader:
    """A rename that fails while a reader holds the file."""

    def __init__(self, code, failures):
        self.code, self.failures, self.calls = code, failures, 0

    def __call__(self, source, target):
        self.calls += 1
        if self.calls <= self.failures:
            raise sharing_violation(self.code)
        Path(source).replace(target)


def test_the_temporary_file_is_private_from_its_creation_whatever_the_umask_d16(tmp_path):
    seen = []

    def watch(source, target):
        seen.append(stat.S_IMODE(Path(source).stat().st_mode))
        Path(source).replace(target)

    before = os.umask(0)
    try:
        AtomicWriter(replace=watch).write(tmp_path / "new" / "f", b"secret")
    finally:
        os.umask(before)
    assert seen == [0o600]
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "new" / "f").stat().st_mode) == 0o600


@pytest.mark.parametrize("code", [5, 32, 33])
def test_field_44_a_reader_that_holds_the_file_is_waited_for(tmp_path, code):
    waits = []
    reader = Reader(code, 3)
    AtomicWriter(replace=reader, sleep=waits.append).write(tmp_path / "f", b"x")
    assert (tmp_path / "f").read_bytes() == b"x"
    assert len(waits) == 3
    assert all(0 < wait <= 0.75 for wait in waits)


def test_field_44_a_reader_that_never_lets_go_is_a_loud_failure_without_leftovers(tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    reader = Reader(32, 10_000)
    with pytest.raises(PermissionError):
        AtomicWriter(replace=reader, sleep=lambda _: None).write(tmp_path / "f", b"x")
    assert reader.calls == AtomicWriter().attempts
    assert names(tmp_path) == ["f"]
    assert (tmp_path / "f").read_bytes() == b"old"


def test_another_failure_is_not_retried_and_leaves_nothing(tmp_path):
    reader = Reader(112, 10_000)
    with pytest.raises(PermissionError):
        AtomicWriter(replace=reader).write(tmp_path / "f", b"x")
    assert reader.calls == 1
    assert names(tmp_path) == []


def test_a_symbolic_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_wider_mode_is_given_only_when_asked(tmp_path):
    write_atomic(tmp_path / "f", b"", mode=0o644)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o644


def test_strays_of_a_killed_writer_are_removed_once_old_d29(tmp_path):
    path = tmp_path / "agents.json"
    old, young, other = tmp_path / ".agents.json.1.tmp", tmp_path / ".agents.json.2.ab.tmp", tmp_path / ".b.json.1.tmp"
    for file in (old, young, other):
        file.write_bytes(b"")
    os.utime(old, (1, 1))
    assert strays(path) == [old, young]
    assert clean_strays(path) == [old]
    assert names(tmp_path) == [young.name, other.name]


def test_a_lock_excludes_another_process_and_its_file_stays(tmp_path):
    lock = tmp_path / "f.lock"
    code = (
        "import fcntl, os, sys\n"
        f"fd = os.open({str(lock)!r}, os.O_RDWR)\n"
        "try: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except BlockingIOError: sys.exit(7)\n"
    )
    with locked(lock):
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 7
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600


def test_a_lock_held_too_long_is_an_error(tmp_path):
    with locked(tmp_path / "f.lock"), pytest.raises(LockTimeoutError), locked(tmp_path / "f.lock", timeout=0.05):
        pass


@pytest.mark.parametrize("module", [None, types.ModuleType("fcntl")])
def test_field_47_a_missing_or_partial_fcntl_falls_back_to_a_plain_lock_file(tmp_path, monkeypatch, module):
    import filelock  # loaded whole before its platform module is taken away: other tests lock for real  # noqa: F401

    monkeypatch.setitem(sys.modules, "fcntl", module)
    assert not locks.has_system_lock()
    with locked(tmp_path / "f.lock"):
        assert (tmp_path / "f.lock").exists()
        with pytest.raises(LockTimeoutError), locked(tmp_path / "f.lock", timeout=0.05):
            pass


def test_field_46_the_package_imports_without_posix_modules():
    code = (
        "import sys\n"
        "for name in ('fcntl', 'pwd', 'grp', 'termios', 'resource'): sys.modules[name] = None\n"
        "import canon_hermes_plugin, canon_hermes_plugin.plugin, canon_hermes_plugin.cli\n"
        "import canon_hermes_plugin.infrastructure.files.profile_store\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
