"""Settings every test shares."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A property says what must hold, not how fast a shared machine is. CI tries the same examples every time, so that a
# change is judged by what it changed; everybody else keeps looking for new ones.
settings.register_profile(
    "shared", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("shared")
