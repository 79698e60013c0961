"""Settings every test shares."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A property says what must hold, not how fast a shared machine is.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")
