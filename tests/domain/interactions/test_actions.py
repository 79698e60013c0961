"""The tool's actions: arguments, trusted context, results and errors (interactions §4, §5)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from canon_hermes_plugin.domain.approvals.creation import ApprovalCreation
from canon_hermes_plugin.domain.approvals.desk import ApprovalDesk
from canon_hermes_plugin.domain.approvals.ownership import LedgerIdentity
from canon_hermes_plugin.domain.interactions.actions import ActionDeps, ToolActions
from canon_hermes_plugin.domain.interactions.schema import ACTIONS
from canon_hermes_plugin.infrastructure.hermes.tool import CanonTool
from canon_hermes_plugin.infrastructure.memory.access import MemoryAccess
from canon_hermes_plugin.infrastructure.memory.approval_store import MemoryLedger
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.session import MemorySession
from canon_hermes_plugin.infrastructure.memory.silence import MemorySilencer, MemorySilenceReporter, QuietTurn
from canon_hermes_plugin.infrastructure.memory.time import SeededIds, VirtualClock
from canon_hermes_plugin.ports.errors import CanonApiError, CredentialsError
from canon_hermes_plugin.ports.host import SessionSnapshot

CARD = {
    "schema": "canon.card.v1",
    "cardId": "berth_42",
    "title": "Berth",
    "fallbackText": "Release?",
    "blocks": [{"kind": "actions", "actions": [{"id": "release", "label": "Release"}]}],
}
PLAIN_CARD = {**CARD, "blocks": [{"kind": "callout", "text": "Hello"}]}


class Rig:
    def __init__(self) -> None:
        self.clock = VirtualClock(instant=True)
        self.canon = MemoryCanon(clock=self.clock)
        self.ledger = MemoryLedger(self.clock.now_ms)
        self.session = MemorySession(SessionSnapshot("canon", "cv", "u_77", "Dana", "s", "key", "msg_1"))
        self.home: str | None = None
        self.access = MemoryAccess(self.canon)
        self.silencer, self.turn = MemorySilencer(), QuietTurn("cv")
        self.interrupted = False
        ids = SeededIds()
        desk = ApprovalDesk(self.ledger, self.clock, ids, "p")
        desk.identity = LedgerIdentity("ag_5")
        creation = ApprovalCreation(desk, self.clock, ids)
        self.desk = desk
        self.actions = ToolActions(
            ActionDeps(
                session=self.session,
                access=self.access,
                desk=desk,
                creation=creation,
                silencer=self.silencer,
                reporter=MemorySilenceReporter(self.canon),
                clock=self.clock,
                home_channel=lambda: self.home,
                interrupted=lambda: self.interrupted,
            )
        )
        self.tool = CanonTool(self._runner, lambda: True)

    async def _runner(self):
        return self.actions

    async def call(self, **arguments: Any) -> dict[str, Any]:
        self.silencer.enter(self.turn)
        text = await self.tool.handle(arguments, task_id="t", session_id="s", user_task="x")
        assert isinstance(text, str)
        return json.loads(text)

    def created(self) -> list[Any]:
        return [call.subject for call in self.canon.calls if call.operation == "create_interaction"]

    def answer_first(self, kind: str, identifier: str, answer: dict[str, Any], by: str | None = None) -> None:
        original = self.canon.interactions.create

        def create(body):
            made = original(body)
            self.canon.interactions.answer(kind, identifier, answer, by=by)
            return made

        self.canon.interactions.create = create  # type: ignore[method-assign]


@pytest.fixture
def rig():
    return Rig()


@pytest.mark.parametrize(
    "arguments", [{}, {"action": "plan"}, {"action": None}, {"action": " "}, {"action": ["send_card"]}]
)
async def test_an_unknown_action_names_exactly_the_known_ones(rig, arguments):
    result = await rig.call(**arguments)
    assert result["success"] is False
    words = {word.strip(",.") for word in result["error"].split() if "_" in word}
    assert words == set(ACTIONS)


async def test_a_call_without_arguments_is_an_error_and_never_raises(rig):
    assert json.loads(await rig.tool.handle(None))["success"] is False
    assert json.loads(await rig.tool.handle())["success"] is False


# --- cards ----------------------------------------------------------------------------------------------------------


async def test_an_answered_card_comes_back_whole(rig):
    rig.answer_first("card", "berth_42", {"status": "submitted", "actionId": "release", "values": {"note": "ok"}})
    result = await rig.call(action="request_card", card=CARD, responseUserId="evil", runtimeId="r", turnId="t")
    assert result == {
        "success": True,
        "status": "submitted",
        "actionId": "release",
        "values": {"note": "ok"},
        "respondedBy": "u_77",
        "conversationId": "cv",
        "responseUserId": "u_77",
    }
    body = rig.created()[0]
    assert (body["responseUserId"], body["cardId"], body["runtimeId"], body["turnId"]) == ("u_77", "berth_42", "r", "t")
    assert body["expiresAt"] == 1_700_000_300_000
    assert rig.access.closed == 1


async def test_d10_a_servers_own_success_and_data_cannot_break_the_envelope(rig):
    rig.answer_first("card", "berth_42", {"status": "submitted", "success": False, "data": {"x": 1}, "error": "no"})
    result = await rig.call(action="request_card", card=CARD)
    assert (result["success"], result["status"], result["data"]) == (True, "submitted", {"x": 1})


async def test_a_card_nobody_answers_times_out_and_is_taken_back(rig):
    result = await rig.call(action="request_card", card=CARD, timeoutSeconds=5)
    assert result["status"] == "timeout"
    assert (result["cardId"], result["conversationId"], result["responseUserId"]) == ("berth_42", "cv", "u_77")
    assert rig.canon.calls[-1].subject["cancel"] is True


async def test_send_card_shows_and_does_not_wait(rig):
    result = await rig.call(action="send_card", card=CARD, cardId="mine")
    assert (result["status"], result["cardId"]) == ("displayed", "mine")
    assert result["request"]["messageId"]
    assert all(call.operation != "consume_interaction" for call in rig.canon.calls)


@pytest.mark.parametrize("card", [None, "x", [], {"schema": "canon.card.v1"}])
async def test_an_invalid_card_is_refused_before_the_network(rig, card):
    result = await rig.call(action="request_card", card=card)
    assert result["success"] is False
    assert rig.access.opened == 0


async def test_an_invalid_card_tells_the_first_error_and_to_repair_it(rig):
    result = await rig.call(action="send_card", card={"schema": "canon.card.v1"})
    assert "Repair" in result["error"]
    assert "title" in result["error"]


async def test_d20_a_card_answered_by_a_stranger_is_an_error(rig):
    rig.answer_first("card", "berth_42", {"status": "submitted"}, by="stranger")
    result = await rig.call(action="request_card", card=CARD)
    assert result["success"] is False


async def test_d11_a_passing_error_while_waiting_loses_nothing(rig):
    rig.answer_first("card", "berth_42", {"status": "submitted"})
    rig.canon.faults.fail_next("consume_interaction", Fault.ambiguous(503), times=3)
    assert (await rig.call(action="request_card", card=CARD))["status"] == "submitted"


async def test_an_interrupted_run_takes_its_question_back(rig):
    rig.interrupted = True
    result = await rig.call(action="request_card", card=CARD)
    assert result["success"] is False
    assert "interrupted" in result["error"]
    assert rig.canon.interactions.requests["card", "berth_42"].cancelled


# --- inputs ---------------------------------------------------------------------------------------------------------


async def test_an_input_is_asked_and_answered(rig):
    rig.answer_first("input", "in_1", {"status": "submitted", "value": "Aurora"})
    result = await rig.call(
        action="request_input",
        inputId=" in_1 ",
        title="T",
        prompt="P",
        choices=[{"label": "A"}],
        questions="no",
        sensitive="x",
    )
    assert (result["value"], result["conversationId"]) == ("Aurora", "cv")
    body = rig.created()[0]
    assert (body["inputId"], body["kind"], body["choices"]) == ("in_1", "clarify", [{"label": "A"}])
    assert "questions" not in body
    assert "sensitive" not in body


@pytest.mark.parametrize(
    "arguments",
    [{"kind": "secret"}, {"kind": " SUDO"}, {"sensitive": True}, {"questions": [{"id": "q", "isSecret": True}]}],
    ids=str,
)
async def test_owner_only_inputs_name_nobody(rig, arguments):
    await rig.call(action="request_input", inputId="in_1", timeoutSeconds=5, **arguments)
    assert "responseUserId" not in rig.created()[0]


async def test_d17_questions_that_are_no_objects_are_refused_in_words(rig):
    result = await rig.call(action="request_input", inputId="in_1", questions=["x"])
    assert "questions" in result["error"]
    assert rig.access.opened == 0


async def test_an_input_needs_an_id(rig):
    assert "inputId" in (await rig.call(action="request_input", inputId=" "))["error"]


# --- conversations --------------------------------------------------------------------------------------------------


async def test_outside_canon_the_home_channel_or_a_target_counts(rig):
    rig.session.outside = SessionSnapshot("cli", "elsewhere", "u_1")
    assert "target" in (await rig.call(action="send_card", card=PLAIN_CARD))["error"]
    rig.home = "home"
    assert (await rig.call(action="send_card", card=PLAIN_CARD, cardId="a"))["conversationId"] == "home"
    result = await rig.call(action="send_card", card=PLAIN_CARD, cardId="b", target="canon:cv_x")
    assert result["conversationId"] == "cv_x"
    assert "responseUserId" not in rig.created()[0]


# --- approvals ------------------------------------------------------------------------------------------------------


async def test_request_approval_is_pending_at_once(rig):
    result = await rig.call(action="request_approval", title="T", question="Q?", options=["a"], timeoutSeconds="x")
    assert (result["success"], result["status"], result["responseUserId"]) == (True, "pending", "u_77")
    assert rig.created()[0]["expiresAt"] == 1_700_000_000_000 + 259_200_000


async def test_request_approval_without_words_is_refused_and_nothing_recorded(rig):
    assert (await rig.call(action="request_approval", context="x"))["success"] is False
    assert rig.ledger.document == b"{}"


async def test_i20_a_broken_ledger_is_told_and_nothing_is_sent(rig):
    rig.ledger.document = b"[]"
    assert "ledger" in (await rig.call(action="request_approval", question="Q?"))["error"]
    assert rig.access.opened == 0


async def test_check_approval_answers_from_the_ledger_without_credentials(rig):
    asked = await rig.call(action="request_approval", question="Q?")
    rig.canon.interactions.answer("approval", asked["approvalId"], {"status": "allow"})
    first = await rig.call(action="check_approval", approvalId=asked["approvalId"])
    assert (first["status"], first["decision"], first["respondedBy"]) == ("resolved", "allow", "u_77")
    rig.access.missing = CredentialsError("no key")
    assert await rig.call(action="check_approval", approvalId=f" {asked['approvalId']} ") == first


async def test_an_unknown_id_is_unknown_without_a_client(rig):
    result = await rig.call(action="check_approval", approvalId="hermes-none")
    assert (result["success"], result["status"]) == (True, "unknown")
    assert rig.access.opened == 0


async def test_i34_d22_another_conversations_turn_is_refused_before_anything_is_claimed(rig):
    asked = await rig.call(action="request_approval", question="Q?")
    before, opened = rig.ledger.document, rig.access.opened
    rig.session.outside = SessionSnapshot("canon", "cv_other", "u_77")
    assert (await rig.call(action="check_approval", approvalId=asked["approvalId"]))["success"] is False
    assert (rig.ledger.document, rig.access.opened) == (before, opened)
    rig.session.outside = SessionSnapshot("cli")
    assert (await rig.call(action="check_approval", approvalId=asked["approvalId"]))["status"] == "pending"


async def test_i35_another_agents_approval_is_unknown_even_when_settled(rig):
    asked = await rig.call(action="request_approval", question="Q?")
    rig.desk.identity = LedgerIdentity("ag_other")
    assert (await rig.call(action="check_approval", approvalId=asked["approvalId"]))["status"] == "unknown"


# --- reach_out ------------------------------------------------------------------------------------------------------


async def test_reach_out_calls_the_one_verb(rig):
    rig.canon.verb_answers["send_to"] = {"status": "messaged", "conversationId": "cv_n", "messageId": "m"}
    result = await rig.call(action="reach_out", targetUserId=" u_2 ", text=" Hi ", target="canon:ignored")
    assert (result["status"], result["conversationId"]) == ("messaged", "cv_n")
    assert rig.canon.verbs == [("send_to", {"targetUserId": "u_2"}, {"text": "Hi", "requestMessage": "Hi"})]


async def test_the_cap_of_requests_is_told_in_the_servers_words_and_a_403_is_no_denial(rig):
    async def refuse(status):
        async def call(*_, **__):
            raise CanonApiError(status, "{}", detail="You have 10 pending requests")

        rig.canon.call_verb = call
        return await rig.call(action="reach_out", targetUserId="u_2", text="Hi")

    assert (await refuse(400))["error"] == "You have 10 pending requests"
    forbidden = await refuse(403)
    assert forbidden["success"] is False
    assert "status" not in forbidden


async def test_a_malformed_reach_out_result_fails_closed(rig):
    rig.canon.verb_answers["send_to"] = {"status": "sent"}
    assert (await rig.call(action="reach_out", targetUserId="u_2"))["success"] is False


# --- no_reply -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reason", "reasoned"), [(None, False), (" ", False), ("private", True), (5, False)])
async def test_no_reply_silences_then_reports_only_whether_there_was_a_reason(rig, reason, reasoned):
    result = await rig.call(action="no_reply", reason=reason, target="canon:cv")
    assert (result["status"], result["conversationId"]) == ("acknowledged", "cv")
    envelope = {"conversationId": "cv", "messageId": "msg_1"}
    assert rig.canon.verbs == [("no_reply", envelope, {"reason": "given"} if reasoned else {})]
    assert rig.turn.silenced
    assert rig.access.opened == 0


async def test_no_reply_never_silences_another_conversation(rig):
    assert (await rig.call(action="no_reply", target="cv_other"))["success"] is False
    rig.session.outside, rig.home = SessionSnapshot("cli"), "cv"
    assert (await rig.call(action="no_reply"))["success"] is False
    assert not rig.turn.silenced


async def test_no_reply_without_an_open_turn_is_refused_and_not_reported(rig):
    rig.turn.over = True
    assert (await rig.call(action="no_reply"))["success"] is False
    assert rig.canon.verbs == []


# --- the handler ----------------------------------------------------------------------------------------------------


async def test_text_of_any_script_leaves_unescaped_and_valid(rig):
    rig.canon.verb_answers["send_to"] = {"status": "blocked", "reason": "Größe \ud800 🚢"}
    raw = await rig.tool.handle({"action": "reach_out", "targetUserId": "u"})
    assert "Größe" in raw
    assert "🚢" in raw
    raw.encode("utf-8")


async def test_a_bug_is_an_error_text_not_an_exception(rig):
    async def broken(_):
        raise KeyError("bug")

    rig.actions.run = broken
    assert (await rig.call(action="no_reply"))["success"] is False


def test_an_availability_check_that_fails_counts_as_no():
    def fail():
        raise CredentialsError("no key")

    async def runner():
        raise NotImplementedError

    assert CanonTool(runner, fail).is_available() is False
    assert CanonTool(runner, lambda: True).is_available() is True
