"""Carries one registration through its state machine: asks Canon, keeps the record, stores the key, in that order.

It executes what the table says and translates what happens into the table's events. Prompts, terminals and HTTP are
behind ports. Disk work runs in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, final

from canon_hermes_plugin.domain.profiles.rules import Profile
from canon_hermes_plugin.domain.registration import record
from canon_hermes_plugin.domain.registration.flow import ENDS, Event, Step, next_step
from canon_hermes_plugin.domain.registration.record import Application
from canon_hermes_plugin.ports.errors import CanonApiError, CanonError, ConfigurationError, MalformedResponseError
from canon_hermes_plugin.ports.profiles import Document, PendingRegistrations, ProfileStore
from canon_hermes_plugin.ports.registration import (
    RegistrationAnswer,
    RegistrationApi,
    RegistrationRequest,
    RegistrationTicket,
)
from canon_hermes_plugin.ports.secret import Secret
from canon_hermes_plugin.ports.time import Clock, IdSource

POLL_SECONDS = 3.0
TOTAL_SECONDS = 300.0
DEVELOPER_INFO = "canon-hermes-plugin for Hermes Agent"
_MAX_PAUSE = 30.0
_SUBMIT_TRIES = 3
_GONE = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a registration ended.

    Attributes:
        step: one of the ends of the table.
        profile: the saved profile, when there is one.
        problem: why it failed, without any remote text.
        warning: something that went wrong without stopping it.
    """

    step: Step
    profile: Profile | None = None
    problem: str | None = None
    warning: str | None = None

    @property
    def good(self) -> bool:
        """Tell whether the agent is connected."""
        return self.step is Step.DONE


class Watcher(Protocol):
    """Sees the registration progress; shows it or not."""

    def asked(self, request_id: str, total: float) -> None:
        """Learn that Canon took the request and the owner is asked; waiting takes at most ``total`` seconds."""
        ...

    def resumed(self, request_id: str, total: float) -> None:
        """Learn that an earlier request is taken up; new answers are not used."""
        ...

    def waiting(self, request_id: str, elapsed: float, total: float) -> None:
        """Learn that the owner has not decided; called once for each answer ``pending``."""
        ...

    def stumbled(self, problem: str) -> None:
        """Learn of a passing error; the registration goes on."""
        ...


class AgentSwitch(Protocol):
    """Makes the host use a profile from its next start."""

    def use_profile(self, name: str) -> None:
        """Name the profile and remove every direct credential (canon-wire §2.2 row 7). Raises ConfigurationError."""
        ...


@dataclass(frozen=True, slots=True)
class Stores:
    """Where the registration keeps things."""

    profiles: ProfileStore
    pending: PendingRegistrations
    switch: AgentSwitch


@final
class RegistrationDesk:
    """One registration at a time."""

    def __init__(self, api: RegistrationApi, stores: Stores, clock: Clock, ids: IdSource) -> None:
        self._api = api
        self._stores = stores
        self._clock = clock
        self._ids = ids

    async def register(self, application: Application, watcher: Watcher, *, total: float = TOTAL_SECONDS) -> Outcome:
        """Register or reconnect, waiting at most ``total`` seconds for the owner; a cancelled call can be resumed.

        Raises:
            ConfigurationError: the record of pending registrations cannot be read, or it holds a request of another
                environment. Nothing was overwritten.
        """
        entry = await asyncio.to_thread(self._open, application)
        existing = await asyncio.to_thread(self._existing, application.profile)
        run = _Run(self._api, self._stores, self._clock, application, watcher)
        return await run.carry(entry, existing, total)

    def _open(self, application: Application) -> Document:
        local_id = f"hermes-{self._ids.hex(32)}"
        entry = self._stores.pending.update(
            application.profile, lambda current: record.opened(current, local_id, application.environment)
        )
        assert entry is not None  # noqa: S101 - the change returns a record
        return entry

    def _existing(self, name: str) -> Document | None:
        """Return the profile to reconnect. One that cannot be read does not stop a registration (§13 row 1)."""
        try:
            return self._stores.profiles.load().get(name)
        except ConfigurationError:
            return None


