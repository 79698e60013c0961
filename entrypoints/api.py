"""The public functions for code that runs inside a Canon turn: other plugins' tools, scripts the agent calls (§10).

Every function acts in the current conversation and asks the human of the current turn: there is no way to name another
conversation or person. The async ones may be awaited on any event loop and never block it. Importing this module loads
neither the host nor the HTTP client.

Canon's refusals are ``CanonApiError``: ``from canon_hermes_plugin.ports.errors import CanonApiError``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from canon_hermes_plugin.cards import interactive, validate_card

if TYPE_CHECKING:
    from canon_hermes_plugin.domain.interactions.actions import ActionDeps
    from canon_hermes_plugin.ports.host import SessionSnapshot

MAX_UPLOAD_BYTES: Final = 10_485_760
MAX_NAME_CHARS: Final = 255


@dataclass(frozen=True)
class CanonTurnContext:
    """Where the calling code runs.

    Attributes:
        conversation_id: the Canon conversation of the turn.
        user_id: the human who triggered it; ``None`` for agents and background work.
        user_name: their display name, untrusted.
        session_id: the host's session.
        message_id: the Canon message that triggered the turn.
    """

    conversation_id: str
    user_id: str | None = None
    user_name: str | None = None
    session_id: str | None = None
    message_id: str | None = None


@dataclass(frozen=True)
class CanonInboundMedia:
    """One attachment of the message that triggered the turn, exactly as it was received.

    Attributes:
        message_id: the Canon message it came with.
        attachment_index: its place among the message's attachments, from 0.
        mime_type: descriptive, as declared.
        file_name: as the sender named it, untrusted: the last path component, one line of 1 to 255 characters, never
            ``.`` or ``..``. Some file systems refuse such a name (``nul.txt``, ``a:b``): do not write a file under it.
        data: the bytes.
    """

    message_id: str
    attachment_index: int
    mime_type: str
    file_name: str
    data: bytes = field(repr=False)

    @property
    def size_bytes(self) -> int:
        """Number of bytes."""
        return len(self.data)


def current_canon_turn(*, require_human: bool = False) -> CanonTurnContext:
    """Return the Canon turn the calling code runs in.

    Args:
        require_human: refuse turns that no human triggered.

    Raises:
        TypeError: ``require_human`` is neither ``True`` nor ``False``.
        RuntimeError: this is no Canon turn, or no human triggered it.
    """
    _check_flag("require_human", require_human)
    snapshot = _snapshot()
    if snapshot.platform != "canon" or not snapshot.conversation_id:
        raise RuntimeError(
            "This code does not run inside a Canon turn: call it from a tool handler during a turn, "
            "or use the canon_turn fixture in tests"
        )
    if require_human and not snapshot.user_id:
        raise RuntimeError("No human triggered this Canon turn, so nobody can be asked")
    return CanonTurnContext(
        conversation_id=snapshot.conversation_id,
        user_id=snapshot.user_id,
        user_name=snapshot.user_name,
        session_id=snapshot.session_id,
        message_id=snapshot.message_id,
    )


def current_canon_inbound_media() -> tuple[CanonInboundMedia, ...]:
    """Return the attachments of the current turn's message; none when nothing was captured or it was evicted.

    Raises:
        RuntimeError: this is no Canon turn, or it has no message.
    """
    turn = current_canon_turn()
    if not turn.message_id:
        raise RuntimeError("No Canon message triggered this turn")
    from canon_hermes_plugin.infrastructure.hermes.live import LIVE

    held = [item for adapter in LIVE.all() for item in adapter.captures.read(turn.conversation_id, turn.message_id)]
    return tuple(
        CanonInboundMedia(item.message_id, item.index, item.mime_type, item.file_name, item.data) for item in held
    )


async def request_card_for_current_human(
    card: object, *, timeout_seconds: int = 300, native: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Show an interactive card to the human of this turn and wait for the answer.

    Args:
        card: a ``canon.card.v1`` object with at least one action.
        timeout_seconds: 5 to 1,800; what lies outside is clamped to the nearer bound, a fraction is cut off, what is
            no number means the default of 300 (interactions §4.1).
        native: opaque data of the caller, a mapping of what JSON can hold, sent along.

    Returns:
        The answer (``status``, ``actionId``, ``values``, ``respondedBy``, …), or ``status: timeout``.

    Raises:
        ValueError: the card is no object, is not valid, or has no action; ``native`` is no mapping of what
            JSON can hold.
        RuntimeError: no human triggered this turn, or Canon routed the card to, or was answered by, somebody else.
        CanonApiError: Canon refused; import it from ``canon_hermes_plugin.ports.errors``.
    """
    _check_card(card, actions=True)
    _check_native(native)
    turn = current_canon_turn(require_human=True)
    result = await _ask_card(card, turn, native, timeout_seconds, wait=True)
    asked = cast("Mapping[str, Any]", result.get("request") or {}).get("responseUserId")
    if asked is not None and asked != turn.user_id:
        raise RuntimeError("Canon routed the card to another person than the one of this turn")
    return result


