"""Judges the agent's side: credentials and places, environment, pending requests, the ledger, the outbox, the stream.

No line carries any part of a secret (field fault 56).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from canon_hermes_plugin.domain.doctor.report import Line
from canon_hermes_plugin.domain.settings import AGENT, API_KEY, CREDENTIAL_SETTINGS
from canon_hermes_plugin.ports.profiles import Connection

SETUP = "canon-hermes setup"
_HOUR = 3600
_QUIET = 300.0
_STUCK = 600.0
_PRIVATE = 0o077


@dataclass(frozen=True, slots=True)
class CredentialFacts:
    """Where credentials were found.

    Attributes:
        connection: the agent in use, ``None`` when there is none or it is unusable.
        problem: why it is unusable.
        process: the process environment.
        env_file: the host's environment file.
        env_path: its path.
        doubles: keys it assigns more than once.
        open_files: (path, permission bits) of files with secrets that others can read.
        key_fault: why the key cannot cross the wire.
    """

    connection: Connection | None
    problem: str | None
    process: Mapping[str, str]
    env_file: Mapping[str, str]
    env_path: str
    doubles: tuple[str, ...] = ()
    open_files: tuple[tuple[str, int], ...] = ()
    key_fault: str | None = None


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """The detached-approvals ledger as it lies on disk. ``counts`` is ``None`` when there is no file."""

    path: str
    counts: Mapping[str, int] | None = None
    problem: str | None = None
    strays: int = 0


@dataclass(frozen=True, slots=True)
class OutboxFacts:
    """The operations that wait on disk to be delivered. ``oldest`` is the age of the oldest, in seconds."""

    path: str
    count: int
    oldest: float


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What the gateway last noted about its stream.

    Attributes:
        gateway: whether a gateway of this profile runs, ``None`` when unknown.
        platform_state: the host's word for the platform, ``None`` when it has none.
        problem: the host's note about the platform.
        silent_for: seconds since the last byte of the stream, ``None`` when nothing was noted.
    """

    gateway: bool | None = None
    platform_state: str | None = None
    problem: str | None = None
    silent_for: float | None = None


@dataclass(frozen=True, slots=True)
class OnlineFacts:
    """What Canon answered. ``problem`` and ``fix`` name the first call that failed."""

    agent_id: str | None = None
    agent_name: str | None = None
    problem: str | None = None
    fix: str = field(default=SETUP)


def credential_lines(facts: CredentialFacts) -> Iterator[Line]:
    """Return whether the agent is known, and what contradicts."""
    yield _credentials(facts)
    yield from _conflicts(facts)
    if facts.key_fault:
        yield Line("api-key", "fault", f"the API key cannot be used: {facts.key_fault}", SETUP)
    for path, mode in facts.open_files:
        if mode & _PRIVATE:
            yield Line(
                "file-modes", "warning", f"{path} can be read by other users (mode {mode:04o})", f"chmod 600 {path}"
            )


def environment_lines(connection: Connection | None, online: OnlineFacts | None) -> Iterator[Line]:
    """Return whether the agent's environment is proven. Without ``online`` no network was used."""
    if connection is None:
        return
    where = f"{connection.environment_id} at {connection.base_url} and {connection.stream_url}"
    if online is None:
        yield Line("environment", "note", f"environment {where}; not contacted", "canon-hermes doctor --online")
    elif online.problem:
        yield Line("environment", "fault", f"environment {where}: {online.problem}", online.fix)
    else:
        named = f"{online.agent_name or 'the agent'} ({online.agent_id or 'no id told'})"
        yield Line("environment", "ok", f"environment {where} proved itself and knows {named}")


def pending_lines(pending: Mapping[str, bool] | None, problem: str | None) -> Iterator[Line]:
    """Return registrations that wait; ``pending`` tells for each profile whether a request was submitted."""
    if problem:
        yield Line("pending", "fault", f"pending registrations: {problem}", "correct or remove that file")
    for name, submitted in sorted((pending or {}).items()):
        what = "waits for its owner" if submitted else "was begun and not submitted"
        yield Line("pending", "note", f"the registration of profile {name!r} {what}", SETUP)


