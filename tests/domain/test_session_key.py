"""One derivation of the host's routing key (turns §2.1)."""

from __future__ import annotations

from typing import Literal

import pytest
from canon_hermes_plugin.domain.session_key import host_session_key
from gateway.config import Platform
from gateway.session import SessionSource, build_session_key
from hypothesis import given
from hypothesis import strategies as st

conversations = st.text(st.characters(blacklist_characters=":", codec="utf-8"), min_size=1).filter(str.strip)
users = st.none() | st.text(min_size=1)
sources = st.tuples(conversations, st.sampled_from(["direct", "group"]), users)


def test_keys_of_the_contract() -> None:
    assert host_session_key("c1", "direct", "u1") == "agent:main:canon:dm:c1"
    assert host_session_key("c1", "group", "u1") == "agent:main:canon:group:c1:u1"
    assert host_session_key("c1", "group", "u1", per_user=False) == "agent:main:canon:group:c1"
    assert host_session_key("c1", "group", None) == "agent:main:canon:group:c1"
    assert host_session_key("c1", "group", "") == "agent:main:canon:group:c1"


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
@pytest.mark.parametrize("kind", ["direct", "group"])
def test_field_22_a_blank_chat_id_is_refused(blank: str, kind: Literal["direct", "group"]) -> None:
    with pytest.raises(ValueError, match="conversation id"):
        host_session_key(blank, kind)


@given(sources, sources)
def test_distinct_lanes_have_distinct_keys(
    one: tuple[str, Literal["direct", "group"], str | None], two: tuple[str, Literal["direct", "group"], str | None]
) -> None:
    def lane(source: tuple[str, str, str | None]) -> tuple[str, ...]:
        conversation, kind, user = source
        return (conversation, kind, user or "") if kind == "group" else (conversation, kind)

    assert (host_session_key(*one) == host_session_key(*two)) == (lane(one) == lane(two))


@given(sources, st.booleans())
def test_field_24_the_key_is_the_hosts_own(
    source: tuple[str, Literal["direct", "group"], str | None], per_user: bool
) -> None:
    conversation, kind, user = source
    host_source = SessionSource(
        platform=Platform.TELEGRAM,
        chat_id=conversation,
        chat_type="dm" if kind == "direct" else "group",
        user_id=user,
    )
    key = build_session_key(host_source, group_sessions_per_user=per_user)
    assert host_session_key(conversation, kind, user, per_user=per_user) == key.replace(":telegram:", ":canon:", 1)
