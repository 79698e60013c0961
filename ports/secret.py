"""A secret whose text form never shows any part of it."""

from __future__ import annotations

from typing import final


@final
class Secret:
    """Holds one secret string. ``str``, ``repr`` and formatting give one fixed text; ``reveal`` gives the value."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the secret itself. Call it only where the value crosses the wire or the disk."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__
