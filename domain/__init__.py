"""Decisions and the services that order them. Knows the ports and the standard library, nothing else."""
