"""Reads the packaged catalog of Canon environments. What a valid environment is, the domain decides."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from canon_hermes_plugin.domain.environments import EnvironmentCatalog


@cache
def packaged_catalog() -> EnvironmentCatalog:
    """Return the environments shipped with this package. Read once per process."""
    text = files("canon_hermes_plugin.infrastructure.files").joinpath("environments.json").read_text(encoding="utf-8")
    return EnvironmentCatalog.from_document(json.loads(text))
