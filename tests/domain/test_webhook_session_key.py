"""captain-webhook §3: which session a delivery belongs to."""

from __future__ import annotations

import pytest
from canon_hermes_plugin.domain.session_key import (
    is_stable_chat_id,
    one_shot_chat_id,
    stable_chat_id,
    webhook_conversation,
)
from hypothesis import given
from hypothesis import strategies as st

names = st.text(min_size=1).filter(lambda text: bool(text.strip()))
awkward = st.one_of(
    names,
    st.text(alphabet="a:%~ /\u05d0\n", min_size=1, max_size=6).filter(lambda text: bool(text.strip())),
    names.map(lambda text: text * 60),
)


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        ({"conversation_id": "42"}, "42"),
        ({"conversation_id": 42}, "42"),
        ({"conversation_id": 0}, "0"),
        ({"conversation_id": -7}, "-7"),
        ({"conversation_id": "  dana  "}, "dana"),
        ({"hermes_session_id": "h1"}, "h1"),
        ({"conversation_id": "c", "hermes_session_id": "h"}, "c"),
        ({"conversation_id": "  ", "hermes_session_id": "h"}, "h"),
        ({"conversation_id": True, "hermes_session_id": 3}, "3"),
        ({}, None),
        ({"conversation_id": None}, None),
        ({"conversation_id": 1.0}, None),
        ({"conversation_id": ["c"]}, None),
        ({"conversation_id": {"id": "c"}}, None),
        ({"conversation_id": 10**5000}, None),
        (["conversation_id"], None),
        ("conversation_id", None),
        (None, None),
    ],
)
def test_the_field_that_names_a_conversation(payload: object, value: str | None) -> None:
    assert webhook_conversation(payload).value == value


def test_unusable_fields_are_told_by_name_and_type_only() -> None:
    found = webhook_conversation({"conversation_id": ["secret"], "hermes_session_id": False})
    assert found.ignored == (("conversation_id", "list"), ("hermes_session_id", "bool"))


def test_field_97_the_route_is_part_of_the_key() -> None:
    assert stable_chat_id("tenant-a", "1") != stable_chat_id("tenant-b", "1")


def test_the_readable_form() -> None:
    assert stable_chat_id("support", "42") == "webhook:support:session:42"
    assert stable_chat_id("support", "a:b c") == "webhook:support:session:a%3Ab%20c"
    assert stable_chat_id("support", "\u05d0") == "webhook:support:session:%D7%90"


def test_a_long_identifier_keeps_a_readable_prefix_and_a_digest() -> None:
    key = stable_chat_id("support", "x" * 201)
    assert key.startswith("webhook:support:session:" + "x" * 80 + "~")
    assert len(key) < 200
    assert stable_chat_id("support", "x" * 200).endswith("x" * 200)


@given(awkward, awkward, awkward, awkward)
def test_equal_keys_imply_equal_pairs(route: str, one: str, other_route: str, two: str) -> None:
    same = stable_chat_id(route, one) == stable_chat_id(other_route, two)
    assert same == ((route, one) == (other_route, two))


@given(awkward, awkward)
def test_a_key_always_has_four_printable_parts(route: str, name: str) -> None:
    key = stable_chat_id(route, name)
    parts = key.split(":")
    assert len(parts) == 4
    assert all(parts)
    assert key.isascii()
    assert key.isprintable()
    assert " " not in key
    assert is_stable_chat_id(key)


@given(awkward)
def test_encoding_is_stable_for_what_needs_none(name: str) -> None:
    encoded = stable_chat_id("r", name).rsplit(":", 1)[1]
    if encoded == name:
        assert stable_chat_id("r", encoded) == stable_chat_id("r", name)
    else:
        assert stable_chat_id("r", encoded) != stable_chat_id("r", name)


@given(awkward, awkward, awkward, awkward)
def test_no_delivery_can_take_a_conversations_key(route: str, delivery: str, other: str, name: str) -> None:
    key = one_shot_chat_id(f"webhook:{route}:{delivery}", route, delivery)
    assert key != stable_chat_id(other, name)
    assert not is_stable_chat_id(key)


@pytest.mark.parametrize("delivery", ["session:42", "session:", "delivery:session%3A42", "session"])
def test_a_delivery_that_looks_like_a_conversation_stays_one_shot(delivery: str) -> None:
    key = one_shot_chat_id(f"webhook:r:{delivery}", "r", delivery)
    assert key.startswith("webhook:r:delivery:")
    assert key != stable_chat_id("r", "42")


@given(st.lists(st.tuples(awkward, awkward), min_size=2, max_size=2, unique=True))
def test_one_shot_deliveries_never_share_a_key_on_one_route(pairs: list[tuple[str, str]]) -> None:
    (_, one), (_, two) = pairs
    keys = [one_shot_chat_id(f"webhook:r:{delivery}", "r", delivery) for delivery in (one, two)]
    assert (keys[0] == keys[1]) == (one == two)


def test_an_ordinary_delivery_keeps_the_hosts_key() -> None:
    assert one_shot_chat_id("webhook:r:1720000000000", "r", "1720000000000") == "webhook:r:1720000000000"


@pytest.mark.parametrize(("route", "name"), [("", "x"), ("r", " ")])
def test_a_blank_part_is_refused(route: str, name: str) -> None:
    with pytest.raises(ValueError, match="needs a route"):
        stable_chat_id(route, name)
