"""``canon-hermes doctor``: what is set up, what is wrong, and how to mend it (interactions §12.3). Writes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from canon_hermes_plugin.cli.output import say
from canon_hermes_plugin.cli.situation import Situation
from canon_hermes_plugin.cli.terminal import printable
from canon_hermes_plugin.domain.doctor import agent, configuration
from canon_hermes_plugin.domain.doctor.install import InstallFacts, host_lines, install_lines
from canon_hermes_plugin.domain.doctor.report import Line, Report
from canon_hermes_plugin.domain.host_config import is_mapping, platform_section
from canon_hermes_plugin.domain.registration import record
from canon_hermes_plugin.infrastructure.files.env_file import EnvFile
from canon_hermes_plugin.infrastructure.files.ledger_health import ledger_facts
from canon_hermes_plugin.infrastructure.files.locations import canon_paths
from canon_hermes_plugin.infrastructure.files.outbox_health import outbox_facts
from canon_hermes_plugin.infrastructure.files.stream_activity import StreamActivityFile
from canon_hermes_plugin.infrastructure.hermes.config import load_settings
from canon_hermes_plugin.infrastructure.hermes.inspection import gateway_note, install_facts
from canon_hermes_plugin.ports.errors import CanonError, ConfigurationError, EnvironmentIdentityError
from canon_hermes_plugin.ports.profiles import Connection


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of lines.")
@click.option("--online", is_flag=True, help="Also ask Canon: prove the environment and the key.")
def command(as_json: bool, online: bool) -> None:
    """Check the set-up and say what to do.

    Every line tells a fact, what it means and how to mend it. The exit code is 0 when the agent can run, else 1.
    Without --online no network is used. No part of a key is ever shown.
    """
    report = examine(online=online)
    if as_json:
        click.echo(json.dumps(report.document(), indent=2))
        sys.exit(report.exit_code)
    for line in report.lines:
        say(printable(line.meaning), mark=line.state)
        if line.fix and line.state != "ok":
            say(f"    -> {printable(line.fix)}")
    say(report.verdict, mark="ok" if report.ready else "fault")
    sys.exit(report.exit_code)


def examine(*, online: bool) -> Report:
    """Gather the facts and return the report."""
    installed = install_facts()
    try:
        situation = Situation.look()
    except ConfigurationError as error:
        home = Line("hermes-home", "fault", str(error), "repair the Hermes installation or profile", required=True)
        return Report.of(install_lines(installed), [home], host_lines(installed))
    connection, problem = _connection(situation)
    return Report.of(
        install_lines(installed),
        [Line("hermes-home", "ok", f"Hermes profile {situation.home.profile!r} at {situation.home.root}")],
        _enablement_lines(situation),
        agent.credential_lines(_credential_facts(situation, connection, problem)),
        host_lines(installed),
        _configuration_lines(situation, installed),
        agent.environment_lines(connection, asyncio.run(_ask(connection)) if online and connection else None),
        _pending_lines(situation),
        agent.ledger_lines(ledger_facts(canon_paths(situation.environ).home)),
        agent.outbox_lines(outbox_facts(canon_paths(situation.environ).home)),
        agent.stream_lines(_stream_facts(situation)),
    )


def _enablement_lines(situation: Situation) -> Iterator[Line]:
    try:
        config = situation.config()
    except ConfigurationError as error:
        yield from configuration.config_broken(str(error))
        return
    yield from configuration.enablement_lines(config, str(situation.home.config))


def _configuration_lines(situation: Situation, installed: InstallFacts) -> Iterator[Line]:
    try:
        config = situation.config()
    except ConfigurationError:
        return  # told by the enablement lines
    section = platform_section(config)
    yield _settings_line(section, situation)
    yield from configuration.access_lines(situation.environ)
    yield from configuration.home_channel_lines(situation.environ, section)
    yield from configuration.multiplexing_lines(config, situation.environ)
    yield from configuration.advice_lines(config, installed.host_version)


def _settings_line(section: Mapping[str, Any], situation: Situation) -> Line:
    extra = section.get("extra")
    try:
        load_settings(extra if is_mapping(extra) else {}, situation.environ)
    except ConfigurationError as error:
        return Line("settings", "fault", str(error), "set one of the allowed values, or remove the setting")
    return Line("settings", "ok", "every platform setting is valid")


def _connection(situation: Situation) -> tuple[Connection | None, str | None]:
    try:
        return situation.connection(keep_bootstrap=False), None
    except ConfigurationError as error:
        return None, str(error)


def _credential_facts(
    situation: Situation, connection: Connection | None, problem: str | None
) -> agent.CredentialFacts:
    counts = Counter(entry.key for entry in EnvFile(situation.home.env).assignments() if entry.key.startswith("CANON_"))
    paths = canon_paths(situation.environ)
    return agent.CredentialFacts(
        connection=connection,
        problem=problem,
        process=dict(os.environ),
        env_file=situation.env_values,
        env_path=str(situation.home.env),
        doubles=tuple(sorted(key for key, count in counts.items() if _is_double(situation, key, count))),
        open_files=tuple(_modes(situation.home.env, paths.profiles, paths.pending)),
        key_fault=_key_fault(connection),
    )


def _is_double(situation: Situation, key: str, count: int) -> bool:
    """Two assignments that belong together, for a value with quotes and dollar signs, are none."""
    from canon_hermes_plugin.infrastructure.files.env_text import change

    together = change("", {key: situation.env_values[key]}).count(f"{key}=") if count > 1 else 1
    return count > max(together, 1)


def _modes(*paths: Path) -> Iterator[tuple[str, int]]:
    if os.name == "nt":
        return
    for path in paths:
        if path.is_file():
            yield str(path), stat.S_IMODE(path.stat().st_mode)


def _key_fault(connection: Connection | None) -> str | None:
    from canon_hermes_plugin.infrastructure.canon.address import bearer

    try:
        if connection is not None:
            bearer(connection.api_key)
    except ConfigurationError as error:
        return str(error)
    return None


def _pending_lines(situation: Situation) -> Iterator[Line]:
    try:
        entries = situation.pending().load()
    except ConfigurationError as error:
        yield from agent.pending_lines(None, str(error))
        return
    yield from agent.pending_lines(
        {name: record.request_of(entry) is not None for name, entry in entries.items()}, None
    )


def _stream_facts(situation: Situation) -> agent.StreamFacts:
    running, note = gateway_note(situation.home)
    activity = StreamActivityFile(situation.home.root).read()
    at = None if activity is None else activity.last_byte_at
    return agent.StreamFacts(
        gateway=running,
        platform_state=str(note["state"]) if note.get("state") else None,
        problem=str(note["error_code"]) if note.get("error_code") else None,
        silent_for=None if at is None else max(0.0, time.time() - at / 1000),
    )


async def _ask(connection: Connection) -> agent.OnlineFacts:
    """Prove the environment, then the key: R1, R2, R3."""
    from canon_hermes_plugin.infrastructure.canon.client import CanonHttp
    from canon_hermes_plugin.infrastructure.canon.link import CanonLink
    from canon_hermes_plugin.infrastructure.system import SystemClock

    try:
        api = CanonHttp(CanonLink(connection, clock=SystemClock()))
    except ConfigurationError as error:
        return agent.OnlineFacts(problem=str(error))
    try:
        await api.verify()
        identity = await api.identify()
    except EnvironmentIdentityError as error:
        return agent.OnlineFacts(problem=str(error), fix="correct the addresses, or reconnect with canon-hermes setup")
    except CanonError as error:
        fix = "try again later" if error.retryable else "canon-hermes setup"
        return agent.OnlineFacts(problem=str(error), fix=fix)
    finally:
        await api.close()
    return agent.OnlineFacts(agent_id=identity.agent_id, agent_name=identity.display_name)