async def send_card_to_current_conversation(card: object, *, native: dict[str, Any] | None = None) -> dict[str, Any]:
    """Show a card without actions in this turn's conversation; returns at once.

    Args:
        card: a ``canon.card.v1`` object without actions.
        native: opaque data of the caller, a mapping of what JSON can hold, sent along.

    Raises:
        ValueError: the card is no object, is not valid, or has an action; ``native`` is no mapping of what
            JSON can hold.
        RuntimeError: this is no Canon turn.
        CanonApiError: Canon refused; import it from ``canon_hermes_plugin.ports.errors``.
    """
    _check_card(card, actions=False)
    _check_native(native)
    return await _ask_card(card, current_canon_turn(), native, 300, wait=False)


async def upload_media_for_current_conversation(
    data: bytes, mime_type: str, *, file_name: str | None = None
) -> dict[str, Any]:
    """Store bytes at Canon for this turn's conversation and return Canon's object (``url``, usually ``attachment``).

    Args:
        data: 1 to 10,485,760 bytes.
        mime_type: text such as ``image/png``, at most 255 characters; sent trimmed and lower-cased.
        file_name: the name people see, 1 to 255 characters on one line, without folders; ``None`` for no name.

    Raises:
        RuntimeError: this is no Canon turn.
        TypeError: ``data`` is not ``bytes``, or ``file_name`` is neither text nor ``None``.
        ValueError: ``data`` or ``file_name`` is out of these bounds, or ``mime_type`` is not of this form.
        CanonApiError: Canon refused; import it from ``canon_hermes_plugin.ports.errors``.
    """
    turn = current_canon_turn()
    if not _is_bytes(data):
        raise TypeError("data must be bytes")
    if not 0 < len(data) <= MAX_UPLOAD_BYTES:
        raise ValueError(f"data must hold 1 to {MAX_UPLOAD_BYTES} bytes, not {len(data)}")
    mime = _checked_mime(mime_type)
    _check_file_name(file_name)
    from canon_hermes_plugin.ports.canon import Upload

    deps = await _deps()
    async with deps.access.verified() as canon:
        return dict(await canon.upload(Upload(turn.conversation_id, data, mime, file_name)))


async def request_detached_approval_for_current_human(
    *,
    title: str | None = None,
    question: str | None = None,
    options: list[str] | None = None,
    context: str | dict[str, Any] | None = None,
    timeout_seconds: int | None = None,
) -> dict[str, Any]:
    """Ask the human of this turn for a decision that may take hours; returns ``status: pending`` at once.

    Args:
        title: heading; its first 128 characters are shown.
        question: what is to be decided, its first 1,000 characters; title or question is needed.
        options: a list, of which the first 8 are shown; the answer is allow or deny all the same. Anything else is
            ignored (interactions §5.3).
        context: a text, or a mapping of which the first 6 rows are shown: labels of 80 characters, values of 500.
            Anything else is ignored.
        timeout_seconds: 5 to 259,200 (72 hours, the default); what lies outside is clamped to the nearer bound, a
            fraction is cut off, what is no number means the default (interactions §4.1).

    Raises:
        RuntimeError: no human triggered this turn, the ledger cannot be used, or Canon asked somebody else.
        TypeError: title or question is neither text nor ``None``.
        ValueError: neither title nor question has text.
        CanonApiError: Canon refused; import it from ``canon_hermes_plugin.ports.errors``.
    """
    turn = current_canon_turn(require_human=True)
    _check_text_or_none("title", title)
    _check_text_or_none("question", question)
    from canon_hermes_plugin.domain.approvals.creation import ApprovalOrder
    from canon_hermes_plugin.domain.approvals.question import build_question
    from canon_hermes_plugin.domain.interactions.limits import detached_timeout

    order = ApprovalOrder(
        question=build_question(title=title, question=question, options=options, context=context),
        conversation_id=turn.conversation_id,
        responder=turn.user_id,
        timeout_ms=detached_timeout(timeout_seconds) * 1000,
    )
    deps = await _deps()
    result = dict(await deps.creation.request(order, deps.access.verified))
    if result.get("responseUserId") not in {None, turn.user_id}:
        raise RuntimeError("Canon asked another person than the one of this turn")
    return result


