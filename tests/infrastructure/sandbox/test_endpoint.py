"""Whether the address of a real model is one, and whether anything listens there."""

import socket

import pytest
from canon_hermes_plugin.infrastructure.sandbox.endpoint import Endpoint


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://127.0.0.1:9/v1", "127.0.0.1", 9),
        ("https://models.example/v1", "models.example", 443),
        ("HTTP://[::1]/v1", "::1", 80),
    ],
)
def test_an_address_names_a_host_and_a_port(url, host, port):
    endpoint = Endpoint.parse(url)
    assert (endpoint.host, endpoint.port) == (host, port)


@pytest.mark.parametrize(
    "url", ["notaurl", "", "ftp://host/v1", "http://", "http:///v1", "http://host:seventy", "http://[::1"]
)
def test_anything_else_is_refused(url):
    with pytest.raises(ValueError, match=r".+"):
        Endpoint.parse(url)


def test_a_password_is_not_shown():
    assert Endpoint.parse("https://me:secret@host:1/v1").shown == "https://host:1/v1"


def test_whatever_accepts_a_connection_is_reachable_and_a_closed_port_is_not(closed_port):
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert Endpoint.parse(f"http://127.0.0.1:{server.getsockname()[1]}").trouble() is None
    assert "refused" in Endpoint.parse(f"http://127.0.0.1:{closed_port}/v1").trouble()


def test_a_name_that_cannot_be_encoded_is_unreachable():
    assert Endpoint.parse(f"http://{'a' * 70}.invalid/v1").trouble()


def test_behind_a_proxy_only_loopback_is_tried(monkeypatch, closed_port):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:3128")
    assert Endpoint.parse("http://models.invalid/v1").trouble() is None
    assert Endpoint.parse(f"http://127.0.0.1:{closed_port}/v1").trouble() is not None
