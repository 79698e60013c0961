"""The numbers a card must respect. Decides nothing: the schema table refers to these names."""

from __future__ import annotations

from typing import Final, NoReturn, final


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("RUNTIME_CARD_LIMITS cannot be changed; change a copy: dict(RUNTIME_CARD_LIMITS)")


@final
class _Limits(dict[str, int]):
    """A dictionary, as the contract has it, that cannot be changed: everybody in the process reads the same one."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[dict[str, int]], tuple[dict[str, int]]]:
        """Copies and pickles are ordinary dictionaries."""
        return dict, (dict(self),)


RUNTIME_CARD_LIMITS: Final[dict[str, int]] = _Limits({
    "blocks": 24,
    "metrics": 12,
    "series": 6,
    "points": 24,
    "rows": 24,
    "columns": 8,
    "listItems": 24,
    "actions": 12,
    "totalActions": 12,
    "fields": 8,
    "choices": 12,
    "detailsRows": 32,
    "lineItemRows": 50,
    "lineItemColumns": 8,
    "searchSelectChoices": 100,
})  # fmt: skip
"""Entry counts by name (cards §2), read-only; ``dict(RUNTIME_CARD_LIMITS)`` is a copy to change."""

MAX_CARD_BYTES: Final = 32_768
"""Largest card, in bytes of compact UTF-8 JSON (cards §5 rule 6)."""

MAX_CARD_DEPTH: Final = 256
"""Containers inside containers a document may hold before it counts as unserialisable; a legal card needs 11."""

MAX_CARD_ERRORS: Final = 500
"""Errors listed for one document. A longer list ends with one line saying that it was cut."""

MAX_QUOTED_KEY: Final = 200
"""Characters of an unknown key that an error repeats."""

MAX_INTEGER_DIGITS: Final = 4_300
"""Longest integer Python turns into text or reads from it, hence the longest in JSON."""

MAX_INTEGER_BITS: Final = 14_284
"""The bits of the largest integers certain to stay within `MAX_INTEGER_DIGITS`."""