async def check_detached_approval(approval_id: str) -> dict[str, Any]:
    """Return where a detached approval of this conversation stands.

    Returns:
        ``status`` is ``resolved`` (with ``decision``), ``pending``, ``expired`` or ``unknown``; the last is no denial.

    Raises:
        ValueError: ``approval_id`` is blank or no text.
        RuntimeError: this is no Canon turn, or the ledger cannot be used.
        PermissionError: the approval belongs to another conversation; nothing was asked.
        CanonApiError: Canon could not be asked; import it from ``canon_hermes_plugin.ports.errors``.
    """
    wanted = _stripped(approval_id)
    if not wanted:
        raise ValueError("approval_id must be the text that request_detached_approval_for_current_human returned")
    turn = current_canon_turn()
    from canon_hermes_plugin.domain.interactions.actions import ToolActions

    return dict(await ToolActions(await _deps()).check(wanted, turn.conversation_id))


def _is_bytes(value: object) -> bool:
    return isinstance(value, bytes)


def _snapshot() -> SessionSnapshot:
    from canon_hermes_plugin.infrastructure.hermes.host import HermesSessionContext

    return HermesSessionContext().snapshot()


async def _deps() -> ActionDeps:
    from canon_hermes_plugin import decisions

    return await decisions.caller_deps()


async def _ask_card(
    card: object, turn: CanonTurnContext, native: dict[str, Any] | None, timeout_seconds: int, *, wait: bool
) -> dict[str, Any]:
    from canon_hermes_plugin.domain.interactions.limits import coerce_timeout
    from canon_hermes_plugin.domain.interactions.questions import CardOrder, Questions

    order = CardOrder(
        card=cast("Mapping[str, Any]", card),
        conversation_id=turn.conversation_id,
        seconds=coerce_timeout(timeout_seconds),
        responder=turn.user_id if wait else None,
        wait=wait,
        strict=wait,
        extras={"native": dict(native)} if native else {},
    )
    deps = await _deps()
    async with deps.access.verified() as canon:
        return dict(await Questions(canon, deps.clock, deps.interrupted).ask_card(order))


def _check_card(card: object, *, actions: bool) -> None:
    if not isinstance(card, dict):
        raise ValueError("card must be an object")  # noqa: TRY004 - the contract's exception
    verdict = validate_card(cast("object", card))
    if not verdict["ok"]:
        raise ValueError("the card is not valid: " + "; ".join(verdict["errors"]))
    if interactive(cast("object", card)) is not actions:
        raise ValueError(
            "the card needs an action: use send_card_to_current_conversation to only show one"
            if actions
            else "the card must not have actions: use request_card_for_current_human to ask with one"
        )


def _check_native(native: object) -> None:
    if native is not None and not isinstance(native, Mapping):
        raise ValueError(f"native must be a mapping, not {type(native).__name__}")
    try:
        json.dumps(dict(cast("Mapping[object, object]", native or {})), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"native must hold only what JSON can hold: {error}") from None


def _checked_mime(mime_type: object) -> str:
    mime = _stripped(mime_type).lower()
    if "/" not in mime or len(mime) > MAX_NAME_CHARS or not mime.isprintable():
        raise ValueError(f"mime_type must be text like image/png, at most {MAX_NAME_CHARS} characters")
    return mime


def _check_file_name(name: object) -> None:
    _check_text_or_none("file_name", name)
    if name is None:
        return
    text = _stripped(name)
    if not text or len(str(name)) > MAX_NAME_CHARS or set(text) & set("/\\\0\r\n"):
        raise ValueError(f"file_name must be None or one line of 1 to {MAX_NAME_CHARS} characters without folders")


def _check_flag(argument: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{argument} must be True or False, not {type(value).__name__}")


def _check_text_or_none(argument: str, value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{argument} must be text or None, not {type(value).__name__}")


def _stripped(value: object) -> str:
    """Return text without surrounding white space, nothing for what is no text."""
    return value.strip() if isinstance(value, str) else ""
