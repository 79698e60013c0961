"""What only the real profile file can show: modes, encodings, faults (canon-wire §4.1, interactions D16)."""

import json
import stat
import threading

import pytest
from canon_hermes_plugin.infrastructure.files.json_objects import JsonObjectFile
from canon_hermes_plugin.infrastructure.files.locations import canon_paths
from canon_hermes_plugin.infrastructure.files.profile_store import FilePendingRegistrations, FileProfileStore
from canon_hermes_plugin.ports.errors import ConfigurationError


def test_locations_follow_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert canon_paths({}).profiles == tmp_path / ".canon" / "agents.json"
    assert canon_paths({"CANON_HOME": " ~/c "}).pending == tmp_path / "c" / "pending-registrations.json"
    assert canon_paths({"CANON_AGENTS_PATH": "/p", "CANON_AGENTS_FILE": " "}).profiles.as_posix() == "/p"
    assert canon_paths({"CANON_AGENTS_PATH": "/p", "CANON_AGENTS_FILE": "/f"}).profiles.as_posix() == "/f"


def test_a_saved_file_is_private_sorted_indented_utf8(tmp_path):
    path = tmp_path / "deep" / "agents.json"
    store = FileProfileStore(JsonObjectFile(path))
    store.save("b", {"z": "é"})
    store.save("a", {})
    assert path.read_bytes().decode("utf-8") == '{\n  "a": {},\n  "b": {\n    "z": "é"\n  }\n}\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"a": 5}', b'{"": {}}', b"\xff", b"[" * 100_000])
def test_a_malformed_file_is_an_error_and_stays_as_it_is(tmp_path, content):
    path = tmp_path / "agents.json"
    path.write_bytes(content)
    for store in (FileProfileStore(JsonObjectFile(path)), FilePendingRegistrations(JsonObjectFile(path))):
        with pytest.raises(ConfigurationError, match=r"agents\.json"):
            store.load()
    with pytest.raises(ConfigurationError):
        FileProfileStore(JsonObjectFile(path)).save("x", {})
    assert path.read_bytes() == content


def test_an_unreadable_file_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        FileProfileStore(JsonObjectFile(tmp_path)).load()


def test_a_blank_bootstrap_creates_an_empty_file(tmp_path):
    environ = {"CANON_HOME": str(tmp_path), "CANON_AGENTS_JSON_BOOTSTRAP": " "}
    assert FileProfileStore.from_environ(environ).load() == {}
    assert json.loads((tmp_path / "agents.json").read_text(encoding="utf-8")) == {}


def test_an_empty_bootstrap_variable_is_ignored(tmp_path):
    FileProfileStore.from_environ({"CANON_HOME": str(tmp_path), "CANON_AGENTS_JSON_BOOTSTRAP": ""}).load()
    assert list(tmp_path.iterdir()) == []


def test_concurrent_savers_lose_nothing(tmp_path):
    path = tmp_path / "agents.json"

    def save(number):
        FileProfileStore(JsonObjectFile(path)).save(f"p{number}", {"n": number})

    threads = [threading.Thread(target=save, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(FileProfileStore(JsonObjectFile(path)).load()) == 12
    assert not list(tmp_path.glob(".*.tmp"))
