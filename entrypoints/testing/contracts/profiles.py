"""Profiles and pending registrations: what the stores of :mod:`canon_hermes_plugin.ports.profiles` promise."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from canon_hermes_plugin.ports.errors import ConfigurationError
from canon_hermes_plugin.ports.profiles import Document, PendingRegistrations, ProfileStore
from canon_hermes_plugin.testing.contracts.base import Suite, wanted

OPS: Document = {"apiKey": "k", "x-unknown": [1, {"y": "é☃"}]}
TWO: Document = {"apiKey": "k2"}


def _plain(text: str) -> str:
    return text


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _padded(text: str) -> str:
    return f"\n {text} "


class ProfileStoreContract(Suite[ProfileStore]):
    """The suite of :class:`canon_hermes_plugin.ports.profiles.ProfileStore`."""

    def factory(
        self, tmp_path: Path, profiles: Mapping[str, Document] | None = None, bootstrap: str | None = None
    ) -> ProfileStore:
        """Return a store that holds ``profiles``; ``bootstrap`` is the value of the bootstrap variable."""
        raise NotImplementedError(wanted(type(self)))

    def test_without_anything_there_are_no_profiles(self, tmp_path: Path) -> None:
        assert self.factory(tmp_path).load() == {}

    def test_saving_replaces_one_entry_whole_and_keeps_unknown_fields_of_the_others(self, tmp_path: Path) -> None:
        store = self.factory(tmp_path, {"ops": OPS, "two": {"apiKey": "old", "extra": 1}})
        store.save("two", TWO)
        assert store.load() == {"ops": OPS, "two": TWO}

    def test_the_place_is_told_for_messages(self, tmp_path: Path) -> None:
        assert self.factory(tmp_path).location().strip()

    def test_the_first_profile_may_be_saved_where_none_was(self, tmp_path: Path) -> None:
        store = self.factory(tmp_path)
        store.save("ops", OPS)
        assert store.load() == {"ops": OPS}

    def test_profiles_of_other_runtimes_are_returned_as_they_stand(self, tmp_path: Path) -> None:
        foreign: Document = {"clientType": "another", "deep": {"x": [None, 1.5, True]}}
        assert self.factory(tmp_path, {"ops": OPS, "theirs": foreign}).load() == {"ops": OPS, "theirs": foreign}

    def test_what_load_returns_is_a_copy(self, tmp_path: Path) -> None:
        store = self.factory(tmp_path, {"ops": OPS})
        loaded = store.load()["ops"]
        assert isinstance(loaded, dict)
        loaded["apiKey"] = "changed"
        assert store.load() == {"ops": OPS}

    @pytest.mark.parametrize("encode", [_plain, _encoded, _padded])
    def test_a_bootstrap_adds_absent_profiles_and_overwrites_none(
        self, tmp_path: Path, encode: Callable[[str], str]
    ) -> None:
        store = self.factory(tmp_path, {"ops": OPS}, encode(json.dumps({"ops": TWO, "two": TWO})))
        assert store.load() == {"ops": OPS, "two": TWO}
        assert store.load() == {"ops": OPS, "two": TWO}

    @pytest.mark.parametrize("bad", ["no json", "[]", "5", '{"": {}}', '{" ": {}}', '{"a": 5}', '"x"', "W10=", "é"])
    def test_a_malformed_bootstrap_is_refused_without_quoting_it(self, tmp_path: Path, bad: str) -> None:
        try:
            self.factory(tmp_path, bootstrap=bad).load()
        except ConfigurationError as refusal:
            said = str(refusal)
            assert "CANON_AGENTS_JSON_BOOTSTRAP" in said, (
                f"the error about the bootstrap {bad!r} must name its variable"
            )
        else:
            pytest.fail(f"load() took the bootstrap {bad!r}; it must raise ConfigurationError")


class PendingRegistrationsContract(Suite[PendingRegistrations]):
    """The suite of :class:`canon_hermes_plugin.ports.profiles.PendingRegistrations`."""

    def factory(self, tmp_path: Path) -> PendingRegistrations:
        """Return an empty store."""
        raise NotImplementedError(wanted(type(self)))

    def test_a_pending_registration_is_created_changed_and_dropped(self, tmp_path: Path) -> None:
        pending = self.factory(tmp_path)
        assert pending.load() == {}
        made = pending.update("ops", lambda entry: {"localRegistrationId": "h"} if entry is None else entry)
        assert made == {"localRegistrationId": "h"}
        pending.update("ops", lambda entry: {**(entry or {}), "requestId": "r"})
        assert pending.load() == {"ops": {"localRegistrationId": "h", "requestId": "r"}}
        assert pending.update("ops", lambda _: None) is None
        assert pending.update("ops", lambda entry: entry) is None
        assert pending.load() == {}

    def test_the_place_is_told_for_messages(self, tmp_path: Path) -> None:
        assert self.factory(tmp_path).location().strip()

    def test_a_change_that_fails_changes_nothing(self, tmp_path: Path) -> None:
        pending = self.factory(tmp_path)
        pending.update("ops", lambda _: {"localRegistrationId": "h"})

        def fail(_: Document | None) -> Document | None:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            pending.update("ops", fail)
        assert pending.load() == {"ops": {"localRegistrationId": "h"}}

    def test_changes_of_several_threads_lose_nothing(self, tmp_path: Path) -> None:
        pending = self.factory(tmp_path)

        def count(_: int) -> None:
            pending.update("ops", lambda entry: {"count": (entry or {"count": 0})["count"] + 1})

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(count, range(40)))
        assert pending.load() == {"ops": {"count": 40}}
