"""The actions of the model-facing tool: from its arguments to a result (interactions §4, §5).

Decides how arguments are read, which conversation and responder count, and what the model is told. It trusts the
session context only; ``responseUserId`` is never read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, final

from canon_hermes_plugin.domain.approvals import outcomes
from canon_hermes_plugin.domain.approvals.creation import ApprovalCreation, ApprovalOrder
from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.approvals.ownership import ownership
from canon_hermes_plugin.domain.approvals.question import build_question
from canon_hermes_plugin.domain.approvals.transitions import Step
from canon_hermes_plugin.domain.cards.validate import validate_card
from canon_hermes_plugin.domain.interactions import limits, reach_out, responders
from canon_hermes_plugin.domain.interactions.questions import CardOrder, InputOrder, Questions
from canon_hermes_plugin.domain.interactions.schema import ACTIONS
from canon_hermes_plugin.ports.host import SessionContext
from canon_hermes_plugin.ports.interactions import CanonAccess, Silencer, SilenceReporter
from canon_hermes_plugin.ports.time import Clock

Result = Mapping[str, Any]
Arguments = Mapping[str, Any]

SILENT_NOTE: Final = "Accepted: this turn ends without a message and nothing was posted. Stop here."


@dataclass(frozen=True, slots=True)
class ActionDeps:
    """What the actions work with.

    Attributes:
        session: trusted provenance of the calling thread.
        access: opens short-lived, verified clients.
        desk: the approvals ledger's one consumer.
        creation: creates detached approvals.
        silencer: ends the running turn in silence.
        reporter: tells Canon about it.
        clock: wall clock and waits.
        home_channel: the conversation to use outside of any (``CANON_HOME_CHANNEL``).
        interrupted: whether the host wants the calling run to stop.
    """

    session: SessionContext
    access: CanonAccess
    desk: ApprovalDesk
    creation: ApprovalCreation
    silencer: Silencer
    reporter: SilenceReporter
    clock: Clock
    home_channel: Callable[[], str | None]
    interrupted: Callable[[], bool]


@final
class ToolActions:
    """Carries out one call of the tool."""

    def __init__(self, deps: ActionDeps) -> None:
        self._on = deps
        self._actions: Mapping[str, Callable[[Arguments], Awaitable[Result]]] = {
            "request_card": self._request_card,
            "send_card": self._send_card,
            "request_input": self._request_input,
            "request_approval": self._request_approval,
            "check_approval": self._check_approval,
            "reach_out": self._reach_out,
            "no_reply": self._no_reply,
        }

    async def run(self, arguments: Arguments) -> Result:
        """Carry out ``arguments["action"]`` and return its result.

        Raises:
            ValueError: an argument is missing or unusable; the text says which and what to do.
            CanonPluginError: Canon or the ledger failed.
        """
        action = self._actions.get(_text(arguments.get("action")))
        if action is None:
            raise ValueError(f"action must be one of: {', '.join(ACTIONS)}")
        return await action(arguments)

    async def _request_card(self, arguments: Arguments) -> Result:
        return await self._card(arguments, wait=True)

    async def _send_card(self, arguments: Arguments) -> Result:
        return await self._card(arguments, wait=False)

    async def _card(self, arguments: Arguments, *, wait: bool) -> Result:
        card = arguments.get("card")
        if not isinstance(card, dict):
            raise TypeError("card must be an object (canon.card.v1)")
        verdict = validate_card(cast("object", card))
        if not verdict["ok"]:
            raise ValueError(
                f"The card is not valid: {verdict['errors'][0]}. Repair it; do not send it again unchanged."
            )
        order = CardOrder(
            card=cast("dict[str, Any]", card),
            conversation_id=self._conversation(arguments),
            seconds=limits.coerce_timeout(arguments.get("timeoutSeconds")),
            responder=self._trusted(),
            card_id=arguments.get("cardId") or None,
            wait=wait,
            extras=_given(arguments, "runtimeId", "turnId"),
        )
        async with self._on.access.verified() as canon:
            return await Questions(canon, self._on.clock, self._on.interrupted).ask_card(order)

    async def _request_input(self, arguments: Arguments) -> Result:
        order = self._input_order(arguments)
        async with self._on.access.verified() as canon:
            return await Questions(canon, self._on.clock, self._on.interrupted).ask_input(order)

    def _input_order(self, arguments: Arguments) -> InputOrder:
        input_id = _text(arguments.get("inputId"))
        if not input_id:
            raise ValueError("request_input needs inputId")
        choices, questions = _list(arguments.get("choices")), _list(arguments.get("questions"))
        sensitive = arguments.get("sensitive")
        if not all(isinstance(item, dict) for item in questions):
            raise ValueError("every entry of questions must be an object with id and question")
        kind = _text(arguments.get("kind")) or "clarify"
        lists = {name: value for name, value in (("choices", choices), ("questions", questions)) if value}
        fields: dict[str, Any] = {**_given(arguments, "title", "prompt", "turnId"), **lists}
        if isinstance(sensitive, bool):
            fields["sensitive"] = sensitive
        owner_only = responders.is_owner_only(kind, sensitive, questions)
        return InputOrder(
            conversation_id=self._conversation(arguments),
            input_id=input_id,
            kind=kind,
            seconds=limits.coerce_timeout(arguments.get("timeoutSeconds")),
            responder=None if owner_only else self._trusted(),
            fields=fields,
        )

    async def _request_approval(self, arguments: Arguments) -> Result:
        order = ApprovalOrder(
            question=build_question(
                title=arguments.get("title"),
                question=arguments.get("question"),
                options=arguments.get("options"),
                context=arguments.get("context"),
            ),
            conversation_id=self._conversation(arguments),
            responder=self._trusted(),
            timeout_ms=limits.detached_timeout(arguments.get("timeoutSeconds")) * 1000,
        )
        return await self._on.creation.request(order, self._on.access.verified)

    async def _check_approval(self, arguments: Arguments) -> Result:
        approval_id = _text(arguments.get("approvalId"))
        if not approval_id:
            raise ValueError("check_approval needs approvalId")
        return await self.check(approval_id, responders.active_conversation(self._on.session.snapshot()))

    async def check(self, approval_id: str, conversation_id: str | None) -> Result:
        """Return where a detached approval stands (interactions §5.4).

        Args:
            approval_id: what ``request_approval`` returned.
            conversation_id: of the calling Canon turn; ``None`` outside of any.

        Raises:
            PermissionError: the approval belongs to another conversation; nothing was claimed or sent (D22, I34).
            CanonError: Canon could not be asked.
            LedgerError: the ledger cannot be used.
        """
        entry = await self._on.desk.find(approval_id)
        if entry is None:
            return outcomes.unknown({"approvalId": approval_id})
        if conversation_id is not None and entry["conversationId"] != conversation_id:
            raise PermissionError("This approval belongs to another conversation; it can be checked only there")
        if ownership(entry, self._on.desk.identity) == "foreign":
            return outcomes.unknown({"approvalId": approval_id}, outcomes.NOTE_FOREIGN)
        if entry["status"] in {"resolved", "expired", "orphaned"}:
            return outcomes.told(Step("cached", "terminal", entry, changed=False), approval_id)
        async with self._on.access.verified() as canon:
            return await self._on.desk.consume(canon, approval_id, wake=False)

    async def _reach_out(self, arguments: Arguments) -> Result:
        wish = reach_out.build_reach_out(
            target_user_id=arguments.get("targetUserId"),
            text=arguments.get("text"),
            request_message=arguments.get("requestMessage"),
        )
        async with self._on.access.verified() as canon:
            result = await canon.call_verb(reach_out.VERB, envelope=wish.envelope(), value=wish.value())
        return reach_out.read_result(wish, result)

    async def _no_reply(self, arguments: Arguments) -> Result:
        snapshot = self._on.session.snapshot()
        conversation = responders.active_conversation(snapshot)
        if conversation is None:
            raise ValueError("no_reply works only inside a Canon conversation's turn; nothing was silenced")
        target = limits.strip_target(_text(arguments.get("target")))
        if target and target != conversation:
            raise ValueError("no_reply ends this turn only; it cannot silence another conversation")
        if not self._on.silencer.silence(conversation):
            raise ValueError("There is no open turn to silence: answer normally, or say nothing and stop")
        reason = arguments.get("reason")
        reasoned = isinstance(reason, str) and bool(reason.strip())
        await self._on.reporter.report(conversation, snapshot.message_id, reasoned=reasoned)
        return {"status": "acknowledged", "conversationId": conversation, "note": SILENT_NOTE}

    def _conversation(self, arguments: Arguments) -> str:
        active = responders.active_conversation(self._on.session.snapshot())
        return limits.resolve_conversation(arguments.get("target"), active, self._on.home_channel())

    def _trusted(self) -> str | None:
        return responders.trusted_user(self._on.session.snapshot())


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _given(arguments: Arguments, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := arguments.get(name))}
