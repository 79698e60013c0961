"""Waiting for an answer: passing errors, deadlines, cancellation (interactions §6, D11, D12, D27)."""

from __future__ import annotations

import asyncio

import pytest
from canon_hermes_plugin.domain.interactions.polling import AbandonedError, OpenRequest, wait_for_answer
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock, settle
from canon_hermes_plugin.ports.errors import CanonApiError, CanonTransportError, MalformedResponseError

ADDRESS = {"interactionKind": "input", "conversationId": "cv", "inputId": "i"}
NOW = 1_700_000_000_000


class Canon:
    def __init__(self, *replies, on_cancel=None):
        self.replies = list(replies) or [{"status": "pending"}]
        self.on_cancel = on_cancel if on_cancel is not None else {"status": "cancelled"}
        self.polls = self.cancels = 0

    async def create_interaction(self, body):
        raise NotImplementedError

    async def consume_interaction(self, body):
        await asyncio.sleep(0)
        if body.get("cancel"):
            self.cancels += 1
            reply = self.on_cancel
        else:
            self.polls += 1
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, BaseException):
            raise reply
        if callable(reply):
            return await reply()
        return reply


async def run(canon, *, seconds=10.0, clock=None, abandoned=lambda: False):
    clock = clock or VirtualClock(NOW, instant=True)
    return await wait_for_answer(canon, OpenRequest(ADDRESS, NOW + seconds * 1000, abandoned), clock)


async def test_the_first_final_status_is_the_answer():
    canon = Canon({"status": "pending"}, {}, {"status": ""}, {"status": None}, {"status": "submitted", "value": "x"})
    assert await run(canon) == {"status": "submitted", "value": "x"}
    assert (canon.polls, canon.cancels) == (5, 0)


async def test_it_asks_once_a_second_and_shortens_the_last_wait():
    canon, clock = Canon(), VirtualClock(NOW)
    task = asyncio.create_task(run(canon, seconds=2.5, clock=clock))
    await settle()
    assert (canon.polls, clock.next_wake) == (1, 1.0)
    await clock.advance(2)
    assert (canon.polls, clock.next_wake) == (3, 0.5)
    await clock.advance(0.5)
    await clock.advance(1)
    assert await task is None
    assert canon.cancels == 1


async def test_a_past_deadline_asks_nothing_and_takes_the_request_back():
    canon = Canon()
    assert await run(canon, seconds=-1) is None
    assert (canon.polls, canon.cancels) == (0, 1)


PASSING = [CanonApiError(s) for s in (408, 425, 429, 500, 503)] + [
    CanonTransportError("x", executed=True),
    MalformedResponseError("x"),
]


@pytest.mark.parametrize("error", PASSING, ids=str)
async def test_d11_passing_errors_count_as_pending(error):
    canon = Canon(error, error, {"status": "submitted"})
    assert await run(canon) == {"status": "submitted"}


@pytest.mark.parametrize("status", [404, 409])
async def test_d11_a_request_the_server_forgot_ends_the_wait(status):
    canon = Canon(CanonApiError(status))
    assert await run(canon) is None
    assert canon.polls == 1


@pytest.mark.parametrize("status", [400, 401, 403, 410])
async def test_d11_a_final_error_ends_it_and_cancels_the_request(status):
    canon = Canon(CanonApiError(status))
    with pytest.raises(CanonApiError):
        await run(canon)
    assert canon.cancels == 1


async def test_d27_an_answer_that_comes_with_the_cancel_is_not_lost():
    canon = Canon(on_cancel={"status": "submitted", "value": "late"})
    assert await run(canon, seconds=0) == {"status": "submitted", "value": "late"}


@pytest.mark.parametrize("reply", [{}, {"status": "pending"}, {"status": "timeout"}, CanonApiError(500), {"status": 5}])
async def test_a_cancel_without_an_answer_is_a_timeout(reply):
    assert await run(Canon(on_cancel=reply), seconds=0) is None


async def test_d12_cancelling_the_wait_cancels_the_request_and_stays_a_cancellation():
    canon, clock = Canon(), VirtualClock(NOW)
    task = asyncio.create_task(run(canon, clock=clock))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert canon.cancels == 1


async def test_d12_a_cancellation_during_the_deadline_cancel_is_no_normal_result():
    entered = asyncio.Event()

    async def hang():
        entered.set()
        await asyncio.sleep(60)

    canon = Canon(on_cancel=hang)
    task = asyncio.create_task(run(canon, seconds=0))
    await asyncio.wait_for(entered.wait(), 5)
    canon.on_cancel = {}
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_nobody_wants_any_more_is_taken_back():
    answers = iter([False, True])
    canon = Canon()
    with pytest.raises(AbandonedError):
        await run(canon, abandoned=lambda: next(answers))
    assert (canon.polls, canon.cancels) == (1, 1)
