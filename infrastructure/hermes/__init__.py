"""The Hermes Agent host: platform adapter, hooks, tool, skill. Host internals are borrowed in compat.py only."""
