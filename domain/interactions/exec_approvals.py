"""Exec approvals: what is shown, what an answer allows, and which of several waits it settles (interactions §7.4).

The host settles *the oldest* wait of a session unless it can be told which one. An answer never settles another
command than the one it was given for (D2): where the host cannot be told, younger answers wait for older questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, final

from canon_hermes_plugin.domain.interactions.responders import is_stranger
from canon_hermes_plugin.ports.interactions import ExecChoice, HostWait

COMMAND_LIMIT: Final = 4_000
REASON_LIMIT: Final = 1_000
_ECHO_LIMIT: Final = 256
_SESSION_RULES: Final = frozenset({"approve-all", "approve-tool"})


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """A dangerous command as it is put to a person (canon-wire §9.1)."""

    approval_id: str
    conversation_id: str
    session_key: str
    command: str
    reason: str
    expires_at: int
    responder: str | None
    session_rule: bool

    def body(self) -> dict[str, Any]:
        """Return the create body."""
        body: dict[str, Any] = {
            "interactionKind": "approval",
            "conversationId": self.conversation_id,
            "approvalId": self.approval_id,
            "toolName": "Command",
            "toolSummary": self.reason[:REASON_LIMIT],
            "expiresAt": self.expires_at,
            "category": "command",
            "risk": "high",
            "riskLevel": "destructive",
            "allowSessionRule": self.session_rule,
            "details": [
                {"label": "Command", "value": self.command[:COMMAND_LIMIT], "monospace": True},
                {"label": "Reason", "value": self.reason[:REASON_LIMIT]},
            ],
            "native": {
                "runtime": "hermes",
                "method": "exec_approval",
                "requestId": self.approval_id,
                "sessionKey": self.session_key,
            },
        }
        return body | ({"responseUserId": self.responder} if self.responder else {})


def rule_in_force(requested: bool, answer: Mapping[str, Any]) -> bool:
    """Return whether a session rule counts: ours and the server's permission together."""
    echoed = answer.get("allowSessionRule")
    return requested and (echoed if isinstance(echoed, bool) else True)


def choice_of(answer: Mapping[str, Any] | None, *, responder: str | None, session_rule: bool) -> ExecChoice:
    """Return what the host is told. Everything but an attributable ``allow`` is a denial (D20)."""
    if answer is None or answer.get("status") != "allow" or is_stranger(responder, answer):
        return "deny"
    rule = answer.get("sessionRule")
    kind: object = cast("Mapping[str, Any]", rule).get("type") if isinstance(rule, Mapping) else None
    return "session" if session_rule and isinstance(kind, str) and kind in _SESSION_RULES else "once"


@dataclass(slots=True)
class _Open:
    approval_id: str
    command: str
    wait: HostWait
    choice: ExecChoice | None = None
    closed: bool = False


@final
class ExecQueue:
    """The open exec approvals of every session, oldest first. Used on the gateway loop only."""

    def __init__(self) -> None:
        self._sessions: dict[str, list[_Open]] = {}
        self._echoes: Counter[tuple[str, str]] = Counter()

    def taken(self, session_key: str) -> list[HostWait]:
        """Return the host waits that already belong to a request."""
        return [item.wait for item in self._sessions.get(session_key, [])]

    def add(self, session_key: str, approval_id: str, command: str, wait: HostWait) -> None:
        """Remember a request that was just shown."""
        self._sessions.setdefault(session_key, []).append(_Open(approval_id, command, wait))

    def abandoned(self, session_key: str, approval_id: str) -> bool:
        """Return whether the host no longer waits for this request's answer."""
        item = self._find(session_key, approval_id)
        return item is None or item.closed or not item.wait.waiting()

    def answer(self, session_key: str, approval_id: str, choice: ExecChoice) -> None:
        """Settle the request, at once or when every older one of its session is closed."""
        item = self._find(session_key, approval_id)
        if item is not None:
            item.choice = choice
            self._advance(session_key)

    def drop(self, session_key: str, approval_id: str) -> None:
        """Forget a request whose answer nobody waits for."""
        item = self._find(session_key, approval_id)
        if item is not None:
            item.closed = True
            self._advance(session_key)

    def host_closed(self, session_key: str, command: str) -> None:
        """The host closed its oldest wait for ``command``: its late answer must not reach another one.

        The host also reports what we settled ourselves; waits it lets us identify tell by themselves.
        """
        if self._echoes[session_key, command] > 0:
            self._echoes[session_key, command] -= 1
            return
        for item in self._sessions.get(session_key, []):
            if item.command == command and not item.closed and not item.wait.exact:
                item.closed = True
                break
        self._advance(session_key)

    def _find(self, session_key: str, approval_id: str) -> _Open | None:
        items = self._sessions.get(session_key, [])
        return next((item for item in items if item.approval_id == approval_id), None)

    def _advance(self, session_key: str) -> None:
        items = self._sessions.get(session_key, [])
        for item in list(items):
            oldest = items[0] is item
            if not item.closed and item.choice is not None and (item.wait.exact or oldest):
                if item.wait.settle(item.choice) and not item.wait.exact:
                    self._echoes[session_key, item.command] += 1
                item.closed = True
            if item.closed:
                items.remove(item)
        if not items:
            self._sessions.pop(session_key, None)
            if len(self._echoes) > _ECHO_LIMIT:
                self._echoes.clear()
