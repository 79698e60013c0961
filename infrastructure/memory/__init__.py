"""The in-memory twin of every port. Product code: downstream tests run on it."""
