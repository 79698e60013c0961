"""The profile file and its twin keep the same promises (canon-wire §2.4, §4)."""

import json

from canon_hermes_plugin.infrastructure.files.json_objects import JsonObjectFile
from canon_hermes_plugin.infrastructure.files.profile_store import FilePendingRegistrations, FileProfileStore
from canon_hermes_plugin.infrastructure.memory.profiles import MemoryPendingRegistrations, MemoryProfileStore
from canon_hermes_plugin.testing.contracts import PendingRegistrationsContract, ProfileStoreContract


class TestProfileFile(ProfileStoreContract):
    subject = FileProfileStore

    def factory(self, tmp_path, profiles=None, bootstrap=None):
        path = tmp_path / "home" / "agents.json"
        if profiles is not None:
            path.parent.mkdir()
            path.write_text(json.dumps(profiles), encoding="utf-8")
        return FileProfileStore(JsonObjectFile(path), bootstrap=bootstrap)


class TestMemoryProfiles(ProfileStoreContract):
    subject = MemoryProfileStore

    def factory(self, tmp_path, profiles=None, bootstrap=None):
        return MemoryProfileStore(profiles, bootstrap=bootstrap)


class TestPendingFile(PendingRegistrationsContract):
    subject = FilePendingRegistrations

    def factory(self, tmp_path):
        return FilePendingRegistrations(JsonObjectFile(tmp_path / "pending-registrations.json"))


class TestMemoryPending(PendingRegistrationsContract):
    subject = MemoryPendingRegistrations

    def factory(self, tmp_path):
        return MemoryPendingRegistrations()
