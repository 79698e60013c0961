"""Busy routing, all combinations (turns §1.8, §1.9, §13 invariants 12 to 14)."""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from typing import cast

import pytest
from canon_hermes_plugin.domain.inbound.intents import (
    APPROVAL_WORDS,
    BUSY_TABLE,
    BusyDecision,
    BusyMessage,
    RunnerFacts,
    admitted_intent,
    delivery_intent,
    route,
)
from canon_hermes_plugin.ports.host import DeliveryIntent

INTENTS: list[DeliveryIntent | None] = [None, "queue", "interrupt", "interleave", "stop"]
TRISTATE = {"authorized", "subagents", "compressing"}


def expected(facts: RunnerFacts, message: BusyMessage) -> BusyDecision:
    """The table of the contract, written a second time as prose."""
    if not facts.delegate:
        return BusyDecision.NOT_HANDLED
    delegated = not facts.gate or facts.internal or not facts.authorized
    if delegated or (facts.approval_pending and message.text.strip().lower() in APPROVAL_WORDS):
        return BusyDecision.DELEGATE
    if message.intent == "stop":
        return BusyDecision.STOP
    if message.intent == "interrupt":
        free = facts.subagents is False and facts.compressing is False
        return BusyDecision.INTERRUPT if free else BusyDecision.QUEUE
    if facts.draining:
        return BusyDecision.QUEUE
    if message.intent == "interleave" and message.text.strip() and facts.agent_live and facts.can_steer:
        return BusyDecision.QUEUE if facts.command else BusyDecision.STEER
    return BusyDecision.QUEUE


@pytest.mark.parametrize("intent", INTENTS)
@pytest.mark.parametrize("text", [" YES ", "yes please", " "])
def test_every_combination_of_facts(intent: DeliveryIntent | None, text: str) -> None:
    names = [field.name for field in fields(RunnerFacts)]
    message = BusyMessage(text, intent)
    for values in product(*([True, False, None] if name in TRISTATE else [True, False] for name in names)):
        facts = RunnerFacts(**dict(zip(names, values, strict=True)))
        decision = route(facts, message).decision
        assert decision is expected(facts, message)
        if intent is None:
            assert decision not in {BusyDecision.INTERRUPT, BusyDecision.STOP, BusyDecision.STEER}


def test_the_last_row_always_applies_and_names_are_distinct() -> None:
    assert BUSY_TABLE[-1].applies(RunnerFacts(), BusyMessage(""))
    assert len({row.name for row in BUSY_TABLE}) == len(BUSY_TABLE)


@pytest.mark.parametrize("probe", ["subagents", "compressing"])
@pytest.mark.parametrize("value", [True, None])
def test_h5_an_interrupt_waits_for_subagents_and_compression_and_for_failed_probes(
    probe: str, value: bool | None
) -> None:
    facts = RunnerFacts(**{probe: value})
    assert route(facts, BusyMessage("x", "interrupt")).decision is BusyDecision.QUEUE
    assert route(facts, BusyMessage("x", "stop")).decision is BusyDecision.STOP
    assert route(RunnerFacts(), BusyMessage("x", "interrupt")).decision is BusyDecision.INTERRUPT


def test_other_text_during_an_approval_queues() -> None:
    facts = RunnerFacts(approval_pending=True)
    assert route(facts, BusyMessage("what is it?")).decision is BusyDecision.QUEUE
    assert route(facts, BusyMessage("\U0001f44d")).decision is BusyDecision.DELEGATE


@pytest.mark.parametrize(
    ("value", "intent"),
    [(" Interrupt ", "interrupt"), ("stop", "stop"), ("now", None), (["stop"], None), (None, None), ("", None)],
)
def test_intent_of_a_message(value: object, intent: str | None) -> None:
    assert delivery_intent({"metadata": {"deliveryIntent": value}}) == intent
    assert delivery_intent({"metadata": [value]}) is None


def test_hidden_media_turns_a_steer_into_a_queue() -> None:
    assert admitted_intent("interleave", media_registered=True, hidden=True) == "queue"
    for intent, registered, hidden in product(INTENTS, [True, False], [True, False]):
        if not (intent == "interleave" and registered and hidden):
            assert admitted_intent(intent, media_registered=registered, hidden=hidden) == cast("object", intent)


@pytest.mark.parametrize("intent", [None, "queue", "interleave"])
def test_a_command_the_busy_host_does_not_know_waits_and_interrupts_nobody(intent: DeliveryIntent | None) -> None:
    assert route(RunnerFacts(command=True), BusyMessage("/zzz", intent)).decision is BusyDecision.QUEUE


def test_an_agent_never_answers_an_approval() -> None:
    facts = RunnerFacts(approval_pending=True)
    assert route(facts, BusyMessage("yes", human=False)).decision is BusyDecision.QUEUE
    assert route(facts, BusyMessage("yes", "interleave", human=False)).decision is BusyDecision.STEER
