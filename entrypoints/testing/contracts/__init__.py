"""The suites that every adapter of a port passes: ours, their in-memory twins, and yours.

Subclass a suite in a test module, name the class ``Test…`` and say how to make the subject::

    class TestMyProfiles(ProfileStoreContract):
        def factory(self, tmp_path, profiles=None, bootstrap=None):
            return MyProfileStore(tmp_path, profiles, bootstrap)

The suites need pytest and nothing else.
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{name}"
        for name in (
            "base",
            "canon_api",
            "canon_stream",
            "ledger",
            "media",
            "outbox",
            "profiles",
            "registration",
            "time",
        )
    )
)

from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop  # noqa: E402
from canon_hermes_plugin.testing.contracts.canon_api import CanonApiContract, CanonApiDriver  # noqa: E402
from canon_hermes_plugin.testing.contracts.canon_stream import CanonStreamContract, CanonStreamDriver  # noqa: E402
from canon_hermes_plugin.testing.contracts.ledger import LedgerDriver, LedgerStoreContract  # noqa: E402
from canon_hermes_plugin.testing.contracts.media import (  # noqa: E402
    MediaCacheContract,
    MediaCacheDriver,
    MediaFetcherContract,
    MediaFetcherDriver,
)
from canon_hermes_plugin.testing.contracts.outbox import OutboxContract, OutboxDriver  # noqa: E402
from canon_hermes_plugin.testing.contracts.profiles import (  # noqa: E402
    PendingRegistrationsContract,
    ProfileStoreContract,
)
from canon_hermes_plugin.testing.contracts.registration import RegistrationContract, RegistrationDriver  # noqa: E402
from canon_hermes_plugin.testing.contracts.time import ClockContract, IdSourceContract, TasksContract  # noqa: E402

__all__ = [
    "CanonApiContract",
    "CanonApiDriver",
    "CanonStreamContract",
    "CanonStreamDriver",
    "ClockContract",
    "Contract",
    "Driver",
    "IdSourceContract",
    "LedgerDriver",
    "LedgerStoreContract",
    "MediaCacheContract",
    "MediaCacheDriver",
    "MediaFetcherContract",
    "MediaFetcherDriver",
    "OutboxContract",
    "OutboxDriver",
    "PendingRegistrationsContract",
    "ProfileStoreContract",
    "RegistrationContract",
    "RegistrationDriver",
    "TasksContract",
    "on_a_loop",
]
