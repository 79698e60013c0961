"""What a failed attempt proves, what is tried again, and what all attempts prove together."""

from __future__ import annotations

import asyncio
import itertools

import httpx
import pytest
from canon_hermes_plugin.infrastructure.canon import retry
from canon_hermes_plugin.infrastructure.canon.link import translate
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.ports.errors import CanonApiError, CanonError, CanonTransportError, MalformedResponseError
from hypothesis import given, settings
from hypothesis import strategies as st

NOT_SENT = CanonTransportError("connect", executed=False)
UNKNOWN = CanonTransportError("read", executed=True)
MALFORMED = MalformedResponseError("not JSON")
ALL = [*map(CanonApiError, range(300, 600)), NOT_SENT, UNKNOWN, MALFORMED]


@pytest.mark.parametrize("status", range(300, 600))
def test_every_status_proves_what_the_contract_says(status):
    if status in {429, 503}:
        expected = "definitive"
    elif status in {408, 409, 425} or status >= 500 or status < 400:
        expected = "ambiguous"
    else:
        expected = "definitive"
    assert retry.certainty(CanonApiError(status)) == expected


def test_a_transport_failure_proves_absence_only_before_the_request_was_sent():
    assert retry.certainty(NOT_SENT) == "definitive"
    assert retry.certainty(UNKNOWN) == "ambiguous"
    assert retry.certainty(MALFORMED) == "ambiguous"
    assert retry.certainty(CanonError("refused before sending")) == "definitive"


@pytest.mark.parametrize("status", range(300, 600))
def test_every_status_is_repeated_as_the_contract_says(status):
    retryable = status in {408, 425, 429} or status >= 500
    assert retry.may_repeat(CanonApiError(status), idempotent=True) is retryable
    assert retry.may_repeat(CanonApiError(status), idempotent=False) is (status in {429, 503})


def test_field_88_without_an_id_only_a_provably_unsent_request_is_repeated():
    assert retry.may_repeat(NOT_SENT, idempotent=False)
    assert not retry.may_repeat(UNKNOWN, idempotent=False)
    assert retry.may_repeat(UNKNOWN, idempotent=True)


def test_a_malformed_success_and_a_local_refusal_are_never_repeated():
    for error in (MALFORMED, CanonError("local")):
        assert not retry.may_repeat(error, idempotent=True)
        assert not retry.may_repeat(error, idempotent=False)


def test_defect_25_one_ambiguous_attempt_makes_the_whole_operation_ambiguous():
    kinds = [CanonApiError(500), CanonApiError(429), CanonApiError(400), CanonApiError(409), NOT_SENT, UNKNOWN]
    for count in (1, 2, 3):
        for attempts in itertools.product(kinds, repeat=count):
            expected = any(retry.certainty(error) == "ambiguous" for error in attempts)
            assert (retry.verdict(attempts) == "ambiguous") is expected
    assert retry.verdict([CanonApiError(500), CanonApiError(500), CanonApiError(429)]) == "ambiguous"
    assert retry.verdict([CanonApiError(429), CanonApiError(503)]) == "definitive"


def test_defect_12_an_ambiguous_write_without_an_id_is_never_offered_for_a_later_retry():
    for errors in itertools.product([*ALL[::17], NOT_SENT, UNKNOWN, MALFORMED], repeat=2):
        if retry.verdict(errors) == "ambiguous":
            assert not retry.worth_retrying_later(errors, idempotent=False)
            assert retry.worth_retrying_later(errors, idempotent=True)
    assert retry.worth_retrying_later([CanonApiError(503)], idempotent=False)
    assert not retry.worth_retrying_later([CanonApiError(403)], idempotent=True)


@pytest.mark.parametrize(
    ("kind", "executed", "retryable"),
    [
        (httpx.ConnectError, False, True),
        (httpx.ConnectTimeout, False, True),
        (httpx.ReadTimeout, True, True),
        (httpx.RemoteProtocolError, True, True),
        (httpx.ReadError, True, False),
        (httpx.WriteError, True, False),
        (httpx.CloseError, True, False),
        (httpx.WriteTimeout, True, False),
        (httpx.PoolTimeout, True, False),
        (httpx.UnsupportedProtocol, False, False),
        (httpx.LocalProtocolError, False, False),
    ],
)
def test_every_transport_failure_has_its_class(kind, executed, retryable):
    error = translate(kind("secret words"))
    assert isinstance(error, CanonTransportError)
    assert (error.executed, error.retryable) == (executed, retryable)
    assert "secret words" not in str(error)


NOW = 1_700_000_000_000  # 2023-11-14T22:13:20Z


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 7 ", 7.0),
        ("86400", retry.MAX_RETRY_AFTER),
        ("Tue, 14 Nov 2023 22:13:25 GMT", 5.0),
        ("Tue, 14 Nov 2023 22:13:25", 5.0),
        ("Tue, 14 Nov 2023 22:13:00 GMT", 0.0),
        ("Fri, 14 Nov 2053 22:13:25 GMT", retry.MAX_RETRY_AFTER),
        ("-3", None),
        ("soon", None),
        ("", None),
        ("1.5", None),
        ("٣", None),
        ("nan", None),
    ],
)
def test_defect_24_retry_after_is_read_as_seconds_or_date_within_a_bound(header, seconds):
    assert retry.retry_after(header, NOW) == seconds


@settings(max_examples=80)
@given(st.text(max_size=40))
def test_retry_after_never_raises_and_stays_in_its_bound(text):
    seconds = retry.retry_after(text, NOW)
    assert seconds is None or 0 <= seconds <= retry.MAX_RETRY_AFTER


async def attempts(*outcomes, idempotent=True):
    """Run the outcomes through ``repeat``; return (result or error, failures, waits)."""
    clock, waits, failures, pending = VirtualClock(instant=True), [], [], list(outcomes)

    class Recording:
        now_ms, monotonic = clock.now_ms, clock.monotonic

        async def sleep(self, seconds):
            waits.append(round(seconds, 3))

    async def attempt():
        outcome = pending.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    try:
        result = await retry.repeat(attempt, clock=Recording(), idempotent=idempotent, failures=failures)
    except (CanonError, asyncio.CancelledError, KeyError) as error:
        result = error
    return result, failures, waits


async def test_three_attempts_with_doubling_waits():
    last = CanonApiError(502)
    result, failures, waits = await attempts(CanonApiError(500), UNKNOWN, last, "never")
    assert result is last
    assert len(failures) == 3
    assert waits == [0.4, 0.8]


async def test_success_after_a_failure_ends_the_repetition():
    result, failures, waits = await attempts(CanonApiError(500), "done", "never")
    assert (result, len(failures), waits) == ("done", 1, [0.4])


async def test_defect_24_a_longer_wait_is_kept_when_canon_asks_for_it():
    _, _, waits = await attempts(CanonApiError(429, retry_after=6.0), CanonApiError(429, retry_after=0.1), "done")
    assert waits == [6.0, 0.8]


async def test_a_permanent_refusal_is_not_repeated():
    for error in (CanonApiError(400), CanonApiError(409), CanonApiError(302), MALFORMED):
        result, failures, waits = await attempts(error, "never")
        assert result is error
        assert (failures, waits) == ([error], [])


async def test_cancellation_and_foreign_errors_pass_through_at_once():
    for error in (asyncio.CancelledError(), KeyError("bug")):
        result, failures, waits = await attempts(error, "never")
        assert result is error
        assert (failures, waits) == ([], [])
