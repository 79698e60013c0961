"""Downloads that trust neither the address nor the server (canon-wire §1.8)."""

from __future__ import annotations

import asyncio
import gzip
import threading
import traceback

import httpx
import pytest
from canon_hermes_plugin.infrastructure.canon import addresses
from canon_hermes_plugin.infrastructure.canon.media import FetchLimits, HttpMediaFetcher
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.ports.errors import MediaError
from canon_hermes_plugin.ports.media import MAX_MEDIA_BYTES

PUBLIC = "93.184.216.34"


class Web:
    """Names, and what answers under each address; remembers every request that would have left."""

    def __init__(self, *answers, names=None):
        self.answers = list(answers)
        self.names = {"files.example": [PUBLIC], **(names or {})}
        self.requests = []
        self.resolved_in = set()

    def resolve(self, host, port):
        self.resolved_in.add(threading.current_thread() is threading.main_thread())
        return self.names.get(host, [host] if host.replace(".", "").isdigit() or ":" in host else [])

    async def answer(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, type):
            raise answer("no", request=request)
        return answer

    def fetcher(self, policy=None, **limits):
        return HttpMediaFetcher(
            policy,
            limits=FetchLimits(**limits),
            resolver=self.resolve,
            transport=lambda: httpx.MockTransport(self.answer),
        )


def ok(content=b"data", **headers):
    return httpx.Response(
        200, stream=httpx.ByteStream(content), headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def to(location, status=302):
    return httpx.Response(status, headers={"location": location})


async def test_a_file_arrives_with_its_bare_content_type():
    web = Web(ok(b"%PDF", content_type="Application/PDF; charset=x"))
    media = await web.fetcher().fetch("https://files.example/a?sig=1#frag")
    assert (media.data, media.mime_type) == (b"%PDF", "application/pdf")
    (request,) = web.requests
    assert request.method == "GET"
    assert request.headers["user-agent"] == "HermesAgent/CanonPlatform"
    assert "authorization" not in request.headers
    assert "cookie" not in request.headers


async def test_the_judged_address_is_the_one_connected_to_under_the_right_name():
    web = Web(ok())
    await web.fetcher().fetch("https://files.example:8443/a?sig=1")
    (request,) = web.requests
    assert str(request.url) == f"https://{PUBLIC}:8443/a?sig=1"
    assert request.headers["host"] == "files.example:8443"
    assert request.extensions["sni_hostname"] == "files.example"


async def test_an_ipv6_address_is_connected_to_in_brackets():
    web = Web(ok(), names={"six.example": ["2606:2800:220:1::1"]})
    await web.fetcher().fetch("http://six.example/a")
    assert str(web.requests[0].url) == "http://[2606:2800:220:1::1]/a"
    assert web.requests[0].headers["host"] == "six.example"


async def test_names_are_resolved_off_the_event_loop():
    web = Web(ok())
    await web.fetcher().fetch("https://files.example/a")
    assert web.resolved_in == {False}


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://files.example/a",
        "/etc/passwd",
        "data:text/plain,x",
        "https://",
        "https:///a",
        "https://user:pw@files.example/a",
        "",
        "https://files.example/" + "a" * 9000,
        "http://[::1",
        "javascript:1",
    ],
)
async def test_field_85_only_plain_http_addresses_are_fetched(url):
    web = Web(ok())
    with pytest.raises(MediaError):
        await web.fetcher().fetch(url)
    assert web.requests == []


