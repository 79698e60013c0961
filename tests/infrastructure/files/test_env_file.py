"""Environment files: one meaning for every reader, and nothing else touched (field faults 49, 52)."""

import io
import os
import shutil
import stat
import string
import subprocess
from pathlib import Path

import pytest
from canon_hermes_plugin.infrastructure.files import env_text
from canon_hermes_plugin.infrastructure.files.env_file import EnvFile
from canon_hermes_plugin.ports.errors import ConfigurationError
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

PRINTABLE = st.text(st.sampled_from(string.ascii_letters + string.digits + string.punctuation + " é☃😀"), max_size=24)
HARD = st.text(st.sampled_from("'\"\\$` {}()#=!aA~*"), max_size=12)
VALUES = st.one_of(PRINTABLE, HARD)


@pytest.fixture
def host_loader(tmp_path, monkeypatch):
    """The host's own loader over a file of this test."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    from hermes_cli import config

    def load(text):
        (tmp_path / ".env").write_text(text, encoding="utf-8", newline="")
        config.invalidate_env_cache()
        return config.load_env()

    return load


def through_sh(text, key, directory: Path):
    """Source the file with ``sh`` and print one variable, byte for byte."""
    (directory / "sourced").write_text(text, encoding="utf-8", newline="")
    shell = shutil.which("sh")
    assert shell
    result = subprocess.run(
        [shell, "-c", f'set -a; . ./sourced; printf %s "${key}"'],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        capture_output=True,
        check=True,
    )
    assert result.stderr == b""
    return result.stdout.decode("utf-8")


FIXTURES = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@FIXTURES
@given(value=VALUES)
@example(value='it\'s $HOME `id` \\ "x"')
@example(value="$x\\")
@example(value="$\\\\x")
@example(value=" # ' = ")
@example(value="")
def test_field_52_a_written_value_reads_back_the_same_everywhere(host_loader, tmp_path, value):
    text = env_text.change("A=1\n", {"CANON_API_KEY": value, "CANON_Z": "z"})
    assert host_loader(text) == {"A": "1", "CANON_API_KEY": value, "CANON_Z": "z"}
    assert env_text.values(text) == host_loader(text)
    assert through_sh(text, "CANON_API_KEY", tmp_path) == value
    assert through_sh(text, "CANON_Z", tmp_path) == "z"


@FIXTURES
@given(value=VALUES)
@example(value="$x\\")
@example(value="it's $HOME")
def test_the_gateways_dotenv_loader_reads_the_same_value(value):
    from dotenv import dotenv_values

    text = env_text.change("", {"K": value, "Z": "z"})
    read = dotenv_values(stream=io.StringIO(text), interpolate="${" not in value)
    assert (read["K"], read["Z"]) == (value, "z")


@FIXTURES
@given(
    lines=st.lists(
        st.sampled_from(
            ["# note", "", "A=1", " export  B = 2", "C='x y'", "junk", "CANON_A=old", "export CANON_A=older"]
        ),
        max_size=8,
    ),
    newline=st.sampled_from(["\n", "\r\n"]),
    end=st.booleans(),
    value=VALUES,
)
def test_a_change_touches_nothing_else_and_is_idempotent(lines, newline, end, value):
    text = newline.join(lines) + (newline if end else "")
    once = env_text.change(text, {"CANON_A": value}, ["C"])
    assert env_text.change(once, {"CANON_A": value}, ["C"]) == once
    mine = {"CANON_A", "C"}
    others = [line for line in text.splitlines() if env_text._key_of(line) not in mine]
    written = env_text.change("", {"CANON_A": value}).splitlines()
    assert [line for line in once.splitlines() if line not in written] == [o for o in others if o not in written]
    assert len([entry for entry in env_text.assignments(once) if entry.key == "CANON_A"]) in {1, 2}
    assert env_text.values(env_text.change(once, {}, ["CANON_A"])) == {
        key: v for key, v in env_text.values(text).items() if key not in mine
    }


@given(text=st.text(st.sampled_from("AB=\"'\\ #\r\n$\t\ufeff"), max_size=30))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reading_agrees_with_the_host_on_any_file(host_loader, text):
    assert env_text.values(text) == host_loader(text)


def test_a_key_keeps_its_place_and_loses_its_doubles():
    text = "\ufeff# top\nA=1\nexport CANON_A=x # old\nB=2\nCANON_A=y"
    assert env_text.change(text, {"CANON_A": "n"}) == "\ufeff# top\nA=1\nCANON_A=n\nB=2\n"


def test_a_file_without_a_final_newline_gets_one_only_before_an_addition():
    assert env_text.change("A=1", {"B": "2"}) == "A=1\nB=2\n"
    assert env_text.change("A=1", {}, ["X"]) == "A=1"


def test_removing_a_value_removes_its_here_document():
    text = env_text.change("A=1\n", {"K": "it's $x"})
    assert text.count("K=") == 2
    assert env_text.change(text, {}, ["K"]) == "A=1\n"
    assert env_text.change(text, {"K": "plain"}) == "A=1\nK=plain\n"


@pytest.mark.parametrize(
    "bad", [{"K": "sec\nret"}, {"K": "a\rb"}, {"K": "\x00"}, {"K": "sec\x1bret"}, {"1K": "x"}, {"K Y": "x"}, {"": "x"}]
)
def test_what_cannot_stand_in_the_file_is_refused_and_the_value_not_quoted(tmp_path, bad):
    path = tmp_path / ".env"
    path.write_text("A=1\n", encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        EnvFile(path).change(bad)
    assert "sec" not in str(caught.value)
    assert path.read_text(encoding="utf-8") == "A=1\n"


def test_a_new_file_is_private_and_an_old_one_keeps_its_mode(tmp_path):
    path = tmp_path / "home" / ".env"
    assert EnvFile(path).values() == {}
    assert EnvFile(path).change({"A": "1"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    assert not EnvFile(path).change({"A": "1"})
    assert EnvFile(path).change({"B": "2"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_field_49_foreign_bytes_survive_and_utf_16_is_refused(tmp_path):
    path = tmp_path / ".env"
    path.write_bytes(b"A=\xe9\xff\n")
    EnvFile(path).change({"B": "☃"})
    assert path.read_bytes() == b"A=\xe9\xff\nB=" + '"☃"\n'.encode()
    path.write_bytes("A=1".encode("utf-16"))
    with pytest.raises(ConfigurationError, match="UTF-8"):
        EnvFile(path).change({"B": "2"})
    assert path.read_bytes() == "A=1".encode("utf-16")
