"""Session keys: one derivation for every caller (turns §2.1, captain-webhook §3). Pure text, no host.

It decides which lane of the host's memory a message belongs to, exactly as the host does for an unthreaded source of
the default profile (hermes-host §3.8). It serves code that runs without a host, the scripted host of the test kit
first; the adapter asks the host itself, and a test holds the two equal on every supported host (field fault 24).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, cast
from urllib.parse import quote

PLATFORM: Final = "canon"
"""The platform's name in the host."""

_NAMESPACE = "agent:main"
_SESSION = "session"
_DELIVERY = "delivery"
_MAX_ENCODED = 200
_READABLE_PREFIX = 80
_FIELDS = ("conversation_id", "hermes_session_id")


def host_session_key(
    conversation_id: str,
    chat_kind: Literal["direct", "group"],
    user_id: str | None = None,
    *,
    per_user: bool = True,
) -> str:
    """Return the host's routing key for one source.

    Distinct conversations never share a key in direct chats; in groups neither do distinct (conversation, user) pairs
    as long as conversation ids hold no colon, which the host uses as separator.

    Args:
        conversation_id: Canon conversation, the source's chat id.
        chat_kind: the one resolver's answer for the conversation.
        user_id: the source's user id; blank means none.
        per_user: the platform extra ``group_sessions_per_user`` (default true): in groups, one lane per user.

    Raises:
        ValueError: the conversation id is blank: the host would put every such chat into one lane (field fault 22).
    """
    if not conversation_id.strip():
        raise ValueError("a session key needs a conversation id")
    if chat_kind == "direct":
        return f"{_NAMESPACE}:{PLATFORM}:dm:{conversation_id}"
    shared = f"{_NAMESPACE}:{PLATFORM}:group:{conversation_id}"
    return f"{shared}:{user_id}" if per_user and user_id else shared


@dataclass(frozen=True, slots=True)
class ConversationField:
    """What a payload says about its conversation.

    Attributes:
        value: the identifier in text form, or ``None`` when no field is usable.
        ignored: name and type of each field that was present but not usable; never its value.
    """

    value: str | None
    ignored: tuple[tuple[str, str], ...] = ()


def webhook_conversation(payload: object) -> ConversationField:
    """Read the stable conversation identifier of a webhook payload.

    ``conversation_id`` wins over ``hermes_session_id``. Usable are a string that is not blank after trimming and an
    integer (not a boolean), rendered in decimal, so ``42`` and ``"42"`` name the same conversation.
    """
    if not isinstance(payload, Mapping):
        return ConversationField(None)
    fields = cast("Mapping[str, object]", payload)
    ignored: list[tuple[str, str]] = []
    for name in _FIELDS:
        value = fields.get(name)
        text = _usable(value)
        if text is not None:
            return ConversationField(text, tuple(ignored))
        if value is not None:
            ignored.append((name, type(value).__name__))
    return ConversationField(None, tuple(ignored))


def stable_chat_id(route: str, conversation: str) -> str:
    """Return ``webhook:<route>:session:<id>``, always four colon-separated parts.

    Equal results imply equal (route, conversation) pairs: both are percent-encoded, and an identifier longer than 200
    characters once encoded becomes a readable prefix plus its SHA-256 digest, in a form no shorter one can take.

    Raises:
        ValueError: a blank route or conversation.
    """
    return _chat_id(route, _SESSION, conversation)


def one_shot_chat_id(chat_id: str, route: str, delivery_id: str) -> str:
    """Return the chat id of a delivery without a conversation: the host's own, untouched, unless it looks like ours.

    A delivery identifier (or a route) can be chosen so that the host's ``webhook:<route>:<delivery>`` equals a stable
    conversation's chat id. Such a delivery moves to ``webhook:<route>:delivery:<id>``, which no conversation can have.
    """
    parts = chat_id.split(":")
    if len(parts) >= _LOOKALIKE_PARTS and parts[2] in {_SESSION, _DELIVERY}:
        return _chat_id(route, _DELIVERY, delivery_id)
    return chat_id


def is_stable_chat_id(chat_id: str) -> bool:
    """Whether ``chat_id`` is one :func:`stable_chat_id` made."""
    parts = chat_id.split(":")
    return len(parts) == _STABLE_PARTS and parts[0] == "webhook" and parts[2] == _SESSION


_STABLE_PARTS = 4
_LOOKALIKE_PARTS = 3


def _usable(value: object) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return str(value)
        except ValueError:  # beyond the interpreter's limit for decimal text
            return None
    return None


def _chat_id(route: str, kind: str, name: str) -> str:
    if not route.strip() or not name.strip():
        raise ValueError("a webhook chat id needs a route and an identifier")
    return f"webhook:{_encode(route)}:{kind}:{_encode(name)}"


def _encode(text: str) -> str:
    """Percent-encode everything but ASCII letters, digits, ``-``, ``_`` and ``.``; shorten with a digest."""
    raw = text.encode("utf-8", "surrogatepass")
    encoded = quote(raw, safe="").replace("~", "%7E")
    if len(encoded) <= _MAX_ENCODED:
        return encoded
    # "~" never appears in the plain form, so no short identifier can imitate a shortened one.
    return f"{encoded[:_READABLE_PREFIX]}~{sha256(raw).hexdigest()}"