PRIVATE = ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "::1", "fc00::1", "::ffff:10.0.0.1"]
FORBIDDEN = [
    "169.254.169.254",
    "169.254.1.1",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "100.100.100.200",
    "168.63.129.16",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "not an address",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_field_86_private_addresses_are_told_apart(address):
    assert addresses.judge(address) == "private"


@pytest.mark.parametrize("address", FORBIDDEN)
def test_field_86_link_local_and_metadata_addresses_are_forbidden(address):
    assert addresses.judge(address) == "forbidden"


@pytest.mark.parametrize("address", [PUBLIC, "2606:2800:220:1::1", "8.8.8.8", "64:ff9b::808:808"])
def test_public_addresses_are_public(address):
    assert addresses.judge(address) == "public"


@pytest.mark.parametrize("address", PRIVATE + FORBIDDEN)
async def test_field_86_a_name_that_leads_inside_is_refused(address):
    web = Web(ok(), names={"evil.example": [PUBLIC, address]})
    with pytest.raises(MediaError):
        await web.fetcher().fetch("https://evil.example/a")
    assert web.requests == []


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://127.0.0.1/admin",
        "//192.168.0.1/x",
        "http://[::1]/",
        "file:///etc/passwd",
        "http://evil.example/",
    ],
)
async def test_field_86_every_redirect_is_judged_again(location):
    web = Web(to(location), ok(), names={"evil.example": ["10.0.0.1"]})
    with pytest.raises(MediaError):
        await web.fetcher().fetch("http://files.example/a")
    assert len(web.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_by_hand_and_carry_nothing_along(status):
    web = Web(
        to("/b?sig=2", status), to("https://other.example/c", status), ok(b"x"), names={"other.example": ["8.8.8.8"]}
    )
    media = await web.fetcher().fetch("https://files.example/a")
    assert media.data == b"x"
    assert [request.headers["host"] for request in web.requests] == ["files.example", "files.example", "other.example"]
    assert web.requests[1].url.raw_path == b"/b?sig=2"


async def test_more_than_five_redirects_are_not_followed():
    web = Web(to("https://files.example/a"))
    with pytest.raises(MediaError, match="redirects more than 5"):
        await web.fetcher().fetch("https://files.example/a")
    assert len(web.requests) == 6


async def test_a_redirect_out_of_encryption_is_refused():
    web = Web(to("http://files.example/a"), ok())
    with pytest.raises(MediaError):
        await web.fetcher().fetch("https://files.example/a")
    assert len(web.requests) == 1


async def test_the_hosts_policy_is_asked_about_every_hop_off_the_event_loop():
    asked = []

    def policy(url):
        asked.append((url, threading.current_thread() is threading.main_thread()))
        return "b.example" not in url

    web = Web(to("https://b.example/"), ok(), names={"b.example": ["8.8.8.8"]})
    with pytest.raises(MediaError, match=r"policy .*security\.allow_private_urls") as caught:
        await web.fetcher(policy).fetch("https://files.example/a")
    assert ".example" not in str(caught.value)
    assert asked == [("https://files.example/a", False), ("https://b.example/", False)]


@pytest.mark.parametrize("address", PRIVATE)
async def test_a_policy_that_permits_the_very_address_opens_private_ones(address):
    web = Web(ok(b"x"), names={"inside.example": [address]})
    assert (await web.fetcher(lambda url: True).fetch("http://inside.example/")).data == b"x"


async def test_a_name_that_changes_its_mind_after_the_policy_looked_is_refused():
    web = Web(ok(), names={"rebind.example": ["127.0.0.1"]})
    with pytest.raises(MediaError, match=r"not public .*security\.allow_private_urls"):
        await web.fetcher(lambda url: "rebind.example" in url).fetch("http://rebind.example/")
    assert web.requests == []


@pytest.mark.parametrize("address", FORBIDDEN)
async def test_no_policy_opens_link_local_or_metadata(address):
    web = Web(ok(), names={"evil.example": [address]})
    with pytest.raises(MediaError):
        await web.fetcher(lambda url: True).fetch("http://evil.example/")
    assert web.requests == []


async def test_defect_11_reading_stops_at_the_limit():
    read = []

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self):
            while True:
                read.append(1)
                yield bytes(1 << 20)

    web = Web(httpx.Response(200, stream=Endless()))
    with pytest.raises(MediaError, match="larger"):
        await web.fetcher().fetch("https://files.example/a")
    assert len(read) == 11


async def test_a_file_of_exactly_the_limit_is_taken_and_a_declared_larger_one_not_read_at_all():
    web = Web(ok(bytes(MAX_MEDIA_BYTES)))
    assert len((await web.fetcher().fetch("https://files.example/a")).data) == MAX_MEDIA_BYTES

    class Unread(httpx.AsyncByteStream):
        async def __aiter__(self):
            raise AssertionError("read")
            yield b""

    web = Web(httpx.Response(200, stream=Unread(), headers={"content-length": str(MAX_MEDIA_BYTES + 1)}))
    with pytest.raises(MediaError, match="larger"):
        await web.fetcher().fetch("https://files.example/a")


