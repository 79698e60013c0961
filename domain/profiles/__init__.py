"""Agent profiles: what a usable one is, and which credentials a process speaks with."""
