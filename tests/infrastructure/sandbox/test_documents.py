"""The documents list the routes that the loopback Canon serves, by the names its faults and records use."""

import re
from pathlib import Path

import httpx
import pytest
from canon_hermes_plugin.infrastructure.sandbox.faults import ROUTES
from canon_hermes_plugin.infrastructure.sandbox.routes import Desks, build_app
from canon_hermes_plugin.infrastructure.sandbox.server import LoopbackCanon
from canon_hermes_plugin.infrastructure.sandbox.wire import UNAUTHENTICATED

DOCS = Path(__file__).resolve().parents[3] / "docs" / "sandbox.md"
ROW = re.compile(r"^\| (GET|POST|PATCH) \| `(\S+)` \| (.+?)( \*)? \| `([a-z.]+)` \|$", re.MULTILINE)

pytestmark = pytest.mark.skipif(not DOCS.is_file(), reason="the documents are not beside the tests")


def rows():
    return ROW.findall(DOCS.read_text(encoding="utf-8"))


def test_the_documents_list_the_routes_that_are_served():
    canon = LoopbackCanon()
    app = build_app(canon.wire, Desks(canon.media, canon.interactions, canon.verbs, canon.registrations))
    served = {(method, route.path) for route in app.routes for method in route.methods - {"HEAD"}}
    listed = [(method, path) for method, path, *_ in rows()]
    assert set(listed) == served
    assert len(listed) == len(served)


def test_the_documents_name_them_as_faults_and_records_do():
    assert {name for *_, name in rows()} == ROUTES
    with LoopbackCanon() as canon:
        for method, path, _what, open_to_all, name in rows():
            answer = httpx.request(method, canon.base_url + re.sub(r"\{\w+\}", "x", path), json={})
            assert canon.requests()[-1].route == name
            assert bool(open_to_all) == (name in UNAUTHENTICATED) == (answer.status_code != 401), path
