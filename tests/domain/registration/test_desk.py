"""One registration, carried over ports (canon-wire §2.2, interactions §13, D15)."""

import pytest
from canon_hermes_plugin.domain.environments import Endpoints, endpoints_of
from canon_hermes_plugin.domain.registration import record
from canon_hermes_plugin.domain.registration.desk import RegistrationDesk, Stores
from canon_hermes_plugin.domain.registration.flow import Step
from canon_hermes_plugin.domain.registration.record import Application
from canon_hermes_plugin.infrastructure.files.environment_catalog import packaged_catalog
from canon_hermes_plugin.infrastructure.memory.profiles import MemoryPendingRegistrations, MemoryProfileStore
from canon_hermes_plugin.infrastructure.memory.time import SeededIds, VirtualClock
from canon_hermes_plugin.ports.errors import (
    CanonApiError,
    CanonTransportError,
    ConfigurationError,
    MalformedResponseError,
)
from canon_hermes_plugin.ports.registration import RegistrationAnswer, RegistrationTicket
from canon_hermes_plugin.ports.secret import Secret

DEV = packaged_catalog().resolve("canon-dev-v1", Endpoints())
PROD = packaged_catalog().resolve("canon-prod-v1", Endpoints())
APPROVED = RegistrationAnswer("approved", Secret("agk_live_new"), "agent_1", "Ermes")
PENDING = RegistrationAnswer("pending")
DOWN = CanonTransportError("no answer", executed=True)


class World:
    """Canon and the disk, with one diary of everything that happened."""

    def __init__(self, *answers, register=None, existing=None, pending=None):
        self.diary, self.requests = [], []
        self.answers, self.registers = list(answers), list(register or [RegistrationTicket("req_1", Secret("tok"))])
        self.profiles, self.pending = MemoryProfileStore(existing), MemoryPendingRegistrations(pending)
        self.clock = VirtualClock(instant=True)
        self.fail = {}

    # RegistrationApi
    async def register(self, request):
        self.diary.append("register")
        self.requests.append(request)
        assert "ops" in self.pending.load(), "the record is written before any network"
        return self.play(self.registers.pop(0) if len(self.registers) > 1 else self.registers[0])

    async def poll(self, ticket):
        self.diary.append(f"poll {ticket.request_id} {ticket.poll_token and ticket.poll_token.reveal()}")
        return self.play(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])

    async def acknowledge(self, ticket):
        self.diary.append("ack")
        assert self.profiles.load()["ops"]["apiKey"] == "agk_live_new", "the key is on disk before Canon forgets it"
        self.play(self.fail.get("ack"))

    async def close(self):
        pass

    # AgentSwitch
    def use_profile(self, name):
        self.diary.append(f"switch {name}")
        assert "ops" in self.pending.load(), "the record is the last thing to go"
        self.play(self.fail.get("switch"))

    # Watcher
    def asked(self, request_id, total):
        assert self.pending.load()["ops"]["requestId"] == request_id, "a shown request can be resumed"
        self.diary.append(f"asked {request_id}")

    def resumed(self, request_id, total):
        self.diary.append(f"resumed {request_id}")

    def waiting(self, request_id, elapsed, total):
        self.diary.append(f"pending {elapsed:g}/{total:g}")

    def stumbled(self, problem):
        self.diary.append("stumbled")

    @staticmethod
    def play(thing):
        if isinstance(thing, Exception):
            raise thing
        return thing

    async def run(self, environment=DEV, **changes):
        application = Application("ops", "Ermes", "Hermes gateway agent", "+41791234567", environment)
        desk = RegistrationDesk(self, Stores(self.profiles, self.pending, self), self.clock, SeededIds(1))
        return await desk.register(application, self, **changes)


async def test_an_approved_registration_is_saved_acknowledged_switched_and_cleared_in_that_order():
    world = World(PENDING, PENDING, APPROVED)
    outcome = await world.run()
    assert outcome.good
    assert world.diary == [
        "register",
        "asked req_1",
        "poll req_1 tok",
        "pending 3/300",
        "poll req_1 tok",
        "pending 6/300",
        "poll req_1 tok",
        "ack",
        "switch ops",
    ]
    assert world.pending.load() == {}
    assert world.profiles.load()["ops"] == {
        "apiKey": "agk_live_new",
        "agentId": "agent_1",
        "agentName": "Ermes",
        "registeredAt": "2023-11-14T22:13:29Z",
        "clientType": "hermes",
        **endpoints_of(DEV),
    }


async def test_the_first_question_comes_after_the_first_wait():
    world = World(APPROVED)
    await world.run()
    assert world.clock.monotonic() == 3.0


async def test_a_fresh_request_carries_a_local_id_and_what_was_typed():
    world = World(APPROVED)
    await world.run()
    (request,) = world.requests
    assert request.local_registration_id.removeprefix("hermes-").isalnum()
    assert len(request.local_registration_id) == len("hermes-") + 32
    assert (request.name, request.owner_phone, request.requested_agent_id) == ("Ermes", "+41791234567", None)


async def test_an_existing_profile_is_reconnected_by_its_agent_id():
    world = World(APPROVED, existing={"ops": {"agentId": "agent_old"}})
    await world.run()
    assert world.requests[0].requested_agent_id == "agent_old"


async def test_a_rejection_drops_the_record_and_is_no_success_d14():
    world = World(RegistrationAnswer("rejected"))
    outcome = await world.run()
    assert (outcome.step, outcome.good) == (Step.REJECTED, False)
    assert world.pending.load() == {}
    assert world.profiles.load() == {}


