"""Which documents are a ledger and which are refused (interactions §9.1, §17)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from canon_hermes_plugin.domain.approvals.ledger import decode, encode
from canon_hermes_plugin.ports.errors import LedgerError
from hypothesis import given
from hypothesis import strategies as st

BASE: dict[str, Any] = {"approvalId": "a", "conversationId": "cv", "status": "pending", "expiresAt": 1}


def document(**fields: Any) -> bytes:
    return json.dumps({"a": {**BASE, **fields}}).encode()


ACCEPTED = [
    {"unknown": {"deep": [None, 1.5]}},
    {"expiresAt": -5},
    {"expiresAt": 1.25},
    {"status": "creating", "createClaimId": "c", "createClaimExpiresAt": 1},
    {"status": "consuming", "consumeClaimId": "c", "consumeClaimExpiresAt": 1.5, "consumeClaimOwner": None},
    {"status": "resolved", "decision": "deny", "wakeStatus": "pending"},
    {"status": "resolved", "decision": "deny", "wakeStatus": None},
    {"summary": None, "responseUserId": None, "receiptPending": None},
]
REFUSED = [
    {"expiresAt": True},
    {"expiresAt": None},
    {"expiresAt": "1"},
    {"expiresAt": 10**400},
    {"conversationId": "  "},
    {"conversationId": 5},
    {"approvalId": "b"},
    {"status": []},
    {"status": {}},
    {"status": "open"},
    {"status": None},
    {"wakeStatus": "due"},
    {"wakeStatus": []},
    {"status": "consuming"},
    {"status": "consuming", "consumeClaimId": "c"},
    {"status": "consuming", "consumeClaimId": "c", "consumeClaimExpiresAt": True},
    {"status": "consuming", "consumeClaimId": "", "consumeClaimExpiresAt": 1},
    {"status": "creating", "createClaimExpiresAt": 1},
    {"status": "resolved"},
    {"status": "resolved", "decision": "maybe"},
    {"status": "resolved", "decision": ["allow"]},
    {"status": "resolved", "decision": "allow", "wakeStatus": "delivering"},
    {"respondedBy": 5},
    {"summary": ["x"]},
    {"createClaimOwner": 5},
    {"receiptPending": "yes"},
    {"reconcilePending": 1},
    {"receiptSeenAt": True},
    {"resolvedAt": "later"},
    {"agentId": 5},
]
BROKEN = [
    b"",
    b"   ",
    b"[]",
    b"null",
    b"5",
    b'"text"',
    b"{",
    b"\xff",
    b'{"a": \xff}',
    b"\xef\xbb\xbf{}",
    b'{"a": 5}',
    b'{"a": []}',
    b'{"": {"approvalId": "", "conversationId": "cv", "status": "pending", "expiresAt": 1}}',
    document().replace(b'"expiresAt": 1', b'"expiresAt": NaN'),
    document().replace(b'"expiresAt": 1', b'"expiresAt": Infinity'),
    document().replace(b'"expiresAt": 1', b'"expiresAt": 1e999'),
    document().replace(b'"expiresAt": 1', b'"expiresAt": ' + b"9" * 5000),
    b'{"a":' * 100_000,
    b"[" * 100_000 + b"]" * 100_000,
]


@pytest.mark.parametrize("fields", ACCEPTED, ids=str)
def test_a_valid_entry_is_read_and_written_back_unchanged(fields):
    entries = decode(document(**fields))
    assert entries == {"a": {**BASE, **fields}}
    assert decode(encode(entries)) == entries


@pytest.mark.parametrize("fields", REFUSED, ids=lambda fields: str(fields)[:60])
def test_d9_a_malformed_entry_is_the_ledger_error(fields):
    with pytest.raises(LedgerError):
        decode(document(**fields))


@pytest.mark.parametrize("raw", BROKEN, ids=lambda raw: repr(raw[:30]))
def test_d9_a_malformed_document_is_the_ledger_error(raw):
    with pytest.raises(LedgerError):
        decode(raw)


def test_one_bad_entry_makes_the_whole_ledger_unusable():
    raw = json.dumps({"a": BASE, "b": {**BASE, "approvalId": "c"}}).encode()
    with pytest.raises(LedgerError):
        decode(raw)


def test_the_error_text_quotes_nothing_of_the_document():
    with pytest.raises(LedgerError) as caught:
        decode(b'{"secret-question": oops}')
    assert "secret" not in str(caught.value)


@given(st.binary(max_size=200))
def test_d9_whatever_the_bytes_are_only_the_ledger_error_escapes(raw):
    try:
        decode(raw)
    except LedgerError:
        return


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from([*BASE, "wakeStatus", "decision", "summary", "resolvedAt", "receiptPending"]), json_values
    )
)
def test_d9_whatever_the_fields_are_only_the_ledger_error_escapes(fields):
    raw = json.dumps({"a": {**BASE, **fields}}).encode()
    try:
        entries = decode(raw)
    except LedgerError:
        return
    assert decode(encode(entries)) == entries


def test_the_document_has_two_space_indent_and_sorted_keys():
    second = {**BASE, "approvalId": "b", "z": [1, {"y": 2}], "summary": "sí\n"}
    raw = encode({"b": second, "a": BASE})
    assert raw.decode() == json.dumps({"a": BASE, "b": second}, indent=2, sort_keys=True)
    assert encode({}) == b"{}"


def test_nan_in_an_entry_is_never_written():
    with pytest.raises(LedgerError):
        encode({"a": {**BASE, "extra": float("nan")}})
