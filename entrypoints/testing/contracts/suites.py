"""Which suite proves an adapter of which port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from canon_hermes_plugin.ports import (
    approvals,
    canon,
    canon_stream,
    checkpoints,
    host,
    interactions,
    media,
    outbox,
    profiles,
    registration,
    time,
)
from canon_hermes_plugin.testing.contracts.access import BriefAccessContract, CanonAccessContract
from canon_hermes_plugin.testing.contracts.canon_api import CanonApiContract
from canon_hermes_plugin.testing.contracts.canon_stream import CanonStreamContract
from canon_hermes_plugin.testing.contracts.checkpoints import CheckpointStoreContract
from canon_hermes_plugin.testing.contracts.handlers import (
    EagerEventHandlerContract,
    EventHandlerContract,
    WaitingEventHandlerContract,
)
from canon_hermes_plugin.testing.contracts.host_inbox import HostInboxContract
from canon_hermes_plugin.testing.contracts.host_lanes import HostLanesContract
from canon_hermes_plugin.testing.contracts.ledger import LedgerStoreContract
from canon_hermes_plugin.testing.contracts.media import MediaCacheContract, MediaFetcherContract
from canon_hermes_plugin.testing.contracts.outbox import OutboxContract
from canon_hermes_plugin.testing.contracts.profiles import PendingRegistrationsContract, ProfileStoreContract
from canon_hermes_plugin.testing.contracts.questions import AskingTurnContract, HostQuestionsContract
from canon_hermes_plugin.testing.contracts.receipts import ApprovalReceiptsContract
from canon_hermes_plugin.testing.contracts.registration import RegistrationContract
from canon_hermes_plugin.testing.contracts.session import SessionContextContract
from canon_hermes_plugin.testing.contracts.silence import SilencerContract, SilenceReporterContract
from canon_hermes_plugin.testing.contracts.time import ClockContract, IdSourceContract, TasksContract

SUITES: Mapping[type, type[Any]] = {
    approvals.ApprovalReceipts: ApprovalReceiptsContract,
    approvals.LedgerStore: LedgerStoreContract,
    approvals.LedgerView: LedgerStoreContract,
    canon.CanonApi: CanonApiContract,
    canon.DirectoryPort: CanonApiContract,
    canon.DispositionPort: CanonApiContract,
    canon.EnvironmentProbe: CanonApiContract,
    canon.InteractionPort: CanonApiContract,
    canon.MediaPort: CanonApiContract,
    canon.MessageSink: CanonApiContract,
    canon.NodePort: CanonApiContract,
    canon.SignalPort: CanonApiContract,
    canon.TurnStatePort: CanonApiContract,
    canon.TypingPort: CanonApiContract,
    canon.VerbPort: CanonApiContract,
    canon_stream.CanonStream: CanonStreamContract,
    canon_stream.EagerEventHandler: EagerEventHandlerContract,
    canon_stream.EventHandler: EventHandlerContract,
    canon_stream.WaitingEventHandler: WaitingEventHandlerContract,
    host.HostInbox: HostInboxContract,
    host.HostLanes: HostLanesContract,
    host.SessionContext: SessionContextContract,
    checkpoints.CheckpointStore: CheckpointStoreContract,
    interactions.AskingTurn: AskingTurnContract,
    interactions.BriefAccess: BriefAccessContract,
    interactions.CanonAccess: CanonAccessContract,
    interactions.HostQuestions: HostQuestionsContract,
    interactions.HostWait: HostQuestionsContract,
    interactions.Silencer: SilencerContract,
    interactions.SilenceReporter: SilenceReporterContract,
    media.MediaCache: MediaCacheContract,
    media.MediaFetcher: MediaFetcherContract,
    outbox.Outbox: OutboxContract,
    profiles.PendingRegistrations: PendingRegistrationsContract,
    profiles.ProfileStore: ProfileStoreContract,
    registration.RegistrationApi: RegistrationContract,
    time.Clock: ClockContract,
    time.IdSource: IdSourceContract,
    time.Tasks: TasksContract,
}
"""The suite of every port. A port that is a part of another one, or is given out by it, has that one's suite."""
