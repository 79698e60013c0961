"""Short-lived connections: what whoever opens them promises (interactions §4.3, canon-wire §0.2, §1.1)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import pytest
from canon_hermes_plugin.ports.canon import CanonApi
from canon_hermes_plugin.ports.errors import (
    CanonError,
    CredentialsError,
    EnvironmentIdentityError,
    EnvironmentUnreachableError,
)
from canon_hermes_plugin.ports.interactions import BriefAccess, CanonAccess
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop


class _AccessDriver(Driver, Protocol):
    """What is seen from Canon's side."""

    def held(self) -> int:
        """Return how many clients are open."""
        ...

    def proofs(self) -> int:
        """Return how often Canon was asked to prove which environment it is."""
        ...

    def keyed(self) -> int:
        """Return how many requests carried the agent's key."""
        ...


class CanonAccessDriver(_AccessDriver, Protocol):
    """The subject and the Canon behind it.

    Attributes:
        access: the subject.
    """

    access: CanonAccess

    def impersonate(self) -> None:
        """Let another environment answer at Canon's addresses."""
        ...

    def vanish(self) -> None:
        """Let nobody answer there."""
        ...

    def lose_credentials(self) -> None:
        """Let no agent be usable."""
        ...


class BriefAccessDriver(_AccessDriver, Protocol):
    """The subject and the Canon behind it.

    Attributes:
        access: the subject.
    """

    access: BriefAccess

    def hang(self) -> None:
        """Let Canon take the next request and leave it without an answer for many seconds."""
        ...


async def _use(client: AbstractAsyncContextManager[CanonApi]) -> str | None:
    async with client as canon:
        return (await canon.identify()).agent_id


async def _closes_in_any_case(driver: _AccessDriver, opening: AbstractAsyncContextManager[CanonApi]) -> None:
    async with opening as canon:
        await canon.identify()
        assert driver.held() == 1
    assert driver.held() == 0


async def _closes_when_the_body_raises(driver: _AccessDriver, opening: AbstractAsyncContextManager[CanonApi]) -> None:
    async def work() -> None:
        async with opening as canon:
            await canon.identify()
            raise KeyError("the caller's own")

    with pytest.raises(KeyError, match="the caller's own"):
        await work()
    assert driver.held() == 0


async def _closes_when_cancelled(driver: _AccessDriver, opening: AbstractAsyncContextManager[CanonApi]) -> None:
    inside = asyncio.Event()

    async def work() -> None:
        async with opening as canon:
            await canon.identify()
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.ensure_future(work())
    await asyncio.wait_for(inside.wait(), 10)
    assert driver.held() == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert driver.held() == 0


class CanonAccessContract(Contract[CanonAccessDriver]):
    """The suite of :class:`canon_hermes_plugin.ports.interactions.CanonAccess`."""

    @on_a_loop
    async def test_the_environment_is_proven_before_anything_carries_the_key(self, canon: CanonAccessDriver) -> None:
        async with canon.access.verified() as client:
            assert canon.proofs() > 0
            assert canon.keyed() == 0
            assert (await client.identify()).agent_id
        assert canon.keyed() == 1

    @on_a_loop
    async def test_another_environment_never_sees_the_key(self, canon: CanonAccessDriver) -> None:
        canon.impersonate()
        with pytest.raises(EnvironmentIdentityError) as failure:
            await _use(canon.access.verified())
        assert not failure.value.retryable
        assert (canon.keyed(), canon.held()) == (0, 0)

    @on_a_loop
    async def test_an_environment_that_nobody_proves_is_a_matter_of_time(self, canon: CanonAccessDriver) -> None:
        canon.vanish()
        with pytest.raises(EnvironmentUnreachableError) as failure:
            await _use(canon.access.verified())
        assert failure.value.retryable
        assert (canon.keyed(), canon.held()) == (0, 0)

    @on_a_loop
    async def test_without_a_usable_agent_nobody_is_contacted(self, canon: CanonAccessDriver) -> None:
        canon.lose_credentials()
        with pytest.raises(CredentialsError):
            await _use(canon.access.verified())
        assert (canon.proofs(), canon.keyed(), canon.held()) == (0, 0, 0)

    @on_a_loop
    async def test_nothing_is_done_before_it_is_entered(self, canon: CanonAccessDriver) -> None:
        opening = canon.access.verified()
        assert (canon.proofs(), canon.held()) == (0, 0)
        await _use(opening)

    @on_a_loop
    async def test_a_client_is_closed_after_use(self, canon: CanonAccessDriver) -> None:
        await _closes_in_any_case(canon, canon.access.verified())

    @on_a_loop
    async def test_a_client_is_closed_when_its_user_fails(self, canon: CanonAccessDriver) -> None:
        await _closes_when_the_body_raises(canon, canon.access.verified())

    @on_a_loop
    async def test_a_client_is_closed_when_its_user_is_cancelled(self, canon: CanonAccessDriver) -> None:
        await _closes_when_cancelled(canon, canon.access.verified())

    @on_a_loop
    async def test_several_are_open_at_once(self, canon: CanonAccessDriver) -> None:
        async with canon.access.verified() as one, canon.access.verified() as two:
            assert (await one.identify()).agent_id == (await two.identify()).agent_id
            assert canon.held() == 2
        assert canon.held() == 0
        assert len(set(await asyncio.gather(*(_use(canon.access.verified()) for _ in range(5))))) == 1
        assert canon.held() == 0

    @on_a_loop
    async def test_every_thread_opens_its_own_on_a_loop_of_its_own(self, canon: CanonAccessDriver) -> None:
        def on_a_thread() -> str | None:
            return asyncio.run(_use(canon.access.verified()))

        async with asyncio.timeout(30):
            agents = await asyncio.gather(*(asyncio.to_thread(on_a_thread) for _ in range(4)))
        assert len(set(agents)) == 1
        assert agents[0]
        assert canon.held() == 0


class BriefAccessContract(Contract[BriefAccessDriver]):
    """The suite of :class:`canon_hermes_plugin.ports.interactions.BriefAccess`."""

    @on_a_loop
    async def test_the_environment_is_not_proven_again(self, canon: BriefAccessDriver) -> None:
        assert await _use(canon.access.brief(10))
        assert (canon.proofs(), canon.keyed()) == (0, 1)

    @on_a_loop
    async def test_a_canon_that_hangs_is_left_after_the_given_seconds(self, canon: BriefAccessDriver) -> None:
        canon.hang()
        async with asyncio.timeout(10), canon.access.brief(0.05) as client:
            with pytest.raises(CanonError):
                await client.identify()
        assert canon.held() == 0

    @on_a_loop
    async def test_a_client_is_closed_after_use(self, canon: BriefAccessDriver) -> None:
        await _closes_in_any_case(canon, canon.access.brief(10))

    @on_a_loop
    async def test_a_client_is_closed_when_its_user_fails(self, canon: BriefAccessDriver) -> None:
        await _closes_when_the_body_raises(canon, canon.access.brief(10))

    @on_a_loop
    async def test_a_client_is_closed_when_its_user_is_cancelled(self, canon: BriefAccessDriver) -> None:
        await _closes_when_cancelled(canon, canon.access.brief(10))

    @on_a_loop
    async def test_every_thread_opens_its_own_on_a_loop_of_its_own(self, canon: BriefAccessDriver) -> None:
        def on_a_thread() -> str | None:
            return asyncio.run(_use(canon.access.brief(10)))

        async with asyncio.timeout(30):
            agents = await asyncio.gather(*(asyncio.to_thread(on_a_thread) for _ in range(4)))
        assert len(set(agents)) == 1
        assert canon.held() == 0
