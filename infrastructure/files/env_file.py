"""A ``.env`` file on disk: read it as the host does, change a few keys in one atomic step."""

from __future__ import annotations

import stat
from collections.abc import Collection, Mapping
from pathlib import Path

from canon_hermes_plugin.infrastructure.files import env_text
from canon_hermes_plugin.infrastructure.files.atomic import PRIVATE, write_atomic
from canon_hermes_plugin.ports.errors import ConfigurationError

_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff")


class EnvFile:
    """The host's environment file. Bytes that are not UTF-8 survive a change; UTF-16 is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def values(self) -> dict[str, str]:
        """Return the variables as the host's loader reads them; a missing file has none.

        Raises:
            ConfigurationError: the file cannot be read.
        """
        return env_text.values(self._read())

    def assignments(self) -> list[env_text.Assignment]:
        """Return every assignment in order, doubles included; raises as :meth:`values`."""
        return env_text.assignments(self._read())

    def change(self, sets: Mapping[str, str], removes: Collection[str] = ()) -> bool:
        """Set and remove keys in one replacement and tell whether the file changed.

        A new file is private; an existing one keeps its mode.

        Raises:
            ConfigurationError: the file cannot be read or written, or a value cannot stand in it. Nothing was changed.
        """
        try:
            before = self._read()
            after = env_text.change(before, sets, removes)
            if after == before:
                return False
            write_atomic(self.path, after.encode("utf-8", "surrogateescape"), mode=self._mode())
        except ValueError as error:
            raise error if isinstance(error, ConfigurationError) else ConfigurationError(str(error)) from error
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be written: {error.strerror or error}") from error
        return True

    def _mode(self) -> int:
        try:
            return stat.S_IMODE(self.path.stat().st_mode)
        except FileNotFoundError:
            return PRIVATE

    def _read(self) -> str:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be read: {error.strerror or error}") from error
        if raw.startswith(_OTHER_ENCODINGS):
            raise ConfigurationError(f"{self.path} is not UTF-8; save it as UTF-8 first")
        return raw.decode("utf-8", "surrogateescape")