async def test_a_decompression_bomb_is_not_unpacked():
    bomb = gzip.compress(bytes(200 << 20))
    response = httpx.Response(200, stream=httpx.ByteStream(bomb), headers={"content-encoding": "gzip"})
    with pytest.raises(MediaError, match="larger"):
        await Web(response).fetcher().fetch("https://files.example/a")


async def test_a_decompression_bomb_is_never_held_in_memory():
    from canon_hermes_plugin.infrastructure.canon import media

    bomb = gzip.compress(bytes(50 << 20))
    response = httpx.Response(200, stream=httpx.ByteStream(bomb), headers={"content-encoding": "gzip"})
    unpacked = media._decoded(response, 1001)
    assert len(await anext(unpacked)) == 1001
    with pytest.raises(MediaError):
        await anext(unpacked)


async def test_a_server_that_compresses_unasked_is_understood():
    response = httpx.Response(
        200, stream=httpx.ByteStream(gzip.compress(b"hello" * 100)), headers={"content-encoding": "gzip"}
    )
    assert (await Web(response).fetcher().fetch("https://files.example/a")).data == b"hello" * 100


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip"])
async def test_other_encodings_are_refused(encoding):
    response = httpx.Response(200, stream=httpx.ByteStream(b"x"), headers={"content-encoding": encoding})
    with pytest.raises(MediaError):
        await Web(response).fetcher().fetch("https://files.example/a")


@pytest.mark.parametrize(
    ("answer", "retryable"),
    [
        (httpx.Response(404), False),
        (httpx.Response(403), False),
        (httpx.Response(500), True),
        (httpx.Response(304), False),
        (httpx.Response(302), False),
        (httpx.ConnectError, True),
        (httpx.ReadTimeout, True),
        (httpx.RemoteProtocolError, True),
    ],
)
async def test_failures_are_media_errors_that_never_show_the_address(answer, retryable):
    web = Web(answer)
    with pytest.raises(MediaError) as failure:
        await web.fetcher().fetch("https://files.example/secret-path?sig=topsecret")
    assert failure.value.retryable is retryable
    shown = "".join(traceback.format_exception(failure.value))
    assert "topsecret" not in shown.replace('fetch("https://files.example/secret-path?sig=topsecret")', "")
    assert failure.value.__context__ is None


async def test_the_next_address_is_tried_when_one_does_not_answer():
    web = Web(httpx.ConnectError, ok(b"x"), names={"two.example": ["2606:2800:220:1::1", PUBLIC]})
    assert (await web.fetcher().fetch("https://two.example/")).data == b"x"
    assert [request.url.host for request in web.requests] == ["2606:2800:220:1::1", PUBLIC]


async def test_an_unknown_name_is_a_media_error():
    with pytest.raises(MediaError):
        await Web(ok()).fetcher().fetch("https://nowhere.example/")


async def test_h21_the_whole_download_has_a_deadline_however_steadily_it_drips():
    class Drip(httpx.AsyncByteStream):
        async def __aiter__(self):
            while True:
                await asyncio.sleep(0.01)
                yield b"x"

    web = Web(httpx.Response(200, stream=Drip()))
    with pytest.raises(MediaError, match="too long"):
        await web.fetcher(deadline=0.2).fetch("https://files.example/a")


async def test_cancelling_ends_the_download_and_closes_the_connection():
    closed = []

    class Stuck(httpx.AsyncByteStream):
        async def __aiter__(self):
            await asyncio.Event().wait()
            yield b""

        async def aclose(self):
            closed.append(True)

    web = Web(httpx.Response(200, stream=Stuck()))
    task = asyncio.ensure_future(web.fetcher().fetch("https://files.example/a"))
    while not web.requests:
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert closed == [True]


async def test_no_address_reaches_the_http_librarys_log(caplog):
    caplog.set_level("INFO", "httpx")
    await Web(ok()).fetcher().fetch("https://files.example/a?sig=topsecret")
    assert "topsecret" not in caplog.text


async def test_a_real_download_on_loopback_needs_the_policys_permission():
    with LoopbackCanon() as canon:
        hosted = canon.host_file(b"\x89PNG....", "image/png", "a.png")
        with pytest.raises(MediaError):
            await HttpMediaFetcher().fetch(hosted["url"])
        media = await HttpMediaFetcher(lambda url: True).fetch(hosted["url"])
    assert (media.data, media.mime_type) == (b"\x89PNG....", "image/png")
