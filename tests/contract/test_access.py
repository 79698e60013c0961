"""Short-lived connections: the public suites on the HTTP ones, against the loopback Canon, and on the twin."""

from __future__ import annotations

import httpx
from canon_hermes_plugin.infrastructure.canon.access import HttpAccess, HttpBriefAccess
from canon_hermes_plugin.infrastructure.canon.health import RecentProofs
from canon_hermes_plugin.infrastructure.memory.access import MemoryAccess
from canon_hermes_plugin.infrastructure.memory.canon import MemoryCanon
from canon_hermes_plugin.infrastructure.memory.faults import Fault
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.ports.errors import CredentialsError
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret
from canon_hermes_plugin.testing.contracts import BriefAccessContract, CanonAccessContract


class Loopback:
    """The loopback Canon as seen by short-lived clients; counts those that hold connections."""

    def __init__(self):
        self.canon = LoopbackCanon()
        self.canon.start()
        identity, base = self.canon.identity, self.canon.base_url
        self._environment = Environment(identity.environment_id, identity.project_id, base, base, "http://x:9", "k")
        self._usable, self._open = True, set()
        self.clock = VirtualClock(instant=True)

    def resolve(self):
        if not self._usable:
            raise CredentialsError("no agent")
        return Connection(Secret(self.canon.identity.api_key), self._environment, "direct", "test")

    def transport(self):
        opened = self._open

        class Counted(httpx.AsyncHTTPTransport):
            async def handle_async_request(self, request):
                opened.add(self)
                return await super().handle_async_request(request)

            async def aclose(self):
                opened.discard(self)
                await super().aclose()

        return Counted()

    def held(self):
        return len(self._open)

    def proofs(self):
        return len(self.canon.requests("healthz", "health"))

    def keyed(self):
        return sum("authorization" in {name.lower() for name in item.headers} for item in self.canon.requests())

    def impersonate(self):
        body = '{"ok":true,"environmentId":"canon-prod-v1","projectId":"another"}'
        for route in ("healthz", "health"):
            self.canon.fault(route, kind="garbage", content=body, times=None)

    def vanish(self):
        for route in ("healthz", "health"):
            self.canon.fault(route, kind="drop", times=None)

    def lose_credentials(self):
        self._usable = False

    def hang(self):
        self.canon.fault("me", kind="delay", delay=2)

    async def close(self):
        self.canon.stop()


class LoopbackAccess(Loopback):
    def __init__(self):
        super().__init__()
        self.access = HttpAccess(self.resolve, self.clock, RecentProofs(self.clock), transport=self.transport)


class LoopbackBrief(Loopback):
    def __init__(self):
        super().__init__()
        self.access = HttpBriefAccess(self.resolve(), self.clock, transport=self.transport)


class Twin:
    """The twin."""

    def __init__(self):
        self.canon = MemoryCanon()
        self.access = MemoryAccess(self.canon)

    def held(self):
        return self.access.opened - self.access.closed

    def proofs(self):
        return self.canon.operations().count("verify")

    def keyed(self):
        return sum(name != "verify" for name in self.canon.operations())

    def impersonate(self):
        self.canon.faults.fail_next("verify", Fault.definitive(404))

    def vanish(self):
        self.canon.faults.outage = Fault.unreachable()

    def lose_credentials(self):
        self.access.missing = CredentialsError("no agent")

    def hang(self):
        self.canon.faults.hold_next("identify")

    async def close(self):
        pass


class TestHttpAccess(CanonAccessContract):
    subject = HttpAccess

    def factory(self, tmp_path):
        return LoopbackAccess()


class TestTwinAccess(CanonAccessContract):
    subject = MemoryAccess

    def factory(self, tmp_path):
        return Twin()


class TestHttpBriefAccess(BriefAccessContract):
    subject = HttpBriefAccess

    def factory(self, tmp_path):
        return LoopbackBrief()


class TestTwinBriefAccess(BriefAccessContract):
    subject = MemoryAccess

    def factory(self, tmp_path):
        return Twin()
