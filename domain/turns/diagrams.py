"""Draws the state tables of turns as one page, so that documentation cannot disagree with the code."""

from __future__ import annotations

from canon_hermes_plugin.domain.turns import delivery, states

_PAGE = """\
# Turn states

Drawn from the tables in `domain/turns/states.py` and `domain/turns/delivery.py`; a test compares this page with them.
An event without an arrow leaves the state as it is.

## The public state of a turn

A turn is opened by a lifecycle of the host and closed only by its end. A person who denies, or never answers, sends the
turn back to work.

```mermaid
{turn}
```

## A durable operation

An answer is reserved under its id before its first part is sent. An ambiguous failure keeps the reservation: only the
identical plan may be sent again. A definitive failure of a single message frees it.

```mermaid
{delivery}
```
"""


def page() -> str:
    """Return the whole page."""
    return _PAGE.format(turn=states.diagram(), delivery=delivery.diagram())
