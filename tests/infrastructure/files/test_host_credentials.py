"""Which variables each way to connect writes and removes (canon-wire §2.2 row 7)."""

import pytest
from canon_hermes_plugin.domain.environments import Endpoints
from canon_hermes_plugin.infrastructure.files.env_file import EnvFile
from canon_hermes_plugin.infrastructure.files.environment_catalog import packaged_catalog
from canon_hermes_plugin.infrastructure.files.host_credentials import HostCredentials
from canon_hermes_plugin.ports.secret import Secret

DIRECT = {
    "CANON_API_KEY": "k",
    "CANON_ENVIRONMENT_ID": "canon-dev-v1",
    "CANON_BASE_URL": "https://a",
    "CANON_STREAM_URL": "https://s",
    "CANON_RTDB_URL": "https://r",
    "CANON_FIREBASE_API_KEY": "f",
}


@pytest.fixture
def env(tmp_path):
    file = EnvFile(tmp_path / ".env")
    file.change({"OTHER": "1", "CANON_AGENT": "old", **DIRECT})
    return file


@pytest.mark.parametrize(
    ("switch", "left"),
    [
        (lambda host: host.use_profile("ops"), {"CANON_AGENT": "ops"}),
        (
            lambda host: host.use_existing("ops"),
            {"CANON_AGENT": "ops", **{name: value for name, value in DIRECT.items() if name != "CANON_API_KEY"}},
        ),
        (
            lambda host: host.use_key(Secret("new"), packaged_catalog().resolve("canon-prod-v1", Endpoints())),
            {
                "CANON_API_KEY": "new",
                "CANON_ENVIRONMENT_ID": "canon-prod-v1",
                "CANON_BASE_URL": "https://api.canonmail.com",
                "CANON_STREAM_URL": "https://stream.canonmail.com",
                "CANON_RTDB_URL": "https://canonmail-prod-default-rtdb.europe-west1.firebasedatabase.app",
                "CANON_FIREBASE_API_KEY": packaged_catalog().default().endpoints.firebase_api_key,
            },
        ),
    ],
)
def test_each_way_leaves_exactly_its_own_credentials(env, switch, left):
    process = dict(env.values())
    switch(HostCredentials(env, process))
    assert env.values() == {"OTHER": "1", **left}
    assert process == env.values()
