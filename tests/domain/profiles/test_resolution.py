"""Which credentials win (canon-wire §4.5, interactions §14.3)."""

import pytest
from canon_hermes_plugin.domain import settings
from canon_hermes_plugin.domain.profiles.resolution import CredentialResolver, resolve_connection
from canon_hermes_plugin.domain.profiles.rules import REQUIRED_FIELDS, parse_profile, viable_names
from canon_hermes_plugin.infrastructure.files.environment_catalog import packaged_catalog
from canon_hermes_plugin.infrastructure.memory.profiles import MemoryProfileStore
from canon_hermes_plugin.ports.errors import ConfigurationError, CredentialsError
from canon_hermes_plugin.ports.profiles import PlatformSettings

OPS = {
    "apiKey": "agk_live_example",
    "agentId": "agent_7Qd",
    "agentName": "Ermes",
    "registeredAt": "2026-08-01T10:05:00Z",
    "clientType": "hermes",
    "environmentId": "canon-prod-v1",
    "baseUrl": "https://api.canonmail.com",
    "streamUrl": "https://stream.canonmail.com",
    "rtdbUrl": "https://canonmail-prod-default-rtdb.europe-west1.firebasedatabase.app",
    "firebaseApiKey": "AIzaExample",
}
BARE = PlatformSettings()
DEV = {"CANON_ENVIRONMENT_ID": "canon-dev-v1"}


def resolve(environ=None, platform=BARE, profiles=None):
    return resolve_connection(environ or {}, platform, profiles or {}, packaged_catalog())


def test_the_environment_key_beats_the_platform_and_every_profile():
    platform = PlatformSettings(api_key="k2", token="k3", extra={"api_key": "k4"})
    found = resolve({"CANON_API_KEY": "k1", **DEV}, platform, {"ops": OPS})
    assert (found.api_key.reveal(), found.mode, found.profile, found.agent_id) == ("k1", "direct", None, None)
    assert found.environment_id == "canon-dev-v1"


@pytest.mark.parametrize(
    ("platform", "key", "source"),
    [
        (PlatformSettings(api_key="a", token="b", extra={"api_key": "c"}), "a", "platform api_key"),
        (PlatformSettings(api_key=" ", token="b", extra={"api_key": "c"}), "b", "platform token"),
        (
            PlatformSettings(extra={"api_key": "", "canon_api_key": "c", "CANON_API_KEY": "d"}),
            "c",
            "platform extra canon_api_key",
        ),
        (PlatformSettings(extra={"CANON_API_KEY": 12345}), "12345", "platform extra CANON_API_KEY"),
    ],
)
def test_the_platform_places_of_a_key_have_an_order(platform, key, source):
    found = resolve(DEV, platform)
    assert (found.api_key.reveal(), found.source) == (key, source)


def test_a_direct_key_without_an_environment_id_is_refused():
    with pytest.raises(CredentialsError, match="CANON_ENVIRONMENT_ID"):
        resolve({"CANON_API_KEY": "k"})


def test_the_environment_id_may_come_from_the_extra():
    assert resolve({"CANON_API_KEY": "k"}, PlatformSettings(extra=DEV)).environment_id == "canon-dev-v1"


@pytest.mark.parametrize("spelling", ["base_url", "canon_base_url", "CANON_BASE_URL"])
def test_direct_endpoints_are_read_in_every_spelling_and_the_environment_wins(spelling):
    platform = PlatformSettings(api_key="k", extra={spelling: "https://extra.example", **DEV})
    assert resolve({}, platform).base_url == "https://extra.example"
    assert resolve({"CANON_BASE_URL": "https://env.example"}, platform).base_url == "https://env.example"


def test_endpoint_variables_never_override_a_profile():
    environ = {"CANON_BASE_URL": "https://evil.example", "CANON_STREAM_URL": "https://evil.example", **DEV}
    found = resolve(environ, PlatformSettings(extra={"base_url": "https://evil.example"}), {"ops": OPS})
    assert (found.base_url, found.environment_id) == (OPS["baseUrl"], "canon-prod-v1")


def test_blank_variables_count_as_unset():
    found = resolve({"CANON_API_KEY": "  ", "CANON_AGENT": " "}, BARE, {"ops": OPS})
    assert (found.profile, found.agent_id, found.agent_name) == ("ops", "agent_7Qd", "Ermes")


