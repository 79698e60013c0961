"""Detached approvals: a durable ledger, a table of transitions, and the services that drive both (interactions §9)."""
