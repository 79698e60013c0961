"""Detached approvals: one durable ledger, a table of transitions, and the services that drive them (interactions §9)."""
