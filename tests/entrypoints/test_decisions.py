"""Composition outside of a gateway: whose ledger, whose key, which limits (interactions §4.3, §9.10, §14.3)."""

from __future__ import annotations

import hashlib
import os
from unittest import mock

import pytest
from canon_hermes_plugin import decisions
from canon_hermes_plugin.domain.approvals.ownership import LedgerIdentity
from canon_hermes_plugin.infrastructure.files.approval_store import LEDGER_NAME
from canon_hermes_plugin.ports.approvals import Change
from canon_hermes_plugin.ports.errors import CredentialsError
from canon_hermes_plugin.ports.host import SessionSnapshot

KEY = {
    "CANON_API_KEY": "agk_secret",
    "CANON_ENVIRONMENT_ID": "canon-dev-v1",
    "CANON_BASE_URL": "http://127.0.0.1:1",
    "CANON_STREAM_URL": "http://127.0.0.1:1",
    "CANON_RTDB_URL": "http://localhost:9",
    "CANON_FIREBASE_API_KEY": "x",
}


@pytest.fixture
def environ(tmp_path):
    foreign = ("CANON_", "HERMES_")
    bare = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    homes = {"CANON_HOME": str(tmp_path / "canon"), "HERMES_HOME": str(tmp_path / "hermes"), "HOME": str(tmp_path)}
    with mock.patch.dict(os.environ, bare | homes, clear=True):
        yield os.environ


def test_a_bare_key_is_recorded_by_its_fingerprint_alone(environ):
    environ.update(KEY)
    assert decisions.available()
    identity = decisions.identity_of(decisions.connection())
    assert identity == LedgerIdentity(None, hashlib.sha256(b"agk_secret").hexdigest()[:16], shared=False)
    assert "agk" not in repr(identity)


def test_without_credentials_the_tool_is_not_offered_and_says_so(environ):
    assert not decisions.available()
    with pytest.raises(CredentialsError):
        decisions.connection()
    assert decisions.identity_of(None) == LedgerIdentity()


async def test_the_ledger_lies_in_the_canon_home_and_is_one_for_the_process(environ, tmp_path):
    assert decisions.ledger() is decisions.ledger()
    entry = {"approvalId": "a", "conversationId": "cv", "status": "pending", "expiresAt": 5}
    await decisions.ledger().transact(lambda _: Change(None, {"a": entry}))
    assert (tmp_path / "canon" / LEDGER_NAME).exists()


async def test_outside_of_a_gateway_the_tool_still_answers_from_the_ledger(environ):
    settled = {"approvalId": "a", "conversationId": "cv", "status": "expired", "expiresAt": 5, "resolvedAt": 9e12}
    await decisions.ledger().transact(lambda _: Change(None, {"a": settled}))
    actions = await decisions.actions()
    assert (await actions.run({"action": "check_approval", "approvalId": "a"}))["status"] == "expired"
    with pytest.raises(CredentialsError):
        await actions.run({"action": "reach_out", "targetUserId": "u"})
    assert SessionSnapshot() == decisions.action_deps(None).session.snapshot()


@pytest.mark.parametrize(("value", "seconds"), [("", 300), ("x", 300), ("60", 60), ("99999", 1800), ("-1", 5)])
def test_the_hosts_questions_stay_open_as_long_as_the_environment_says(environ, value, seconds):
    environ.update(HERMES_CLARIFY_TIMEOUT=value, HERMES_APPROVAL_TIMEOUT=value)
    limits = decisions.blocking_limits()
    assert (limits.clarify, limits.approval) == (seconds, seconds)
