"""The suites that every adapter of a port passes: ours, their in-memory twins, and yours.

Subclass a suite in a test module, name the class ``Test…`` and say how to make the subject::

    class TestMyProfiles(ProfileStoreContract):
        def factory(self, tmp_path, profiles=None, bootstrap=None):
            return MyProfileStore(tmp_path, profiles, bootstrap)

The suites need pytest and nothing else. :data:`SUITES` says which suite is whose; ``docs/testing.md`` shows two.
"""

try:
    import pytest
except ModuleNotFoundError as missing:
    raise ImportError(
        "the suites of the ports need pytest, which is not installed: install it, or canon-hermes-plugin[test]"
    ) from missing

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{name}"
        for name in (
            "access",
            "base",
            "canon_api",
            "canon_api_driver",
            "canon_stream",
            "checkpoints",
            "handlers",
            "host",
            "host_inbox",
            "host_lanes",
            "host_signals",
            "ledger",
            "media",
            "outbox",
            "profiles",
            "questions",
            "receipts",
            "registration",
            "session",
            "silence",
            "suites",
            "time",
        )
    )
)

from canon_hermes_plugin.testing.contracts.access import (  # noqa: E402
    BriefAccessContract,
    BriefAccessDriver,
    CanonAccessContract,
    CanonAccessDriver,
)
from canon_hermes_plugin.testing.contracts.base import Contract, Driver, on_a_loop  # noqa: E402
from canon_hermes_plugin.testing.contracts.canon_api import CanonApiContract  # noqa: E402
from canon_hermes_plugin.testing.contracts.canon_api_driver import CanonApiDriver  # noqa: E402
from canon_hermes_plugin.testing.contracts.canon_stream import CanonStreamContract, CanonStreamDriver  # noqa: E402
from canon_hermes_plugin.testing.contracts.checkpoints import CheckpointDriver, CheckpointStoreContract  # noqa: E402
from canon_hermes_plugin.testing.contracts.handlers import (  # noqa: E402
    EagerEventHandlerContract,
    EventHandlerContract,
    EventHandlerDriver,
    WaitingEventHandlerContract,
)
from canon_hermes_plugin.testing.contracts.host import HostInboxDriver, HostLanesDriver, HostTurn, TurnLog  # noqa: E402
from canon_hermes_plugin.testing.contracts.host_inbox import HostInboxContract  # noqa: E402
from canon_hermes_plugin.testing.contracts.host_lanes import HostLanesContract  # noqa: E402
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
from canon_hermes_plugin.testing.contracts.questions import (  # noqa: E402
    AskingTurnContract,
    AskingTurnDriver,
    HostQuestionsContract,
    HostQuestionsDriver,
)
from canon_hermes_plugin.testing.contracts.receipts import (  # noqa: E402
    ApprovalReceiptsContract,
    ApprovalReceiptsDriver,
)
from canon_hermes_plugin.testing.contracts.registration import RegistrationContract, RegistrationDriver  # noqa: E402
from canon_hermes_plugin.testing.contracts.session import SessionContextContract, SessionContextDriver  # noqa: E402
from canon_hermes_plugin.testing.contracts.silence import (  # noqa: E402
    SilencerContract,
    SilencerDriver,
    SilenceReporterContract,
    SilenceReporterDriver,
)
from canon_hermes_plugin.testing.contracts.suites import SUITES  # noqa: E402
from canon_hermes_plugin.testing.contracts.time import ClockContract, IdSourceContract, TasksContract  # noqa: E402

__all__ = [
    "SUITES",
    "ApprovalReceiptsContract",
    "ApprovalReceiptsDriver",
    "AskingTurnContract",
    "AskingTurnDriver",
    "BriefAccessContract",
    "BriefAccessDriver",
    "CanonAccessContract",
    "CanonAccessDriver",
    "CanonApiContract",
    "CanonApiDriver",
    "CanonStreamContract",
    "CanonStreamDriver",
    "CheckpointDriver",
    "CheckpointStoreContract",
    "ClockContract",
    "Contract",
    "Driver",
    "EagerEventHandlerContract",
    "EventHandlerContract",
    "EventHandlerDriver",
    "HostInboxContract",
    "HostInboxDriver",
    "HostLanesContract",
    "HostLanesDriver",
    "HostQuestionsContract",
    "HostQuestionsDriver",
    "HostTurn",
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
    "SessionContextContract",
    "SessionContextDriver",
    "SilenceReporterContract",
    "SilenceReporterDriver",
    "SilencerContract",
    "SilencerDriver",
    "TasksContract",
    "TurnLog",
    "WaitingEventHandlerContract",
    "on_a_loop",
]
