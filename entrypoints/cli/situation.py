"""What the command line finds on this machine: the Hermes profile, its files, and the credentials they lead to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from canon_hermes_plugin.domain.environments import EnvironmentCatalog
from canon_hermes_plugin.domain.host_config import credentials_section
from canon_hermes_plugin.domain.profiles.resolution import CredentialResolver
from canon_hermes_plugin.infrastructure.files.config_file import ConfigFile
from canon_hermes_plugin.infrastructure.files.env_file import EnvFile
from canon_hermes_plugin.infrastructure.files.environment_catalog import packaged_catalog
from canon_hermes_plugin.infrastructure.files.profile_store import FilePendingRegistrations, FileProfileStore
from canon_hermes_plugin.infrastructure.hermes.home import HostHome, active_home
from canon_hermes_plugin.ports.profiles import Connection, PlatformSettings


@dataclass(frozen=True, slots=True)
class Situation:
    """One look at the machine.

    Attributes:
        home: the active Hermes profile.
        env_values: what its environment file says.
        environ: the process environment laid over the environment file.
    """

    home: HostHome
    env_values: Mapping[str, str]
    environ: Mapping[str, str]

    @classmethod
    def look(cls) -> Situation:
        """Look at the active profile.

        Raises:
            ConfigurationError: no host, no such profile, or an unreadable environment file.
        """
        home = active_home()
        values = EnvFile(home.env).values()
        process = {name: value for name, value in os.environ.items() if value}
        return cls(home, values, {**values, **process})

    @property
    def catalog(self) -> EnvironmentCatalog:
        """The packaged environments."""
        return packaged_catalog()

    def config(self) -> dict[str, Any]:
        """Return the host's configuration; raises ConfigurationError when it is broken."""
        return ConfigFile(self.home.config).data()

    def platform(self) -> PlatformSettings:
        """Return the platform's credentials in the host's configuration; raises as :meth:`config`."""
        return credentials_section(self.config(), self.environ)

    def profiles(self, *, keep_bootstrap: bool = True) -> FileProfileStore:
        """Return the profile file in use; without ``keep_bootstrap`` reading it never writes it."""
        return FileProfileStore.from_environ(self.environ, keep_bootstrap=keep_bootstrap)

    def pending(self) -> FilePendingRegistrations:
        """Return the pending registrations."""
        return FilePendingRegistrations.from_environ(self.environ)

    def connection(self, *, keep_bootstrap: bool = True) -> Connection | None:
        """Return the agent in use, ``None`` without credentials; raises ConfigurationError when they are unusable."""
        resolver = CredentialResolver(self.profiles(keep_bootstrap=keep_bootstrap), self.catalog)
        return resolver.find(self.environ, self.platform())
