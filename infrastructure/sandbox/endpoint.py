"""The address of a model somebody else runs: whether it is one at all, and whether anything listens there.

Decides what counts as unreachable: that no connection comes about. What a server answers is for the gateway to judge.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model listens. ``shown`` is its URL without a name and password."""

    scheme: str
    host: str
    port: int
    shown: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read an ``http`` or ``https`` URL; ValueError for anything else."""
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("not an http or https URL")
        port = _PORTS[parts.scheme] if parts.port is None else parts.port
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        return cls(parts.scheme, parts.hostname, port, shown)

    def trouble(self, timeout: float = _TIMEOUT) -> str | None:
        """Return why no connection comes about within ``timeout`` seconds, or ``None`` when one does.

        Behind a proxy of the environment there is nothing to try: the name may be known to the proxy alone.
        """
        if self._proxied():
            return None
        try:
            with socket.create_connection((self.host, self.port), timeout=timeout):
                return None
        except TimeoutError:
            return f"no connection within {timeout:g} s"
        except (OSError, ValueError) as error:  # ValueError: a host name that cannot be encoded
            return (error.strerror if isinstance(error, OSError) else None) or str(error)

    def _proxied(self) -> bool:
        names = (f"{self.scheme}_proxy", f"{self.scheme}_proxy".upper())
        return self.host not in _LOOPBACK and any(os.environ.get(name) for name in names)
