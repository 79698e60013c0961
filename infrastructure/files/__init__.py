"""State on disk: atomic, locked, owner-only."""
