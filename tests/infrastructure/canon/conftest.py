"""A scripted HTTP server, and clients that talk to it."""

from __future__ import annotations

import json

import httpx
import pytest
from canon_hermes_plugin.infrastructure.canon.client import CanonHttp
from canon_hermes_plugin.infrastructure.canon.link import CanonLink
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.ports.profiles import Connection, Environment
from canon_hermes_plugin.ports.secret import Secret

KEY = "agk_live_0123456789abcdef"


def connection_to(base="https://api.canon.example/v1", stream="https://stream.canon.example", key=KEY):
    environment = Environment("canon-dev-v1", "canonmail-dev", base, stream, "http://localhost:9", "web-key")
    return Connection(Secret(key), environment, "direct", "test")


class Script:
    """A transport that answers from a list: statuses, (status, body, headers), exceptions or callables."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    async def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer) and not isinstance(answer, type):
            answer = answer(request)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, type):
            raise answer("no answer", request=request)
        if isinstance(answer, int):
            answer = (answer, {})
        status, body, *headers = answer
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx.Response(status, content=content, headers=headers[0] if headers else None)

    def bodies(self):
        return [json.loads(request.content) for request in self.requests if request.content]


@pytest.fixture
def clock():
    return VirtualClock(instant=True)


@pytest.fixture
def canon(clock):
    """Make a client that gets the given answers: ``canon(500, 200) -> (client, script)``."""

    def make(*answers, **options):
        script = Script(*answers)
        link = CanonLink(connection_to(), clock=clock, transport=httpx.MockTransport(script))
        return CanonHttp(link, **options), script

    return make


@pytest.fixture
def script():
    return Script


@pytest.fixture
def connect_to():
    return connection_to


@pytest.fixture
def key():
    return KEY
