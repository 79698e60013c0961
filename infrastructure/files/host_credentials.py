"""Switches what a Hermes profile connects to Canon with, by the variables in its environment file.

One replacement of the file for each switch: the host never sees two kinds of credentials at once.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import final

from canon_hermes_plugin.domain import settings
from canon_hermes_plugin.infrastructure.files.env_file import EnvFile
from canon_hermes_plugin.ports.profiles import Environment
from canon_hermes_plugin.ports.secret import Secret

_DIRECT = tuple(setting.env for setting in settings.DIRECT_SETTINGS)


@final
class HostCredentials:
    """Writes the environment file and keeps the running process in step with it.

    Args:
        env: the profile's environment file.
        environ: the process environment.
    """

    def __init__(self, env: EnvFile, environ: MutableMapping[str, str]) -> None:
        self._env = env
        self._environ = environ

    def use_profile(self, name: str) -> None:
        """Name a just registered profile and remove every direct credential."""
        self._change({settings.AGENT.env: name}, _DIRECT)

    def use_existing(self, name: str) -> None:
        """Name a stored profile and remove the direct key; endpoint variables mean nothing without one."""
        self._change({settings.AGENT.env: name}, (settings.API_KEY.env,))

    def use_key(self, api_key: Secret, environment: Environment) -> None:
        """Write a direct key with its complete environment, and name no profile."""
        values = (
            api_key.reveal(),
            environment.environment_id,
            environment.base_url,
            environment.stream_url,
            environment.rtdb_url,
            environment.firebase_api_key,
        )
        self._change(dict(zip(_DIRECT, values, strict=True)), (settings.AGENT.env,))

    def _change(self, sets: Mapping[str, str], removes: tuple[str, ...]) -> None:
        self._env.change(sets, removes)
        self._environ.update(sets)
        for name in removes:
            self._environ.pop(name, None)
