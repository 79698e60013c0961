"""The installed gateway starts on a throw-away home with our plugin enabled, and leaves nothing behind."""

import pytest
from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewayError, GatewaySettings

pytestmark = pytest.mark.gateway


def test_the_gateway_starts_with_the_plugin_enabled_and_stops_without_a_trace(canon, model):
    with Gateway(GatewaySettings(canon.environment(), model.url)) as gateway:
        assert gateway.running
        assert "Failed to load plugin" not in gateway.full_log()
        assert gateway.stop() == 0
        assert not gateway.running
    assert not gateway.root.exists()


def test_a_gateway_that_the_plugin_ends_says_why_in_its_error(canon, model):
    wrong = GatewaySettings({**canon.environment(), "CANON_ENVIRONMENT_ID": "canon-test-v9"}, model.url)
    with pytest.raises(GatewayError, match=r"exit code 78: .*unknown Canon environment id 'canon-test-v9'"):
        Gateway(wrong).__enter__()


def test_a_gateway_that_cannot_start_shows_the_end_of_its_log(canon, model):
    broken = GatewaySettings(canon.environment(), model.url, env={"HERMES_HOME": "/dev/null/nowhere"})
    gateway = Gateway(broken)
    try:
        with pytest.raises(GatewayError) as caught:
            gateway.start(timeout=60)
        assert caught.value.log != "(no output)"
    finally:
        gateway.close()
    assert not gateway.root.exists()
