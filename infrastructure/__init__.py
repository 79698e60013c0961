"""Adapters behind the ports: Canon over HTTP, files, the Hermes host, in-memory twins, the loopback Canon."""
