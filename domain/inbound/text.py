"""Decides what the model reads of a message: its text, or a label for what is not text (turns §1.6, canon-wire §6.2).

A label never carries a URL (it may be signed) nor more than the last component of a file name. It refuses to know
whether the message is admitted and what becomes of its attachments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from canon_hermes_plugin.domain.inbound.turn_gate import HUMAN
from canon_hermes_plugin.domain.reading import inert, is_mapping, mapping, sequence, string
from canon_hermes_plugin.ports.host import MessageKind

_NAME_CHARS: Final = 120
_FACT_CHARS: Final = 300
_LABELS: Final = 50
_TOKEN: Final = re.compile(r"[\w.+-]{1,40}(?:/[\w.+-]{1,40})?", re.ASCII)
_CARD_FACTS: Final = (("userType", ""), ("userId", "userId: "), ("ownerName", "owner: "), ("about", "about: "))
_PRECEDENCE: Final[Mapping[MessageKind, int]] = {"voice": 4, "audio": 4, "video": 3, "photo": 2, "document": 1}


def compose(message: Mapping[str, Any]) -> str:
    """Return the message's text; empty when it says nothing at all."""
    content_type = message.get("contentType")
    if content_type == "contact_card":
        return _contact_card(message)
    text = string(message.get("text"))
    if text is not None:
        return text
    attachments = [mapping(item) for item in sequence(message.get("attachments")) if is_mapping(item)]
    if attachments:
        labels = [_attachment_label(item, content_type) for item in attachments[:_LABELS]]
        return f"[{'; '.join(labels)}]"
    if isinstance(content_type, str) and content_type != "text":
        return f"[{_token(content_type) or 'unreadable'} message]"
    return ""


def has_caption(message: Mapping[str, Any]) -> bool:
    """Tell whether the composed text holds words of a person rather than labels for attachments (turns §9.4)."""
    return message.get("contentType") == "contact_card" or string(message.get("text")) is not None


def with_markers(message: Mapping[str, Any], base: str, markers: str) -> str:
    """Return the text with the trusted-media markers: after a caption, instead of labels (turns §9.4)."""
    if not markers:
        return base
    return f"{base}\n\n{markers}" if has_caption(message) else markers


def words_of_an_agent(text: str) -> str:
    """Return what an agent wrote so that the host does not run it as a command: only people command and approve."""
    return f"[agent message] {text}" if _is_command(text) else text


def message_kind(text: str, media: Iterable[MessageKind] = ()) -> MessageKind:
    """Return the host's kind of the message: a command wins, then the weightiest attachment, then text."""
    if _is_command(text):
        return "command"
    kinds: list[MessageKind] = ["text", *media]
    return max(kinds, key=_weight)


def is_stop(message: Mapping[str, Any]) -> bool:
    """Tell whether a person typed the host's command that ends a run: nothing has to be fetched before it acts."""
    text = message.get("text")
    if not isinstance(text, str) or text[:5].lower() != "/stop" or message.get("senderType") != HUMAN:
        return False
    return text.split(maxsplit=1)[0].lower().partition("@")[0] == "/stop" and not sequence(message.get("attachments"))


def _is_command(text: str) -> bool:
    return text.lstrip().startswith("/")


def _weight(kind: MessageKind) -> int:
    return _PRECEDENCE.get(kind, 0)


def base_name(name: object) -> str:
    """Return the last component of a declared file name, one line, or nothing when it looks like a URL."""
    if not isinstance(name, str) or "://" in name:
        return ""
    return inert(name.replace("\\", "/").rpartition("/")[2], _NAME_CHARS)


def _attachment_label(attachment: Mapping[str, Any], content_type: object) -> str:
    kind = _token(attachment.get("kind")) or _token(content_type) or "file"
    name = base_name(attachment.get("fileName"))
    return f"{kind} attachment: {name}" if name else f"{kind} attachment"


def _contact_card(message: Mapping[str, Any]) -> str:
    card = message.get("contactCard")
    label = "[Contact card]"
    if is_mapping(card):
        fields = mapping(card)
        label += f' "{inert(fields.get("displayName"), _FACT_CHARS) or "Unknown"}"'
        facts = [f"{prefix}{value}" for key, prefix in _CARD_FACTS if (value := inert(fields.get(key), _FACT_CHARS))]
        if facts:
            label += f" - {'; '.join(facts)}"
    text = string(message.get("text"))
    return label if text is None else f"{label}\n{text.strip()}"


def _token(value: object) -> str | None:
    """Return a short technical word, which no URL is."""
    return value if isinstance(value, str) and _TOKEN.fullmatch(value) else None
