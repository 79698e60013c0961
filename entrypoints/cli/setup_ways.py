"""The three ways to connect: register or reconnect, use a stored profile, paste a key (interactions §13).

It orders questions, proof of the environment and storing. What may be stored, the domain decides.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast, final

from canon_hermes_plugin.cli.output import say
from canon_hermes_plugin.cli.progress import RegistrationProgress
from canon_hermes_plugin.cli.prompts import MissingAnswerError, Prompter
from canon_hermes_plugin.cli.situation import Situation
from canon_hermes_plugin.cli.terminal import printable
from canon_hermes_plugin.domain import settings
from canon_hermes_plugin.domain.environments import Endpoints
from canon_hermes_plugin.domain.profiles.rules import is_ours, our_names, parse_profile
from canon_hermes_plugin.domain.registration import record
from canon_hermes_plugin.domain.registration.desk import TOTAL_SECONDS, Outcome, RegistrationDesk, Stores
from canon_hermes_plugin.domain.registration.flow import Step
from canon_hermes_plugin.domain.registration.record import Application
from canon_hermes_plugin.infrastructure.files.env_file import EnvFile
from canon_hermes_plugin.infrastructure.files.host_credentials import HostCredentials
from canon_hermes_plugin.infrastructure.hermes.home import managed_by, managed_keys
from canon_hermes_plugin.ports.errors import ConfigurationError
from canon_hermes_plugin.ports.profiles import Environment
from canon_hermes_plugin.ports.secret import Secret

DEFAULT_NAME = "Hermes"
DEFAULT_DESCRIPTION = "Hermes gateway agent"
_WAYS = ("register", "existing", "key")
_ENDS = {
    Step.REJECTED: "the owner rejected the registration",
    Step.FORGOTTEN: "Canon no longer knows the request; its record was removed, run canon-hermes setup again",
    Step.INCOMPLETE: "Canon approved the registration without giving a key; its record is kept",
}


@dataclass(frozen=True, slots=True)
class Answers:
    """What the options say; ``None`` is asked for, or has a default."""

    way: str | None = None
    profile: str | None = None
    name: str | None = None
    description: str | None = None
    owner_phone: str | None = None
    environment: str | None = None
    base_url: str | None = None
    stream_url: str | None = None
    rtdb_url: str | None = None
    firebase_api_key: str | None = None
    reconfigure: bool = False
    timeout: float = TOTAL_SECONDS

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Answers:
        """Return the answers among ``options``."""
        return cls(**cast("dict[str, Any]", {field.name: options[field.name] for field in fields(cls)}))


@final
class SetupWizard:
    """One run of the set-up. Every way returns whether credentials were stored."""

    def __init__(self, situation: Situation, answers: Answers, prompter: Prompter) -> None:
        self._situation = situation
        self._answers = answers
        self._prompter = prompter
        self._switch = HostCredentials(EnvFile(situation.home.env), os.environ)

    def run(self) -> bool:
        """Ask what to do and do it.

        Raises:
            CanonPluginError: it cannot be done; nothing further was changed.
        """
        self._check_writable()
        if self._is_connected() and not self._answers.reconfigure:
            say("this Hermes profile already has Canon credentials", mark="note")
            if not self._prompter.confirm("Reconfigure?", default=False):
                say("nothing was changed", mark="ok")
                return True
        way = (
            self._answers.way
            or _WAYS[
                self._prompter.choose(
                    "Choose", ("register a new agent, or reconnect one", "use a stored profile", "paste an API key")
                )
            ]
        )
        good = {"register": self._register, "existing": self._use_existing, "key": self._use_key}[way]()
        if good:
            self._warn_of_exported_credentials()
            say("next: hermes gateway restart (or hermes gateway run)", mark="note")
        return good

    # --- the ways ----------------------------------------------------------------------------------------------

    def _register(self) -> bool:
        application = self._pending_application() or self._asked_application()
        if application is None:
            return False
        outcome = asyncio.run(self._carry(application))
        if outcome.warning:
            say(outcome.warning, mark="warning", error=True)
        if outcome.good:
            self._tell_connected(application.profile, outcome)
            return True
        problem = outcome.problem or _ENDS.get(outcome.step)
        if outcome.step is Step.TIMED_OUT:
            problem = f"no decision within {self._answers.timeout:.0f} s; run canon-hermes setup again to go on waiting"
        say(problem or outcome.step.value, mark="fault", error=True)
        return False

    def _use_existing(self) -> bool:
        profiles = self._situation.profiles().load()
        names = our_names(profiles)
        if not names:
            say(f"no profile of this runtime in {self._situation.profiles().location()}", mark="warning", error=True)
        current = self._situation.environ.get(settings.AGENT.env, "")
        sure = self._prompter.interactive or len(names) == 1
        default = current if current in names else next(iter(names), "") if sure else ""
        if self._prompter.interactive and names:
            say(f"stored profiles: {', '.join(printable(name) for name in names)}", mark="note")
        name = self._prompter.text("Profile", option="--profile", given=self._answers.profile, default=default)
        if not name:
            return self._end("no profile was named")
        if name not in profiles:
            return self._end(f"there is no profile {name!r}")
        profile = parse_profile(name, profiles[name], self._situation.catalog)
        self._switch.use_existing(name)
        say(f"Hermes uses profile {name!r} from its next start (agent {printable(profile.agent_name)})", mark="ok")
        return True

    def _use_key(self) -> bool:
        if self._prompter.interactive and sys.stdin.isatty():
            key = self._prompter.hidden("Canon API key (not shown)")
        else:
            key = sys.stdin.readline().strip()
        if not key:
            return self._end("no key was given")
        environment = self._asked_environment()
        asyncio.run(self._verify(environment))
        self._switch.use_key(Secret(key), environment)
        say(f"the key is stored in {self._situation.home.env} for {environment.environment_id}", mark="ok")
        return True

    # --- questions ---------------------------------------------------------------------------------------------

    def _pending_application(self) -> Application | None:
        """Return the application of a request submitted earlier, when there is one to take up."""
        for name, entry in sorted(self._situation.pending().load().items()):
            ticket = record.request_of(entry)
            if ticket is None or self._answers.profile not in {None, name}:
                continue
            environment = record.environment_of(entry, self._situation.catalog)
            if environment is None or self._names_other_endpoints(environment):
                continue
            question = f"Take up the pending registration of profile {name!r} (request {printable(ticket.request_id)})?"
            if self._prompter.confirm(question, default=True):
                return Application(name, "", "", "", environment)
        return None

    def _names_other_endpoints(self, environment: Environment) -> bool:
        given = (self._answers.environment, self._answers.base_url, self._answers.stream_url, self._answers.rtdb_url)
        known = (environment.environment_id, environment.base_url, environment.stream_url, environment.rtdb_url)
        return any(
            one is not None and one.strip().rstrip("/") != other for one, other in zip(given, known, strict=True)
        )

    def _asked_application(self) -> Application | None:
        ask, given = self._prompter.text, self._answers
        name = ask("Agent's display name", option="--name", given=given.name, default=DEFAULT_NAME)
        description = ask("Description", option="--description", given=given.description, default=DEFAULT_DESCRIPTION)
        phone = self._asked_phone()
        default_profile = record.slug(name)
        profile = ask("Profile name", option="--profile", given=given.profile, default=default_profile)
        if not (name and phone and profile):
            self._end("name, phone and profile name are needed")
            return None
        if fault := record.phone_fault(phone):
            self._end(f"that is no phone number Canon can use: {fault}")
            return None
        if self._belongs_to_another_runtime(profile):
            self._end(f"profile {profile!r} belongs to another runtime; choose another name")
            return None
        return Application(profile, name, description, phone, self._asked_environment())

    def _asked_phone(self) -> str:
        """Return the owner's phone; a person is asked again until it is in E.164, an option stays as it was given."""
        label, given = "Owner's phone (E.164, like +41791234567)", self._answers.owner_phone
        phone = self._prompter.text(label, option="--owner-phone", given=given)
        while given is None and self._prompter.interactive and (fault := record.phone_fault(phone)):
            say(fault, mark="warning", error=True)
            phone = self._prompter.text(label, option="--owner-phone")
        return phone

    def _belongs_to_another_runtime(self, name: str) -> bool:
        """Saving replaces the whole profile: the credentials of somebody else must not go that way."""
        stored = self._situation.profiles().load().get(name)
        return stored is not None and not is_ours(stored)

    def _asked_environment(self) -> Environment:
        catalog, environ, ask = self._situation.catalog, self._situation.environ, self._prompter.text
        default = environ.get(settings.ENVIRONMENT_ID.env, "").strip() or catalog.default().environment_id
        environment_id = ask(
            "Canon environment", option="--environment", given=self._answers.environment, default=default
        )
        packaged = catalog.known(environment_id).endpoints
        questions = (
            ("API address", "--base-url", self._answers.base_url, settings.BASE_URL, packaged.base_url),
            ("Stream address", "--stream-url", self._answers.stream_url, settings.STREAM_URL, packaged.stream_url),
            ("Database address", "--rtdb-url", self._answers.rtdb_url, settings.RTDB_URL, packaged.rtdb_url),
            (
                "Public web key",
                "--firebase-api-key",
                self._answers.firebase_api_key,
                settings.FIREBASE_API_KEY,
                packaged.firebase_api_key,
            ),
        )
        endpoints = [
            ask(label, option=option, given=given, default=setting.from_environ(environ) or value or "")
            for label, option, given, setting, value in questions
        ]
        return catalog.resolve(environment_id, Endpoints(*endpoints))

    # --- work --------------------------------------------------------------------------------------------------

    async def _carry(self, application: Application) -> Outcome:
        from canon_hermes_plugin.infrastructure.canon.link import CanonLink
        from canon_hermes_plugin.infrastructure.canon.registration import HttpRegistration, keyless
        from canon_hermes_plugin.infrastructure.system import SystemClock, SystemIds

        await self._verify(application.environment)
        stores = Stores(self._situation.profiles(), self._situation.pending(), self._switch)
        clock = SystemClock()
        api = HttpRegistration(CanonLink(keyless(application.environment), clock=clock))
        try:
            with RegistrationProgress() as progress:
                desk = RegistrationDesk(api, stores, clock, SystemIds())
                return await desk.register(application, progress, total=self._answers.timeout)
        finally:
            await api.close()

    @staticmethod
    async def _verify(environment: Environment) -> None:
        """Prove both addresses before anything is written (canon-wire §3.4)."""
        from canon_hermes_plugin.infrastructure.canon.health import EnvironmentCheck, RecentProofs
        from canon_hermes_plugin.infrastructure.canon.link import CanonLink
        from canon_hermes_plugin.infrastructure.canon.registration import keyless
        from canon_hermes_plugin.infrastructure.system import SystemClock

        clock = SystemClock()
        link = CanonLink(keyless(environment), clock=clock)
        try:
            await EnvironmentCheck(link, RecentProofs(clock)).verify()
        finally:
            await link.close()
        say(f"both addresses prove to be {environment.environment_id}", mark="ok")

    # --- facts -------------------------------------------------------------------------------------------------

    def _check_writable(self) -> None:
        if owner := managed_by():
            raise ConfigurationError(f"this Hermes is managed by {owner}; set the Canon variables there")
        names = [settings.AGENT.env, *(setting.env for setting in settings.DIRECT_SETTINGS)]
        if pinned := managed_keys(names):
            raise ConfigurationError(f"pinned by an administrator of this machine: {', '.join(pinned)}")

    def _is_connected(self) -> bool:
        environ = self._situation.environ
        if any(environ.get(name, "").strip() for name in (settings.API_KEY.env, settings.AGENT.env)):
            return True
        try:
            return self._situation.connection() is not None
        except ConfigurationError:
            return False

    def _warn_of_exported_credentials(self) -> None:
        """Warn of a key that the shell exports: the next shell brings it back, and it wins over the profile."""
        exported = self._situation.environ.get(settings.API_KEY.env, "").strip()
        if exported and not self._situation.env_values.get(settings.API_KEY.env, "").strip():
            say(f"{settings.API_KEY.env} is also exported by your shell and would win; unset it there", mark="warning")

    @staticmethod
    def _tell_connected(profile: str, outcome: Outcome) -> None:
        agent = "" if outcome.profile is None else f" as {printable(outcome.profile.agent_name)}"
        say(f"connected{agent}; Hermes uses profile {profile!r} from its next start", mark="ok")

    @staticmethod
    def _end(reason: str) -> bool:
        say(f"{reason}; nothing was changed", mark="fault", error=True)
        return False


__all__ = ["Answers", "MissingAnswerError", "SetupWizard"]