def ledger_lines(facts: LedgerFacts) -> Iterator[Line]:
    """Return the ledger's health."""
    if facts.problem:
        fix = f"move {facts.path} aside; decisions still open in it are lost with it"
        yield Line("ledger", "fault", f"approvals ledger: {facts.problem}; no approval works", fix)
    elif facts.counts is None:
        yield Line("ledger", "ok", "no detached approvals yet")
    else:
        counts = ", ".join(f"{count} {state}" for state, count in sorted(facts.counts.items())) or "empty"
        yield Line("ledger", "ok", f"approvals ledger: {counts}")
    if facts.strays:
        yield Line(
            "ledger-strays",
            "warning",
            f"{facts.strays} temporary files of a killed writer lie beside the ledger",
            "they go away when the gateway starts",
        )


def outbox_lines(facts: OutboxFacts) -> Iterator[Line]:
    """Return what lies in the outbox for longer than a delivery takes; nothing when nothing does."""
    if facts.count and facts.oldest > _STUCK:
        hours, answers = facts.oldest / _HOUR, "answer lies" if facts.count == 1 else "answers lie"
        yield Line(
            "outbox",
            "note",
            f"{facts.count} undelivered {answers} in {facts.path}, the oldest for {hours:.1f} h",
            "start the gateway with the same key: it delivers what is younger than a day; or delete them",
        )


def stream_lines(facts: StreamFacts) -> Iterator[Line]:
    """Return when the gateway last heard of Canon."""
    if facts.gateway is False:
        yield Line("gateway", "note", "no gateway of this profile runs", "hermes gateway run")
    elif facts.platform_state in {"fatal", "failed", "error"}:
        detail = f": {facts.problem}" if facts.problem else ""
        yield Line("gateway", "fault", f"the gateway gave the Canon platform up{detail}", "hermes gateway restart")
    elif facts.gateway:
        yield Line("gateway", "ok", f"the gateway runs; Canon is {facts.platform_state or 'not mentioned'}")
    if facts.silent_for is None:
        yield Line("stream", "note", "no stream activity was noted yet")
    elif facts.silent_for > _QUIET and facts.gateway:
        age = _age(facts.silent_for)
        yield Line("stream", "warning", f"the last byte of the stream came {age} ago", "look into the gateway's log")
    else:
        yield Line("stream", "ok", f"the last byte of the stream came {_age(facts.silent_for)} ago")


def _credentials(facts: CredentialFacts) -> Line:
    if facts.problem:
        return Line("credentials", "fault", facts.problem, SETUP, required=True)
    found = facts.connection
    if found is None:
        return Line("credentials", "fault", "credentials: (none)", SETUP, required=True)
    if found.mode == "profile":
        named = f"profile {found.profile!r}, agent {found.agent_name} ({found.agent_id})"
        return Line("credentials", "ok", f"credentials: {named}", required=True)
    source = found.source
    in_file = facts.env_file.get(API_KEY.env, "").strip() and not facts.process.get(API_KEY.env, "").strip()
    if source.startswith("environment") and in_file:
        source = f"{API_KEY.env} in {facts.env_path}"
    return Line("credentials", "ok", f"credentials: (api key override) from {source}", required=True)


def _conflicts(facts: CredentialFacts) -> Iterator[Line]:
    merged = {**facts.env_file, **facts.process}
    if merged.get(API_KEY.env, "").strip() and merged.get(AGENT.env, "").strip():
        yield Line(
            "credentials-conflict",
            "warning",
            f"{API_KEY.env} and {AGENT.env} are both set; the key wins and the profile is not used",
            f"remove one of them, for example with {SETUP}",
        )
    for setting in CREDENTIAL_SETTINGS:
        inside, outside = (place.get(setting.env, "").strip() for place in (facts.env_file, facts.process))
        if inside and outside and inside != outside:
            yield Line(
                "credentials-conflict",
                "warning",
                f"{setting.env} differs between {facts.env_path}, which the gateway obeys, and this shell",
                "remove one of them",
            )
    for name in facts.doubles:
        yield Line("env-file", "warning", f"{facts.env_path} sets {name} more than once; the last one counts", SETUP)


def _age(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"