@pytest.mark.parametrize("key", ["agent", "profile", "canon_agent", "CANON_AGENT"])
def test_a_profile_is_named_by_the_environment_then_by_the_extra(key):
    profiles = {"ops": OPS, "two": {**OPS, "apiKey": "k2"}}
    assert resolve({}, PlatformSettings(extra={key: "two"}), profiles).profile == "two"
    assert resolve({"CANON_AGENT": "ops"}, PlatformSettings(extra={key: "two"}), profiles).profile == "ops"


def test_several_usable_profiles_need_a_name_and_unusable_ones_do_not_count():
    foreign, unbound = {**OPS, "clientType": "other"}, {"apiKey": "k"}
    assert resolve({}, BARE, {"a": foreign, "b": OPS, "c": unbound}).profile == "b"
    with pytest.raises(CredentialsError, match="CANON_AGENT to one of: a, b"):
        resolve({}, BARE, {"b": OPS, "a": OPS})


def test_no_credentials_at_all_is_no_error():
    assert resolve() is None
    assert resolve({}, BARE, {"a": {"clientType": "other"}}) is None


def test_requiring_credentials_says_what_to_do():
    with pytest.raises(CredentialsError, match="canon-hermes setup"):
        CredentialResolver(MemoryProfileStore(), packaged_catalog()).require({}, BARE)


@pytest.mark.parametrize("missing", REQUIRED_FIELDS)
def test_an_unbound_profile_fails_closed_and_names_the_missing_field(missing):
    for hole in ({**OPS, missing: ""}, {k: v for k, v in OPS.items() if k != missing}, {**OPS, missing: 5}):
        with pytest.raises(CredentialsError, match=rf"missing {missing}\).*setup"):
            resolve({"CANON_AGENT": "ops"}, BARE, {"ops": hole})


def test_a_named_profile_must_exist_and_be_ours():
    with pytest.raises(CredentialsError, match=r"no Canon profile 'x' \(stored: ops\)"):
        resolve({"CANON_AGENT": "x"}, BARE, {"ops": OPS})
    with pytest.raises(CredentialsError, match="another runtime"):
        resolve({"CANON_AGENT": "ops"}, BARE, {"ops": {**OPS, "clientType": "claude"}})


@pytest.mark.parametrize("client_type", [None, "", "hermes"])
def test_a_missing_or_empty_client_type_counts_as_ours(client_type):
    assert viable_names({"ops": {**OPS, "clientType": client_type}}, packaged_catalog()) == ["ops"]


def test_a_complete_profile_still_passes_the_endpoint_rules():
    with pytest.raises(CredentialsError, match="rtdbUrl"):
        parse_profile("ops", {**OPS, "environmentId": "canon-dev-v1"}, packaged_catalog())


def test_a_profile_survives_its_own_document():
    profile = parse_profile("ops", OPS, packaged_catalog())
    assert profile.document() == OPS


@pytest.mark.parametrize("value", [["k"], {"k": 1}, True, "${CANON_KEY}"])
def test_a_malformed_or_unexpanded_setting_is_refused_without_quoting_it(value):
    with pytest.raises(ConfigurationError, match="platform extra api_key") as caught:
        resolve(DEV, PlatformSettings(extra={"api_key": value}))
    assert "CANON_KEY" not in str(caught.value)


def test_field_56_no_text_form_shows_any_part_of_a_key():
    platform = PlatformSettings(api_key="agk_live_secretpart", extra={"token": "agk_live_secretpart"})
    texts = [repr(platform), str(platform), repr(resolve(DEV, platform)), f"{resolve({}, BARE, {'ops': OPS})}"]
    assert not any(
        "agk_" in text or "secretpart" in text or "example" in text.replace("AIzaExample", "") for text in texts
    )


@pytest.mark.parametrize("key", ["ab:cd", "a b", "Bearer x:y", "{k}", "%s"])
def test_field_55_a_secret_has_one_text_form_whatever_it_holds(key):
    found = resolve({"CANON_API_KEY": key, **DEV})
    assert {str(found.api_key), repr(found.api_key), f"{found.api_key}", f"{found.api_key!s:>3}"} == {"Secret(***)"}


def test_a_direct_key_does_not_read_the_profile_store():
    class Broken(MemoryProfileStore):
        def load(self):
            raise ConfigurationError("broken")

    resolver = CredentialResolver(Broken(), packaged_catalog())
    assert resolver.require({"CANON_API_KEY": "k", **DEV}, BARE).mode == "direct"
    with pytest.raises(ConfigurationError, match="broken"):
        resolver.require({}, BARE)


def test_every_credential_setting_has_a_meaning():
    assert all(setting.meaning for setting in settings.CREDENTIAL_SETTINGS)
