"""Every subject of a suite is what its test class says it is; ``test_every_port`` counts on that."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _declared_subject(request):
    declared = getattr(type(request.instance), "subject", None)
    if declared is None:
        yield
        return
    made = []
    name = "driver" if hasattr(request.instance, "driver") else "factory"
    make = getattr(request.instance, name)

    def remembered(*arguments, **options):
        made.append(make(*arguments, **options))
        return made[-1]

    setattr(request.instance, name, remembered)
    yield
    for driver in made:
        assert declared in {type(part) for part in (driver, *vars(driver).values())}, (
            f"{declared} is not what is tested"
        )
