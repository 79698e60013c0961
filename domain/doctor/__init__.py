"""What ``canon-hermes doctor`` makes of the facts it is given: lines for people, and whether the set-up is ready."""
