"""The profile file and its twin keep the same promises (canon-wire §2.4, §4)."""

import base64
import json

import pytest
from canon_hermes_plugin.infrastructure.files.json_objects import JsonObjectFile
from canon_hermes_plugin.infrastructure.files.profile_store import FilePendingRegistrations, FileProfileStore
from canon_hermes_plugin.infrastructure.memory.profiles import MemoryPendingRegistrations, MemoryProfileStore
from canon_hermes_plugin.ports.errors import ConfigurationError

OPS, TWO = {"apiKey": "k", "x-unknown": [1, {"y": "é☃"}]}, {"apiKey": "k2"}


@pytest.fixture(params=["file", "memory"])
def make(request, tmp_path):
    def build(profiles=None, bootstrap=None):
        if request.param == "memory":
            return MemoryProfileStore(profiles, bootstrap=bootstrap)
        path = tmp_path / "home" / "agents.json"
        if profiles is not None:
            path.parent.mkdir()
            path.write_text(json.dumps(profiles), encoding="utf-8")
        return FileProfileStore(JsonObjectFile(path), bootstrap=bootstrap)

    return build


def test_without_anything_there_are_no_profiles(make):
    assert make().load() == {}


def test_saving_replaces_one_entry_whole_and_keeps_unknown_fields_of_the_others(make):
    store = make({"ops": OPS, "two": {"apiKey": "old", "extra": 1}})
    store.save("two", TWO)
    assert store.load() == {"ops": OPS, "two": TWO}


def test_what_load_returns_is_a_copy(make):
    store = make({"ops": OPS})
    store.load()["ops"]["apiKey"] = "changed"
    assert store.load() == {"ops": OPS}


@pytest.mark.parametrize(
    "encode", [str, lambda text: base64.b64encode(text.encode()).decode(), lambda text: f"\n {text} "]
)
def test_a_bootstrap_adds_absent_profiles_and_overwrites_none(make, encode):
    store = make({"ops": OPS}, bootstrap=encode(json.dumps({"ops": TWO, "two": TWO})))
    assert store.load() == {"ops": OPS, "two": TWO}
    assert store.load() == {"ops": OPS, "two": TWO}


@pytest.mark.parametrize("bad", ["no json", "[]", "5", '{"": {}}', '{" ": {}}', '{"a": 5}', '"x"', "W10=", "é"])
def test_a_malformed_bootstrap_is_refused_without_quoting_it(make, bad):
    with pytest.raises(ConfigurationError, match="CANON_AGENTS_JSON_BOOTSTRAP"):
        make(bootstrap=bad).load()


@pytest.fixture(params=["file", "memory"])
def pending(request, tmp_path):
    if request.param == "memory":
        return MemoryPendingRegistrations()
    return FilePendingRegistrations(JsonObjectFile(tmp_path / "pending-registrations.json"))


def test_a_pending_registration_is_created_changed_and_dropped(pending):
    assert pending.load() == {}
    assert pending.update("ops", lambda entry: {"localRegistrationId": "h"} if entry is None else entry) == {
        "localRegistrationId": "h"
    }
    pending.update("ops", lambda entry: {**entry, "requestId": "r"})
    assert pending.load() == {"ops": {"localRegistrationId": "h", "requestId": "r"}}
    assert pending.update("ops", lambda entry: None) is None
    assert pending.update("ops", lambda entry: entry) is None
    assert pending.load() == {}
