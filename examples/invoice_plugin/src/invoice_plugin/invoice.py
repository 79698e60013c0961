"""What an invoice says. Knows neither Canon nor Hermes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = re.compile(rb"Invoice (\w+)")
_TOTAL = re.compile(rb"Total: (\d+)")


@dataclass(frozen=True)
class Invoice:
    """A number and a total in whole francs."""

    number: str
    total: int


def read_invoice(pdf: bytes) -> Invoice:
    """Return what the document says.

    Raises:
        ValueError: it says no number or no total.
    """
    number, total = _NUMBER.search(pdf), _TOTAL.search(pdf)
    if number is None or total is None:
        raise ValueError("this is no invoice I can read")
    return Invoice(number[1].decode(), int(total[1]))
