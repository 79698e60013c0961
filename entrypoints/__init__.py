"""canon-hermes-plugin: connects Canon to the Hermes Agent gateway.

The package root is the public API. It loads neither the host nor the composition container: both come in only when they
are used.
"""

from __future__ import annotations