class _Run:
    """The state of one registration; thrown away as a unit."""

    def __init__(
        self, api: RegistrationApi, stores: Stores, clock: Clock, application: Application, watcher: Watcher
    ) -> None:
        self._api, self._stores, self._clock = api, stores, clock
        self._application, self._watcher = application, watcher
        self._entry: Document = {}
        self._existing: Document | None = None
        self._ticket: RegistrationTicket | None = None
        self._profile: Profile | None = None
        self._problem: str | None = None
        self._warning: str | None = None
        self._pause = POLL_SECONDS
        self._tries = 0
        self._started = self._total = 0.0

    async def carry(self, entry: Document, existing: Document | None, total: float) -> Outcome:
        self._entry, self._existing = entry, existing
        self._ticket = record.request_of(entry)
        self._started, self._total = self._clock.monotonic(), total
        actions: Mapping[Step, Callable[[], Awaitable[Event]]] = {
            Step.STARTING: self._start,
            Step.SUBMITTING: self._submit,
            Step.RECORDING: self._record,
            Step.WAITING: self._wait,
            Step.POLLING: self._poll,
            Step.SAVING: self._save,
            Step.MARKING: self._mark,
            Step.ACKNOWLEDGING: self._acknowledge,
            Step.SWITCHING: self._switch,
            Step.CLEARING: self._clear,
            Step.DROPPING_REJECTED: self._clear,
            Step.DROPPING_UNKNOWN: self._clear,
        }
        step = Step.STARTING
        while step not in ENDS:
            step = next_step(step, await actions[step]())
        return Outcome(step, self._profile, self._problem, self._warning)

    async def _start(self) -> Event:
        if self._ticket is None:
            return Event.FRESH
        self._watcher.resumed(self._ticket.request_id, self._total)
        return Event.STORED if record.is_stored(self._entry, self._existing) else Event.RESUMED

    async def _submit(self) -> Event:
        agent_id = (self._existing or {}).get("agentId")
        request = RegistrationRequest(
            name=self._application.name,
            description=self._application.description,
            owner_phone=self._application.owner_phone,
            developer_info=DEVELOPER_INFO,
            local_registration_id=str(self._entry["localRegistrationId"]),
            requested_agent_id=agent_id if isinstance(agent_id, str) and agent_id else None,
        )
        try:
            self._ticket = await self._api.register(request)
        except CanonError as error:
            self._tries += 1
            if error.retryable and self._tries < _SUBMIT_TRIES:  # the local id makes a repeated request the same one
                self._watcher.stumbled(str(error))
                await self._clock.sleep(POLL_SECONDS)
                return Event.PASSING
            return self._failed(f"Canon did not take the registration: {error}")
        return Event.OK

    async def _record(self) -> Event:
        ticket = self._known_ticket()
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        kept = await self._keep(record.submitted(self._entry, ticket, now))
        if kept is Event.OK:
            self._watcher.asked(ticket.request_id, self._total)
        return kept

    async def _wait(self) -> Event:
        left = self._total - self._elapsed()
        if left <= 0:
            return Event.TIME_OVER
        await self._clock.sleep(min(self._pause, left))
        self._pause = POLL_SECONDS
        return Event.OK

    async def _poll(self) -> Event:
        ticket = self._known_ticket()
        try:
            answer = await self._api.poll(ticket)
        except CanonError as error:
            return self._poll_failed(error)
        if answer.status == "pending":
            self._watcher.waiting(ticket.request_id, self._elapsed(), self._total)
            return Event.PENDING
        return Event.REJECTED if answer.status == "rejected" else self._approved(answer)

    def _poll_failed(self, error: CanonError) -> Event:
        if isinstance(error, CanonApiError) and error.status_code in _GONE:
            return Event.UNKNOWN
        if not error.retryable and not isinstance(error, MalformedResponseError):
            return self._failed(f"Canon did not answer: {error}")
        if isinstance(error, CanonApiError) and error.retry_after is not None:
            self._pause = min(max(error.retry_after, POLL_SECONDS), _MAX_PAUSE)
        self._watcher.stumbled(str(error))
        return Event.PASSING

    def _approved(self, answer: RegistrationAnswer) -> Event:
        if not answer.api_key or not answer.agent_id:
            return Event.HOLLOW
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._profile = Profile(
            name=self._application.profile,
            api_key=Secret(answer.api_key.reveal()),
            agent_id=answer.agent_id,
            agent_name=answer.agent_name or answer.agent_id,
            registered_at=now,
            environment=self._application.environment,
        )
        return Event.APPROVED

    async def _save(self) -> Event:
        assert self._profile is not None  # noqa: S101 - saving follows an approval
        try:
            await asyncio.to_thread(self._stores.profiles.save, self._profile.name, self._profile.document())
        except (ConfigurationError, OSError) as error:
            return self._failed(f"the profile cannot be saved: {error}; run setup again, the approval stays valid")
        return Event.OK

    async def _mark(self) -> Event:
        assert self._profile is not None  # noqa: S101 - marking follows saving
        return await self._keep(record.stored(self._entry, self._profile.agent_id))

    async def _acknowledge(self) -> Event:
        try:
            await self._api.acknowledge(self._known_ticket())
        except CanonError as error:
            self._warning = f"Canon could not be told that the key is stored: {error}"
        return Event.OK

    async def _switch(self) -> Event:
        try:
            await asyncio.to_thread(self._stores.switch.use_profile, self._application.profile)
        except ConfigurationError as error:
            return self._failed(f"the profile is saved, but Hermes cannot be switched to it: {error}")
        return Event.OK

    async def _clear(self) -> Event:
        try:
            await asyncio.to_thread(self._stores.pending.update, self._application.profile, lambda _: None)
        except (ConfigurationError, OSError) as error:
            self._warning = f"the record of the request cannot be removed: {error}"
            return Event.ERROR
        return Event.OK

    async def _keep(self, entry: Document) -> Event:
        try:
            kept = await asyncio.to_thread(self._stores.pending.update, self._application.profile, lambda _: entry)
        except (ConfigurationError, OSError) as error:
            return self._failed(f"the request cannot be recorded: {error}")
        self._entry = kept or entry
        return Event.OK

    def _failed(self, problem: str) -> Event:
        self._problem = problem
        return Event.ERROR

    def _known_ticket(self) -> RegistrationTicket:
        assert self._ticket is not None  # noqa: S101 - set by submitting or from the record
        return self._ticket

    def _elapsed(self) -> float:
        return self._clock.monotonic() - self._started
