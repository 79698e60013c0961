"""What the model reads of a message (turns §1.6, §13 invariants 4 and 11)."""

from __future__ import annotations

from typing import Any

import pytest
from canon_hermes_plugin.domain.inbound.text import base_name, compose, message_kind, with_markers
from hypothesis import given
from hypothesis import strategies as st

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=12)
    | st.sampled_from(["https://x.test/a?sig=1", "a://b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"text": "  hi\n"}, "  hi\n"),
        ({"text": "hi", "attachments": [{"kind": "image"}]}, "hi"),
        ({"text": " ", "attachments": [{"kind": "image", "fileName": "dir\\a/b.png"}]}, "[image attachment: b.png]"),
        ({"attachments": [{}, "x", {"kind": "audio"}], "contentType": "file"}, "[file attachment; audio attachment]"),
        ({"attachments": [{"fileName": "https://h/a.png?sig=1"}]}, "[file attachment]"),
        ({"attachments": ["x"], "contentType": "video"}, "[video message]"),
        ({"contentType": "sticker"}, "[sticker message]"),
        ({"contentType": "text"}, ""),
        ({"contentType": 7, "text": ["x"]}, ""),
        ({}, ""),
        ({"contentType": "contact_card"}, "[Contact card]"),
        ({"contentType": "contact_card", "contactCard": {}}, '[Contact card] "Unknown"'),
        (
            {
                "contentType": "contact_card",
                "contactCard": {
                    "displayName": "Ada",
                    "userType": "human",
                    "userId": "u1",
                    "ownerName": "O",
                    "about": "x\ny",
                },
                "text": " hello ",
            },
            '[Contact card] "Ada" - human; userId: u1; owner: O; about: x y\nhello',
        ),
    ],
)
def test_composition(message: dict[str, Any], text: str) -> None:
    assert compose(message) == text


@given(
    st.lists(st.dictionaries(st.sampled_from(["kind", "fileName", "url", "mimeType"]), json_values), max_size=4),
    json_values,
)
def test_labels_of_attachments_never_hold_a_url(attachments: list[Any], content_type: object) -> None:
    assert "://" not in compose({"attachments": attachments, "contentType": content_type})


@given(st.dictionaries(st.sampled_from(["text", "attachments", "contentType", "contactCard"]), json_values))
def test_h16_no_json_value_makes_composition_raise(message: dict[str, Any]) -> None:
    assert isinstance(compose(message), str)


def test_kind_of_message() -> None:
    assert message_kind(" /status", ["photo"]) == "command"
    assert message_kind("x", ["photo", "voice", "video"]) == "voice"
    assert message_kind("x", ["document", "photo"]) == "photo"
    assert message_kind("x") == "text"


def test_markers_follow_a_caption_and_replace_labels() -> None:
    caption = {"text": "look", "attachments": [{}]}
    assert with_markers(caption, "look", "M") == "look\n\nM"
    assert with_markers({"attachments": [{}]}, "[file attachment]", "M") == "M"
    card = {"contentType": "contact_card"}
    assert with_markers(card, "[Contact card]", "M") == "[Contact card]\n\nM"
    assert with_markers(caption, "look", "") == "look"


@pytest.mark.parametrize("name", ["a/b\\c.txt", "c.txt", "/c.txt", "x\\y\\c.txt"])
def test_only_the_last_component_of_a_name(name: str) -> None:
    assert base_name(name) == "c.txt"
