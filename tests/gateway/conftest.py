"""The harness of the gateway tests: real Hermes gateways, the loopback Canon, the scripted model.

One gateway serves a whole module (it starts in a few seconds). Isolation comes from the conversation: open one for
each test with ``chat.direct()`` or ``chat.group()``. A module that needs other settings overrides the fixture
``gateway_options``::

    @pytest.fixture(scope="module")
    def gateway_options():
        return {"streaming": False, "config": {"display": {...}}, "env": {"CANON_TURN_VERBOSITY": "quiet"}}

    @pytest.mark.gateway
    def test_it_answers(chat, model):
        model.script("weather", ["It is sunny."])
        answer = chat.ask(chat.direct(), "weather?")
        assert answer.text == "It is sunny."

``model.script`` takes the words to look for in the user's text and one list of steps per round of the model; see
:mod:`canon_hermes_plugin.infrastructure.sandbox.model` (``ToolCall``, ``Pause``, ``Gate``, ``Fail``). ``canon.fault``
makes a route fail, ``canon.requests("send")`` shows what arrived, ``canon.logs`` holds typing, turn states, node
writes and so on. A test that kills or restarts the gateway starts its own with ``new_gateway()``, with the keyword
``canon=`` when it needs a Canon of its own.
"""

from collections.abc import Iterator

import pytest
from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewaySettings
from canon_hermes_plugin.infrastructure.sandbox.model import ScriptedModel
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.infrastructure.sandbox.session import Chat


@pytest.fixture(scope="module")
def canon() -> Iterator[LoopbackCanon]:
    """The loopback Canon of this module."""
    with LoopbackCanon() as running:
        yield running


@pytest.fixture
def own_canon() -> Iterator[LoopbackCanon]:
    """A Canon of this test alone: its gateway must not answer for others."""
    with LoopbackCanon() as running:
        yield running


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    """The scripted model of this module."""
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def gateway_options():
    """Settings of this module's gateway: fields of ``GatewaySettings``. Override it in a module."""
    return {}


@pytest.fixture(scope="module")
def new_gateway(canon, model):
    """A function that starts one more gateway and returns the ``Chat`` with it, connected; closed at the module's end.

    Keyword arguments are fields of ``GatewaySettings`` (``streaming``, ``config``, ``env`` …), ``canon`` is another
    Canon, ``connected=False`` does not wait for the stream.
    """
    started: list[Gateway] = []

    def start(*, connected=True, canon=canon, **options) -> Chat:
        gateway = Gateway(GatewaySettings(**{"canon": canon.environment(), "model_url": model.url, **options}))
        started.append(gateway)
        gateway.start()
        chat = Chat(canon, gateway)
        if connected:
            chat.wait_connected()
        return chat

    yield start
    for gateway in started:
        gateway.close()


@pytest.fixture(scope="module")
def chat(new_gateway, gateway_options) -> Iterator[Chat]:
    """Talks to this module's gateway: ``chat.ask(chat.direct(), "hello")``.

    With a parametrised ``gateway_options`` each gateway ends before the next one starts: two of them would both answer.
    """
    running = new_gateway(**gateway_options)
    yield running
    running.gateway.close()


@pytest.fixture(scope="module")
def gateway(chat) -> Gateway:
    """This module's gateway process: ``log()``, ``home``, ``stop()`` …"""
    return chat.gateway


@pytest.fixture(autouse=True)
def _fresh(request):
    """No fault of one test reaches the next."""
    yield
    if "canon" in request.fixturenames:
        request.getfixturevalue("canon").clear_faults()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A failing test shows the end of its gateway's log."""
    report = yield
    if report.failed and call.when == "call":
        chat = getattr(item, "funcargs", {}).get("chat")
        if chat is not None:
            report.sections.append(("gateway log", chat.gateway.log(60)))
    return report
