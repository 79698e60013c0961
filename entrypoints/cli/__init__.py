"""The command line ``canon-hermes``. Commands are imported only when they run."""

from __future__ import annotations

from canon_hermes_plugin.cli.main import main

__all__ = ["main"]