async def test_d15_passing_errors_are_outlived():
    slow = CanonApiError(429, retry_after=20)
    world = World(DOWN, CanonApiError(500), MalformedResponseError("not JSON"), slow, PENDING, APPROVED)
    assert (await world.run()).good
    assert world.diary.count("stumbled") == 4
    assert world.clock.monotonic() == 3 * 5 + 20


@pytest.mark.parametrize("status", [404, 410])
async def test_d15_a_request_canon_no_longer_knows_is_dropped(status):
    world = World(CanonApiError(status))
    assert (await world.run()).step is Step.FORGOTTEN
    assert world.pending.load() == {}


async def test_any_other_refusal_ends_with_the_record_kept():
    world = World(CanonApiError(401, "agk_live_body"))
    outcome = await world.run()
    assert outcome.step is Step.FAILED
    assert "401" in outcome.problem
    assert "agk_live" not in outcome.problem
    assert world.pending.load()["ops"]["requestId"] == "req_1"


async def test_when_time_is_over_the_record_stays_and_the_next_run_resumes_it():
    world = World(PENDING)
    assert (await world.run()).step is Step.TIMED_OUT
    assert world.clock.monotonic() == 300
    assert world.diary.count("poll req_1 tok") == 100
    kept = world.pending.load()["ops"]
    assert (kept["requestId"], kept["pollToken"]) == ("req_1", "tok")
    world.answers, world.diary = [APPROVED], []
    assert (await world.run()).good
    assert world.diary == ["resumed req_1", "poll req_1 tok", "ack", "switch ops"]
    assert len(world.requests) == 1


async def test_a_deadline_can_be_shorter():
    world = World(PENDING)
    assert (await world.run(total=7)).step is Step.TIMED_OUT
    assert world.clock.monotonic() == 7


@pytest.mark.parametrize(
    "hollow", [RegistrationAnswer("approved", None, "a"), RegistrationAnswer("approved", Secret("k"))]
)
async def test_an_approval_without_key_or_id_is_an_error_and_the_record_stays(hollow):
    world = World(hollow)
    assert (await world.run()).step is Step.INCOMPLETE
    assert "ops" in world.pending.load()


async def test_an_agent_without_a_name_is_called_by_its_id():
    world = World(RegistrationAnswer("approved", Secret("agk_live_new"), "agent_1"))
    assert (await world.run()).profile.agent_name == "agent_1"


async def test_a_failed_acknowledgement_is_only_a_warning():
    world = World(APPROVED)
    world.fail["ack"] = DOWN
    outcome = await world.run()
    assert outcome.good
    assert "stored" in outcome.warning


async def test_a_profile_that_cannot_be_saved_is_not_acknowledged(monkeypatch):
    world = World(APPROVED)
    monkeypatch.setattr(world.profiles, "save", lambda *_: World.play(OSError(28, "full")))
    outcome = await world.run()
    assert outcome.step is Step.FAILED
    assert "ack" not in world.diary
    assert "ops" in world.pending.load()


async def test_a_crash_after_the_acknowledgement_is_resumed_though_canon_gives_the_key_only_once():
    world = World(APPROVED)
    world.fail["switch"] = ConfigurationError("disk full")
    assert (await world.run()).step is Step.FAILED
    world.answers, world.diary, world.fail = [RegistrationAnswer("approved", None, "agent_1")], [], {}
    assert (await world.run()).good
    assert world.diary == ["resumed req_1", "ack", "switch ops"]
    assert world.pending.load() == {}


async def test_a_pending_request_of_another_environment_is_never_adopted():
    world = World(PENDING)
    await world.run()
    before = world.pending.load()
    with pytest.raises(ConfigurationError, match="another Canon environment"):
        await world.run(environment=PROD)
    assert world.pending.load() == before
    assert len(world.requests) == 1


async def test_a_record_without_a_request_is_bound_anew_and_keeps_its_local_id():
    world = World(APPROVED, register=[CanonApiError(400)])
    assert (await world.run()).step is Step.FAILED
    world.registers = [RegistrationTicket("req_2")]
    assert (await world.run(environment=PROD)).good
    assert world.requests[0].local_registration_id == world.requests[1].local_registration_id
    assert world.diary[-3] == "poll req_2 None"


async def test_a_submission_that_stumbles_is_repeated_under_the_same_local_id():
    world = World(APPROVED, register=[DOWN, CanonApiError(503), RegistrationTicket("req_1", Secret("tok"))])
    assert (await world.run()).good
    assert len({request.local_registration_id for request in world.requests}) == 1


async def test_a_submission_that_keeps_failing_ends_with_the_record_kept():
    world = World(APPROVED, register=[DOWN])
    outcome = await world.run()
    assert outcome.step is Step.FAILED
    assert world.diary.count("register") == 3
    assert "requestId" not in world.pending.load()["ops"]


@pytest.mark.parametrize(
    ("name", "expected"), [("My Agent!", "my-agent"), ("  ", "hermes"), ("Ärger 9", "rger-9"), ("--a__b--", "a-b")]
)
def test_slug(name, expected):
    assert record.slug(name) == expected


@pytest.mark.parametrize("phone", ["+41791234567", "+12025550123"])
def test_e164_numbers_are_accepted(phone):
    assert record.phone_fault(phone) is None


@pytest.mark.parametrize(
    "phone", ["", "0791234567", "+0791234567", "+41 79 123", "+4179", "+١٢٣٤٥٦٧٨", "+1" + "2" * 15]
)
def test_other_numbers_are_refused(phone):
    assert record.phone_fault(phone)


def test_the_environment_of_a_record_is_read_back():
    entry = record.opened(None, "hermes-1", DEV)
    assert record.environment_of(entry, packaged_catalog()) == DEV
    assert record.environment_of({"localRegistrationId": "x"}, packaged_catalog()) is None
