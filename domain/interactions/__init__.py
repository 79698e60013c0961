"""Asking people: who may answer, how long we wait, and what an answer means (interactions §4 to §8)."""
