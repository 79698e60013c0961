"""What is known about conversations, and their one kind (turns §1.2, §1.5, §8, H19)."""

from __future__ import annotations

import pytest
from canon_hermes_plugin.domain.inbound.conversations import ConversationFacts


def payload(conversation: object = None, kind: object = None) -> dict[str, object]:
    return {"conversation": conversation, "provenance": {"conversation": {"type": kind}}}


@pytest.mark.parametrize(
    ("conversation", "stated", "kind"),
    [
        (None, None, "unknown"),
        ({"type": "group"}, None, "group"),
        ({"type": "Group"}, None, "direct"),
        ({"type": "direct"}, " GROUP ", "group"),
        ({"type": "group"}, "dm", "direct"),
        ({"type": "group"}, "unknown", "group"),
        ({"type": "channel"}, "weird", "direct"),
        ({"type": ["group"]}, ["group"], "unknown"),
        ({"type": ""}, {}, "unknown"),
    ],
)
def test_kind(conversation: object, stated: object, kind: str) -> None:
    facts = ConversationFacts()
    facts.learn("c", payload(conversation, stated))
    assert facts.kind("c") == kind
    assert facts.chat_kind("c") == ("group" if kind == "group" else "direct")


def test_h19_a_new_group_known_by_provenance_alone_is_a_group_for_everyone() -> None:
    facts = ConversationFacts()
    facts.learn("c", payload(None, "group"))
    assert (facts.kind("c"), facts.chat_kind("c")) == ("group", "group")


def test_unknown_never_overwrites_a_known_kind() -> None:
    facts = ConversationFacts()
    facts.learn("c", payload(None, "group"))
    facts.learn("c", payload({"name": "n"}, "unknown"))
    facts.learn("c", payload({"name": "n"}, None))
    assert facts.kind("c") == "group"


def test_a_message_replaces_and_an_update_merges() -> None:
    facts = ConversationFacts()
    facts.learn("c", payload({"name": "first", "topic": "t"}))
    facts.learn("c", payload({"topic": "second"}))
    assert facts.name("c") == "second"
    facts.merge("c", {"name": "third", "memberIds": ["a", "b"]})
    assert (facts.name("c"), facts.member_count("c")) == ("third", 2)
    facts.merge("c", ["not", "an", "object"])
    assert facts.name("c") == "third"


def test_an_update_of_an_unknown_conversation_creates_it() -> None:
    facts = ConversationFacts()
    facts.merge("new", {"type": "group"})
    assert (facts.kind("new"), facts.name("new")) == ("group", "new")


def test_the_list_is_keyed_by_id_or_conversation_id() -> None:
    facts = ConversationFacts()
    facts.replace([{"id": "a", "name": "A"}, {"conversationId": "b", "topic": "B"}, {"name": "nobody"}])
    assert (facts.name("a"), facts.name("b"), facts.ids()) == ("A", "B", ("a", "b"))


def test_a_name_is_one_line_without_control_characters() -> None:
    facts = ConversationFacts()
    facts.learn("c", payload({"name": "a\r\nb\x00\u2028c  d"}))
    assert facts.name("c") == "a b c d"


def test_the_cache_is_bounded_and_forgets_the_longest_unheard() -> None:
    facts = ConversationFacts(capacity=2)
    for conversation in ("a", "b", "a", "c"):
        facts.learn(conversation, payload({"type": "group"}))
    assert facts.ids() == ("a", "c")
    assert facts.kind("b") == "unknown"
