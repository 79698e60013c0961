"""Every error this package raises on purpose, drawn once.

    CanonPluginError
    ├── ConfigurationError            the operator must change something; never retried
    │   ├── UnsupportedHostError      this Hermes set-up cannot carry the plugin (multiplexed profiles, …)
    │   └── CredentialsError          no usable agent: no key, unknown or unbound profile
    ├── CanonError                    Canon, or the way to it, failed
    │   ├── CanonApiError             Canon answered with a status other than 2xx
    │   │   └── AuthenticationError   401 or 403 on a call that proves who we are; permanent
    │   ├── CanonTransportError       no complete answer arrived
    │   ├── MalformedResponseError    a 2xx answer that could not be read; its effect is unknown
    │   ├── EnvironmentIdentityError  somebody else answers at the configured address; permanent
    │   ├── EnvironmentUnreachableError  nobody answers there now; retryable
    │   ├── MediaError               an attachment could not be fetched or kept
    │   └── DeliveryError            a durable write did not settle
    ├── CheckpointError               the place on the stream was not saved; costs nothing unless the process dies
    ├── LedgerError                   the approvals ledger cannot be read or written; fails closed
    └── OutboxError                   what is being delivered cannot be kept; it is delivered all the same

Texts carry ids, statuses and what to do. They never carry a key, a token or a raw remote body: bodies travel in fields
that no text form shows.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Certainty = Literal["definitive", "ambiguous"]
"""Whether a failed write provably did not happen (``definitive``) or may have happened (``ambiguous``)."""


class CanonPluginError(Exception):
    """Root of the tree. ``code`` is stable and machine readable."""

    code: ClassVar[str] = "canon_plugin_error"


class ConfigurationError(CanonPluginError, ValueError):
    """A setting is missing, unknown or contradictory. The text names the setting and the allowed values."""

    code: ClassVar[str] = "configuration"


class UnsupportedHostError(ConfigurationError):
    """The running Hermes cannot carry the plugin in its present set-up."""

    code: ClassVar[str] = "unsupported_host"


class CredentialsError(ConfigurationError):
    """No usable agent credentials: no key, an unknown profile, or an unbound one."""

    code: ClassVar[str] = "missing_credentials"


class CanonError(CanonPluginError, RuntimeError):
    """Canon, or the way to it, failed. ``retryable`` tells whether trying later can help."""

    code: ClassVar[str] = "canon"

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class CanonApiError(CanonError):
    """Canon answered with a final status other than 2xx.

    Attributes:
        status_code: the HTTP status.
        machine_code: the body's ``code`` when it is a string (canon-wire §0.4).
        detail: the body's ``error`` sentence, remote and untrusted: escape it wherever it is shown.
        body: the raw body text; never part of the error's own text.
        retry_after: seconds Canon asked to wait, bounded by the client, or ``None``.
    """

    code: ClassVar[str] = "canon_api"

    def __init__(
        self,
        status_code: int,
        body: str = "",
        *,
        machine_code: str | None = None,
        detail: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        retryable = status_code in {408, 425, 429} or status_code >= 500  # noqa: PLR2004 - canon-wire §0.5
        super().__init__(f"Canon answered with HTTP status {status_code}", retryable=retryable)
        self.status_code = status_code
        self.body = body
        self.machine_code = machine_code
        self.detail = detail
        self.retry_after = retry_after


class AuthenticationError(CanonApiError):
    """Canon does not accept the agent's key. Permanent: run ``canon-hermes setup`` again."""

    code: ClassVar[str] = "auth_failed"


class CanonTransportError(CanonError):
    """No complete answer arrived.

    Attributes:
        executed: ``False`` when Canon provably never saw the request (connect error or connect timeout),
            ``True`` when it may have been executed.
    """

    code: ClassVar[str] = "canon_transport"

    def __init__(self, message: str, *, executed: bool, retryable: bool = True) -> None:
        super().__init__(message, retryable=retryable)
        self.executed = executed


class MalformedResponseError(CanonError):
    """A 2xx answer whose body could not be read. The effect of the request is unknown."""

    code: ClassVar[str] = "malformed_response"


class EnvironmentIdentityError(CanonError):
    """Another environment answers at the configured address. Permanent: correct the endpoints (canon-wire §1.1)."""

    code: ClassVar[str] = "environment_mismatch"


class EnvironmentUnreachableError(CanonError):
    """No Canon environment answers at the configured address right now; trying later can help."""

    code: ClassVar[str] = "environment_unreachable"

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=True)


class MediaError(CanonError):
    """An attachment was refused, unreachable, too large, or could not be stored. The text never carries its URL."""

    code: ClassVar[str] = "media"


class DeliveryError(CanonError):
    """A durable write did not settle, judged over *all* attempts of the operation (canon-wire §0.5, §13 row 25).

    Attributes:
        certainty: ``definitive`` when no attempt can have stored the message, else ``ambiguous``: the identical request
            must be replayed under its own id, or the operation stays open.
        status_code: the last HTTP status, when there was one.
    """

    code: ClassVar[str] = "delivery_failed"

    def __init__(
        self, message: str, *, certainty: Certainty, retryable: bool = False, status_code: int | None = None
    ) -> None:
        super().__init__(message, retryable=retryable)
        self.certainty: Certainty = certainty
        self.status_code = status_code


class CheckpointError(CanonPluginError, RuntimeError):
    """The place on Canon's stream could not be saved for the next process; the one saved before is intact."""

    code: ClassVar[str] = "checkpoint"


class LedgerError(CanonPluginError, RuntimeError):
    """The detached-approvals ledger cannot be read, trusted or written. Nothing is decided from it."""

    code: ClassVar[str] = "approval_ledger"


class OutboxError(CanonPluginError, RuntimeError):
    """The outbox cannot be read or written. What it insures is lost if the process dies, and nothing else."""

    code: ClassVar[str] = "outbox"
