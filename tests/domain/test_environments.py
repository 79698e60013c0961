"""Which endpoints may stand for a Canon environment (canon-wire §3)."""

import pytest
from canon_hermes_plugin.domain.environments import Endpoints, EnvironmentCatalog, endpoints_of
from canon_hermes_plugin.infrastructure.files.environment_catalog import packaged_catalog
from canon_hermes_plugin.ports.errors import ConfigurationError

DEV = "canon-dev-v1"


@pytest.fixture
def catalog():
    return packaged_catalog()


def test_exactly_two_environments_are_known_and_production_is_offered_first(catalog):
    assert catalog.ids() == ("canon-prod-v1", "canon-dev-v1")
    assert catalog.default().project_id == "canonmail-prod"


@pytest.mark.parametrize("unknown", ["", "canon-prod", "CANON-PROD-V1", "canon-prod-v2", "canonmail-prod"])
def test_any_other_environment_id_is_refused_even_with_all_endpoints(catalog, unknown):
    full = Endpoints("https://a", "https://s", "https://canonmail-prod.firebaseio.com", "k")
    with pytest.raises(ConfigurationError, match="canon-prod-v1, canon-dev-v1"):
        catalog.resolve(unknown, full)


@pytest.mark.parametrize("environment_id", ["canon-prod-v1", " canon-dev-v1\n"])
def test_packaged_endpoints_make_a_complete_snapshot(catalog, environment_id):
    snapshot = endpoints_of(catalog.resolve(environment_id, Endpoints()))
    assert all(snapshot.values())
    assert snapshot["environmentId"] == environment_id.strip()


def test_each_missing_endpoint_falls_back_on_its_own(catalog):
    resolved = catalog.resolve(DEV, Endpoints(base_url="http://127.0.0.1:8080/x///", stream_url="  "))
    assert resolved.base_url == "http://127.0.0.1:8080/x"
    assert resolved.stream_url == "https://dev.stream.canonmail.com"


@pytest.mark.parametrize(
    "url", ["https://h", "HTTPS://Host.example/Path", "http://localhost:1", "http://[::1]:9/p", "http://127.0.0.1"]
)
def test_api_addresses_keep_their_spelling(catalog, url):
    assert catalog.resolve(DEV, Endpoints(base_url=url, stream_url=url)).base_url == url


BAD_URLS = [
    "http://127.0.0.2",
    "http://example.com",
    "ftp://example.com",
    "example.com",
    "https://",
    "https:///path",
    "https://user@example.com",
    "https://user:pw@example.com",
    "https://@example.com",
    "https://example.com?x=1",
    "https://example.com/#f",
    "https://example.com/?",
    "https://exa mple.com",
    "https://exa\tmple.com",
    "https://example.com\\@evil.example",
    "https://example.com:port",
    "https://[::1",
    "http://localhost.evil.example",
    "/",
]


@pytest.mark.parametrize("url", BAD_URLS)
@pytest.mark.parametrize("field", ["base_url", "stream_url", "rtdb_url"])
def test_an_unusable_address_is_refused_and_the_field_named(catalog, url, field):
    name = {"base_url": "baseUrl", "stream_url": "streamUrl", "rtdb_url": "rtdbUrl"}[field]
    with pytest.raises(ConfigurationError, match=name):
        catalog.resolve(DEV, Endpoints(**{field: url}))


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.9",
        "http://localhost:9",
        "https://canonmail-dev.firebaseio.com",
        "https://canonmail-dev-x.firebasedatabase.app",
        "https://Canonmail-Dev.firebaseio.com",
    ],
)
def test_a_database_address_of_the_project_is_accepted(catalog, url):
    assert catalog.resolve(DEV, Endpoints(rtdb_url=url)).rtdb_url == url


@pytest.mark.parametrize(
    "url",
    [
        "https://canonmail-devx.firebaseio.com",
        "https://canonmail-dev-attacker.example.com",
        "https://canonmail-prod-default-rtdb.europe-west1.firebasedatabase.app",
        "https://x.canonmail-dev.firebaseio.com",
        "https://firebaseio.com",
    ],
)
def test_a_database_address_of_another_project_is_refused(catalog, url):
    with pytest.raises(ConfigurationError, match="rtdbUrl"):
        catalog.resolve(DEV, Endpoints(rtdb_url=url))


@pytest.mark.parametrize("field", ["baseUrl", "streamUrl", "rtdbUrl", "firebaseApiKey"])
def test_an_environment_without_packaged_values_needs_every_endpoint(field):
    bare = EnvironmentCatalog.from_document(
        {"environments": [{"environmentId": "e", "projectId": "p", "region": "r", "default": True}]}
    )
    full = {
        "baseUrl": "https://a",
        "streamUrl": "https://s",
        "rtdbUrl": "https://p.firebaseio.com",
        "firebaseApiKey": "k",
    }
    assert bare.resolve("e", Endpoints(*full.values())).firebase_api_key == "k"
    with pytest.raises(ConfigurationError, match=field):
        bare.resolve("e", Endpoints(*({**full, field: " "}.values())))
