"""Reads the host's task-local provenance of a turn and translates messages into the host's events.

Host modules are imported when they are needed: importing this module costs nothing where no gateway runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

from canon_hermes_plugin.infrastructure.hermes import compat
from canon_hermes_plugin.infrastructure.hermes.compat import HostObject
from canon_hermes_plugin.infrastructure.hermes.config import PLATFORM
from canon_hermes_plugin.ports.host import InboundMessage, SessionSnapshot

_LOG = logging.getLogger(__name__)

INBOUND = "canon_inbound"
"""Key in an event's own metadata under which the admitted message travels."""


class HermesSessionContext:
    """Implements :class:`canon_hermes_plugin.ports.host.SessionContext` over ``gateway.session_context``."""

    def snapshot(self) -> SessionSnapshot:
        try:
            return _read(compat.module("gateway.session_context").get_session_env)
        except Exception as error:  # noqa: BLE001 - what cannot be read is nobody's turn (interactions §2)
            if not isinstance(error, ImportError):
                _LOG.warning("the host's session variables cannot be read: %s", type(error).__name__)
            return SessionSnapshot()


def _read(get_session_env: Callable[[str, str], object]) -> SessionSnapshot:
    def read(name: str) -> str | None:
        value = get_session_env(f"HERMES_SESSION_{name}", "")
        text = value.strip() if isinstance(value, str) else ""
        return text or None

    return SessionSnapshot(
        platform=(read("PLATFORM") or "").casefold() or None,
        conversation_id=read("CHAT_ID"),
        user_id=read("USER_ID"),
        user_name=read("USER_NAME"),
        session_id=read("ID"),
        session_key=read("KEY"),
        message_id=read("MESSAGE_ID"),
    )


def to_event(adapter: HostObject, message: InboundMessage) -> HostObject:
    """Return the host's event for an admitted message (turns §1.5, §1.6).

    Raises:
        ValueError: a blank conversation: the host would put every such chat into one session (field fault 22).
    """
    if not message.conversation_id.strip():
        raise ValueError("a message needs a conversation id")
    base = compat.module("gateway.platforms.base")
    source = adapter.build_source(
        chat_id=message.conversation_id,
        chat_name=message.chat_name,
        chat_type="group" if message.chat_kind == "group" else "dm",
        user_id=message.user_id,
        user_name=message.user_name,
        message_id=message.message_id,
    )
    metadata: dict[str, Any] = {INBOUND: message}
    if message.intent is not None:
        metadata["deliveryIntent"] = message.intent
    return base.MessageEvent(
        text=message.text,
        message_type=base.MessageType(message.kind),
        source=source,
        raw_message=dict(message.raw),
        message_id=message.message_id,
        reply_to_message_id=message.reply_to,
        channel_prompt=message.channel_prompt,
        channel_context=getattr(message, "channel_context", None),
        media_urls=[item.path for item in message.media],
        media_types=[item.mime_type for item in message.media],
        metadata=metadata,
    )


def command_event(text: str, source: HostObject) -> HostObject:
    """Return a synthetic command for a running session, addressed exactly like the run it is meant for."""
    base = compat.module("gateway.platforms.base")
    return base.MessageEvent(text=text, message_type=base.MessageType.COMMAND, source=source)


def text_event(text: str, source: HostObject) -> HostObject:
    """Return a plain event for a text whose message is not known any more."""
    return compat.module("gateway.platforms.base").MessageEvent(text=text, source=source)


def inbound_of(event: HostObject) -> InboundMessage | None:
    """Return the admitted message an event was made from, ``None`` for events the host made up."""
    metadata: object = getattr(event, "metadata", None)
    found = cast("dict[str, Any]", metadata).get(INBOUND) if isinstance(metadata, dict) else None
    return found if isinstance(found, InboundMessage) else None


def is_synthetic(event: HostObject) -> bool:
    """Whether the plugin itself made the message behind an event: nobody wrote it."""
    message = inbound_of(event)
    return message is not None and message.synthetic


def canon_message_id(event: HostObject) -> str | None:
    """Return the real Canon id of the message behind an event; synthetic ids of any origin give ``None``."""
    message = inbound_of(event)
    if message is not None:
        return None if message.synthetic else message.message_id
    # The host's /queue command builds a fresh event around the payload it was typed in.
    raw: object = getattr(event, "raw_message", None)
    inner = cast("dict[str, Any]", raw).get("message") if isinstance(raw, dict) else None
    found = cast("dict[str, Any]", inner).get("id") if isinstance(inner, dict) else None
    return found if isinstance(found, str) and found else None


def session_key(source: HostObject, *, per_user: bool, per_thread_user: bool) -> str:
    """Return the host's routing key: its own derivation, never a second copy (field row 24)."""
    derive = compat.module("gateway.session").build_session_key
    return str(derive(source, group_sessions_per_user=per_user, thread_sessions_per_user=per_thread_user))


def is_command(event: HostObject, *names: str) -> bool:
    """Whether the host treats the event as a command, or as one of the commands ``names``."""
    return bool(event.is_command()) and (not names or event.get_command() in names)


def platform() -> HostObject:
    """Return the host's platform value for Canon; valid once the platform is registered."""
    return compat.module("gateway.config").Platform(PLATFORM)


def sender_of(message: InboundMessage) -> str | None:
    """Return the id of whoever sent a message, human or agent, as Canon's payload names it."""
    if message.user_id is not None:
        return message.user_id
    inner: object = message.raw.get("message")
    sender = cast("dict[str, Any]", inner).get("senderId") if isinstance(inner, dict) else None
    return sender if isinstance(sender, str) else None
