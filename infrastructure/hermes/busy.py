"""Gathers what the host knows when a message meets a busy session, and asks the domain's table (turns §1.9).

Decides nothing itself, with one addition to the table: an event the host made up is queued, not left to the host, which
would run it inside the running turn's lifecycle. It carries out what needs nothing but the session and the host.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

from canon_hermes_plugin.domain.inbound.intents import (
    QUEUE_FULL,
    BusyDecision,
    BusyMessage,
    RunnerFacts,
    demoted,
    route,
)
from canon_hermes_plugin.domain.turns.model import HostText
from canon_hermes_plugin.infrastructure.hermes import compat, host
from canon_hermes_plugin.infrastructure.hermes.compat import HostObject
from canon_hermes_plugin.infrastructure.hermes.lane import Lane, TurnControls
from canon_hermes_plugin.ports.host import InboundMessage
from canon_hermes_plugin.ports.time import Clock

AGENT_POLL = 0.05
"""Seconds between two looks for the agent of a run that is to be interrupted while the host still builds it."""

_LOG = logging.getLogger(__name__)

_LOOK_EVERY = 0.02
"""Seconds between two looks for the agent of a run that has begun."""
_LOOKS = 25


@dataclass(slots=True)
class BusyHost:
    """The host as a busy message sees it.

    Attributes:
        trusted: the intake decides who may talk to the agent; the host's verdict is not asked for.
        runner: the gateway object.
        delegate: the busy handler the host installed.
    """

    trusted: bool
    runner: HostObject | None = None
    delegate: HostObject | None = None


async def decide(busy: BusyHost, lane: Lane, event: HostObject) -> BusyDecision:
    """Return what happens to ``event``."""
    if getattr(event, "internal", False) and not host.is_command(event):
        return BusyDecision.QUEUE
    message = host.inbound_of(event)
    by_agent = message is not None and message.user_id is None
    wish = BusyMessage(event.text or "", message.intent if message is not None else None, human=not by_agent)
    if wish.intent == "interleave":
        await _agent_shown(busy, lane)
    agent = compat.live_agent(busy.runner, lane.key)
    facts = RunnerFacts(
        delegate=busy.delegate is not None,
        gate=compat.knows_runs(busy.runner),
        internal=bool(getattr(event, "internal", False)),
        command=host.is_command(event),
        draining=compat.is_draining(busy.runner),
        authorized=True if busy.trusted else compat.is_authorized(busy.runner, event.source),
        approval_pending=compat.approval_blocks(lane.key),
        agent_live=agent is not None,
        can_steer=lane.steerable and not lane.interrupted and compat.can_steer(agent),
    )
    if wish.intent == "interrupt":
        subagents, compressing = await _work_to_protect(busy, lane, agent)
        facts = replace(facts, subagents=subagents, compressing=compressing)
        if demoted(facts):
            _LOG.info("session %s: interrupt demoted to queue", lane.key)
    return route(facts, wish).decision


async def _agent_shown(busy: BusyHost, lane: Lane) -> None:
    """Wait a moment for an agent that works already but is not shown yet: what it could take in need not queue."""
    for _ in range(_LOOKS):
        if not compat.is_starting(busy.runner, lane.key):
            return
        await asyncio.sleep(_LOOK_EVERY)


async def _work_to_protect(busy: BusyHost, lane: Lane, agent: HostObject | None) -> tuple[bool | None, bool | None]:
    try:
        return compat.has_subagents(busy.runner, agent), await compat.is_compressing(busy.runner, lane.key)
    except Exception:  # noqa: BLE001 - the host's probes may raise anything; the contract holds back then (§1.9)
        _LOG.warning("session %s: the host's probe for protected work failed", lane.key, exc_info=True)
        return None, None


async def interrupt(busy: BusyHost, lane: Lane, lifecycle: HostObject, clock: Clock) -> None:
    """Interrupt a lifecycle's run, also one whose agent the host is still building."""
    while lane.open and lane.current is lifecycle:
        agent = compat.live_agent(busy.runner, lane.key)
        if agent is not None:
            compat.interrupt_agent(agent)
            return
        await clock.sleep(AGENT_POLL)


def steer(busy: BusyHost, lane: Lane, event: HostObject) -> bool:
    """Put an event's text into the session's run; ``False`` when it takes none (any more)."""
    agent = compat.live_agent(busy.runner, lane.key)
    with lane.lock:
        if agent is None or lane.interrupted or not lane.steerable or not compat.steer_agent(agent, event.text):
            return False
        lane.steered.append(event)
    return True


async def refuse(turns: TurnControls | None, message: InboundMessage) -> None:
    """Tell the sender of a message that it does not fit into the session's queue (field row 68)."""
    notice = HostText(message.conversation_id, QUEUE_FULL, notify=True, reply_to=message.message_id)
    ack = await turns.text(None, notice) if turns is not None else None
    if ack is not None and not ack.ok:
        _LOG.warning("the refusal of message %s was not delivered: %s", message.message_id, ack.error)
