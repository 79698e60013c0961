"""Questions the host puts while its run blocks: clarify and exec approval (interactions §7).

It creates the request, waits in the background and brings the answer to
the very question it belongs to. It knows neither the host's modules nor how a turn publishes its state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

from canon_hermes_plugin.domain.interactions import clarify as words
from canon_hermes_plugin.domain.interactions import exec_approvals, limits, responders
from canon_hermes_plugin.domain.interactions.exec_approvals import ExecQueue, ExecRequest
from canon_hermes_plugin.domain.interactions.polling import AbandonedError, OpenRequest, wait_for_answer
from canon_hermes_plugin.ports.canon import InteractionPort
from canon_hermes_plugin.ports.errors import CanonError
from canon_hermes_plugin.ports.interactions import AskingTurn, HostQuestions
from canon_hermes_plugin.ports.time import Clock, IdSource, Tasks

logger = logging.getLogger(__name__)

_ID_DIGITS: Final = 20


@dataclass(frozen=True, slots=True)
class BlockingLimits:
    """Seconds a question stays open, already within bounds."""

    clarify: int = limits.BLOCKING_DEFAULT
    approval: int = limits.BLOCKING_DEFAULT


@dataclass(frozen=True, slots=True)
class ClarifyAsk:
    """The host's call of ``send_clarify``. ``responder`` is the captured or trusted human."""

    conversation_id: str
    question: str
    choices: object
    clarify_id: str
    session_key: str
    responder: str | None


@dataclass(frozen=True, slots=True)
class ExecAsk:
    """The host's call of ``send_exec_approval``."""

    conversation_id: str
    command: str
    session_key: str
    description: str
    responder: str | None
    smart_denied: bool = False


@dataclass(frozen=True, slots=True)
class BlockingDeps:
    """What the service works with. ``owner`` gives the owner's id once it is known."""

    canon: InteractionPort
    host: HostQuestions
    clock: Clock
    ids: IdSource
    tasks: Tasks
    owner: Callable[[], str | None]
    limits: BlockingLimits = BlockingLimits()


@final
class BlockingRequests:
    """Asks people on behalf of a blocked run."""

    def __init__(self, deps: BlockingDeps) -> None:
        self._on = deps
        self._queue = ExecQueue()

    async def clarify(self, ask: ClarifyAsk, turn: AskingTurn) -> Mapping[str, Any]:
        """Show a question and return Canon's answer to the create; the person's words reach the host later.

        Raises:
            CanonError: nobody was asked.
        """
        seconds = self._on.limits.clarify
        expires_at = self._on.clock.now_ms() + seconds * 1000
        # A host that mints no id would leave a question nobody can answer (field fault 29).
        input_id = ask.clarify_id.strip() or f"hermes-{self._on.ids.hex(_ID_DIGITS)}"
        created = await self._on.canon.create_interaction(_clarify_body(ask, input_id, expires_at))
        address = {"interactionKind": "input", "conversationId": ask.conversation_id, "inputId": input_id}
        # The person may also type the answer: then the host no longer waits, and the question is taken back.
        gone = partial(_nobody_waits, self._on.host, ask.session_key)
        request = OpenRequest(address, _effective(created, expires_at), gone)
        await turn.asked()
        self._on.tasks.spawn(self._await_clarify(ask, turn, request, seconds), name=f"canon-clarify-{input_id}")
        return created

    async def exec_approval(self, ask: ExecAsk, turn: AskingTurn) -> Mapping[str, Any]:
        """Show a dangerous command and return Canon's answer to the create; the decision reaches the host later.

        Raises:
            CanonError: nobody was asked.
        """
        request = self._exec_request(ask)
        wait = self._on.host.exec_wait(ask.session_key, ask.command, self._queue.taken(ask.session_key))
        self._queue.add(ask.session_key, request.approval_id, ask.command, wait)
        try:
            created = await self._on.canon.create_interaction(request.body())
        except BaseException:
            self._queue.drop(ask.session_key, request.approval_id)
            raise
        await turn.asked()
        name = f"canon-approval-{request.approval_id}"
        self._on.tasks.spawn(self._await_exec(request, turn, created), name=name)
        return created

    def host_closed(self, session_key: str, command: str) -> None:
        """Note that the host closed an exec approval; called on the gateway loop (``post_approval_response``)."""
        self._queue.host_closed(session_key, command)

    def _exec_request(self, ask: ExecAsk) -> ExecRequest:
        responder = responders.exec_responder(ask.command, ask.responder)
        seconds = limits.capped_by_host(self._on.limits.approval, self._on.host.exec_seconds())
        rule = responders.may_offer_session_rule(responder, self._on.owner(), smart_denied=ask.smart_denied)
        return ExecRequest(
            approval_id=f"hermes-{self._on.ids.hex(_ID_DIGITS)}",
            conversation_id=ask.conversation_id,
            session_key=ask.session_key,
            command=ask.command,
            reason=ask.description,
            expires_at=int(self._on.clock.now_ms() + seconds * 1000),
            responder=responder,
            session_rule=rule,
        )

    async def _await_clarify(self, ask: ClarifyAsk, turn: AskingTurn, request: OpenRequest, seconds: int) -> None:
        try:
            answer = await wait_for_answer(self._on.canon, request, self._on.clock)
        except AbandonedError:
            await turn.answered()
            return
        except CanonError as error:
            logger.debug("canon clarify %s: wait ended (%s)", request.address["inputId"], error.code)
            answer = None
        status = None if answer is None else answer.get("status")
        text = words.unanswered_text(seconds)
        if status == "cancelled" or (answer is not None and responders.is_stranger(ask.responder, answer)):
            text = words.CANCELLED_TEXT
        elif status == "submitted" and answer is not None:
            text = words.answer_text(answer)
        await turn.answered()
        self._on.host.settle_clarify(ask.clarify_id, text)

    async def _await_exec(self, request: ExecRequest, turn: AskingTurn, created: Mapping[str, Any]) -> None:
        key, approval_id = request.session_key, request.approval_id
        address = {
            "interactionKind": "approval",
            "conversationId": request.conversation_id,
            "approvalId": approval_id,
        }
        opened = OpenRequest(
            address, _effective(created, request.expires_at), lambda: self._queue.abandoned(key, approval_id)
        )
        try:
            answer = await wait_for_answer(self._on.canon, opened, self._on.clock)
        except (AbandonedError, asyncio.CancelledError) as ended:
            self._queue.drop(key, approval_id)
            if isinstance(ended, asyncio.CancelledError):
                raise
        except CanonError as error:
            logger.debug("canon approval %s: wait ended (%s)", approval_id, error.code)
            self._queue.answer(key, approval_id, "deny")
        else:
            rule = exec_approvals.rule_in_force(request.session_rule, created)
            choice = exec_approvals.choice_of(answer, responder=request.responder, session_rule=rule)
            self._queue.answer(key, approval_id, choice)
        finally:
            await turn.answered()


def _nobody_waits(host: HostQuestions, session_key: str) -> bool:
    return not host.clarify_waiting(session_key)


def _clarify_body(ask: ClarifyAsk, input_id: str, expires_at: int) -> dict[str, Any]:
    body: dict[str, Any] = {
        "interactionKind": "input",
        "conversationId": ask.conversation_id,
        "inputId": input_id,
        "kind": "clarify",
        "title": words.TITLE,
        "prompt": ask.question,
        "expiresAt": expires_at,
        "native": {
            "runtime": "hermes",
            "method": "clarify",
            "requestId": input_id,
            "sessionKey": ask.session_key,
        },
    }
    choices = words.normalise_choices(ask.choices)
    if choices:
        body["choices"] = choices
    return body | ({"responseUserId": ask.responder} if ask.responder else {})


def _effective(created: Mapping[str, Any], expires_at: int) -> float:
    """Return when the wait ends: the server may have shortened it."""
    value = created.get("expiresAt")
    return min(value, expires_at) if isinstance(value, int | float) and not isinstance(value, bool) else expires_at
