"""The shape of ``canon.card.v1`` as one table (cards §3, §4).

The table decides what a card may hold and in which order its parts are examined (cards §5.2). It does not know how a
value is tested, how an error is worded, or who reads the table: the validator, the skill and the documentation all do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from canon_hermes_plugin.domain.cards.limits import RUNTIME_CARD_LIMITS as LIMITS

SCHEMA: Final = "canon.card.v1"
ID_PATTERN: Final = r"[A-Za-z0-9_.:-]{1,80}"
DATE_PATTERN: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"


@dataclass(frozen=True, slots=True)
class Text:
    """A string that is not blank, of at most ``limit`` UTF-16 code units."""

    limit: int


@dataclass(frozen=True, slots=True)
class OneOf:
    """One word of a closed, case-sensitive vocabulary."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Identifier:
    """A whole string matching `ID_PATTERN`."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A boolean."""


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number, optionally inside an inclusive range. Booleans are not numbers."""

    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """A non-negative integer (an integral float counts), optionally with a ceiling."""

    ceiling: int | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A date when the object's ``type`` is ``date``, a finite number otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class ListOf:
    """A non-empty array. ``limit_for`` replaces ``limit`` for some values of the owner's ``type``."""

    item: Rule
    limit: int
    limit_for: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Key:
    """One key of an object.

    ``only_for`` names the values of ``type`` the key may appear with (empty: all); ``needed_for`` those that cannot do
    without it; ``lower`` the key whose value must not exceed this one's.
    """

    name: str
    rule: Rule
    required: bool = False
    only_for: frozenset[str] = frozenset()
    needed_for: frozenset[str] = frozenset()
    lower: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """An object whose listed keys are the only ones allowed, examined in this order.

    ``lead`` keys come before the report of unknown keys. ``unique`` says what may not repeat: an ``id`` in the whole
    card, an ``id`` among siblings, or a choice (its stripped value, else its stripped label) among siblings. A record
    that is ``once`` may appear once in a card.
    """

    name: str
    keys: tuple[Key, ...]
    lead: int = 0
    unique: Literal["", "card id", "sibling id", "choice"] = ""
    once: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Variants:
    """Objects told apart by their ``kind``; each record's first key is that kind."""

    name: str
    records: tuple[Record, ...]


Leaf: TypeAlias = Text | OneOf | Identifier | Flag | Number | Count | Bound
Rule: TypeAlias = Leaf | ListOf | Record | Variants

TONE: Final = OneOf("tone", ("neutral", "primary", "positive", "warning", "negative", "danger", "critical", "welcome"))
CHART_TYPE: Final = OneOf("chart type", ("line", "bar"))
LIST_STATUS: Final = OneOf("list status", ("pending", "done", "blocked", "warning"))
MEDIA_KIND: Final = OneOf("media kind", ("image", "file"))
FIELD_TYPE: Final = OneOf(
    "field type",
    (
        "text",
        "textarea",
        "select",
        "multiSelect",
        "boolean",
        "date",
        "number",
        "currency",
        "searchSelect",
        "lineItems",
    ),
)
COLUMN_TYPE: Final = OneOf("line-item column type", ("text", "number", "currency", "date", "select"))

_NUMERIC: Final = frozenset({"number", "currency"})
_BOUNDED: Final = _NUMERIC | {"date"}
_CURRENCY: Final = frozenset({"currency"})
_LINE_ITEMS: Final = frozenset({"lineItems"})

CHOICE: Final = Record(
    "choice",
    (
        Key("label", Text(120), required=True),
        Key("value", Text(200)),
        Key("description", Text(300)),
        Key("preview", Text(2000)),
    ),
    unique="choice",
)

COLUMN: Final = Record(
    "line-item column",
    (
        Key("id", Identifier(), required=True),
        Key("label", Text(120), required=True),
        Key("type", COLUMN_TYPE, required=True),
        Key("required", Flag()),
        Key("allowOther", Flag()),
        Key("choices", ListOf(CHOICE, LIMITS["choices"]), needed_for=frozenset({"select"})),
        Key("min", Bound()),
        Key("max", Bound(), lower="min"),
        Key("step", Number()),
        Key("precision", Count()),
        Key("currencyCode", Text(8)),
    ),
    unique="sibling id",
)

FIELD: Final = Record(
    "field",
    (
        Key("id", Identifier(), required=True),
        Key("label", Text(120), required=True),
        Key("type", FIELD_TYPE, required=True),
        Key("placeholder", Text(160)),
        Key("required", Flag()),
        Key("allowOther", Flag()),
        Key("sensitive", Flag()),
        Key(
            "choices",
            ListOf(CHOICE, LIMITS["choices"], (("searchSelect", LIMITS["searchSelectChoices"]),)),
            needed_for=frozenset({"select", "multiSelect", "searchSelect"}),
        ),
        Key("min", Bound(), only_for=_BOUNDED),
        Key("max", Bound(), only_for=_BOUNDED, lower="min"),
        Key("step", Number(), only_for=_NUMERIC),
        Key("precision", Count(), only_for=_NUMERIC),
        Key("currencyCode", Text(8), only_for=_CURRENCY),
        Key("columns", ListOf(COLUMN, LIMITS["lineItemColumns"]), required=True, only_for=_LINE_ITEMS),
        Key("minRows", Count(), only_for=_LINE_ITEMS),
        Key("maxRows", Count(LIMITS["lineItemRows"]), only_for=_LINE_ITEMS, lower="minRows"),
    ),
    unique="sibling id",
)

ACTION: Final = Record(
    "action",
    (
        Key("id", Identifier(), required=True),
        Key("label", Text(120), required=True),
        Key("tone", TONE),
        Key("fields", ListOf(FIELD, LIMITS["fields"])),
    ),
    unique="card id",
)

MEDIA: Final = Record(
    "media",
    (
        Key("kind", MEDIA_KIND, required=True),
        Key("url", Text(2048), required=True),
        Key("mimeType", Text(200), required=True),
        Key("fileName", Text(200)),
        Key("thumbnailUrl", Text(2048)),
        Key("page", Count()),
        Key("pageCount", Count()),
    ),
)

METRIC: Final = Record(
    "metric",
    (
        Key("label", Text(120), required=True),
        Key("value", Text(120), required=True),
        Key("delta", Text(120)),
        Key("tone", TONE),
    ),
)

POINT: Final = Record("point", (Key("x", Text(80), required=True), Key("y", Number(), required=True)))

SERIES: Final = Record(
    "series", (Key("name", Text(120)), Key("points", ListOf(POINT, LIMITS["points"]), required=True))
)

LIST_ITEM: Final = Record(
    "list item",
    (Key("label", Text(160), required=True), Key("detail", Text(300)), Key("status", LIST_STATUS)),
)

DETAILS_ROW: Final = Record(
    "details row",
    (
        Key("label", Text(120), required=True),
        Key("value", Text(300), required=True),
        Key("tone", TONE),
        Key("confidence", Number(0, 1)),
        Key("hint", Text(160)),
    ),
)


def _block(kind: str, *keys: Key, once: bool = False) -> Record:
    lead = (Key("kind", OneOf("block kind", (kind,)), required=True), Key("title", Text(120)))
    return Record(kind, (*lead, *keys), lead=len(lead), once=once)


BLOCK: Final = Variants(
    "block",
    (
        _block("summary", Key("text", Text(2000), required=True)),
        _block("metricGrid", Key("metrics", ListOf(METRIC, LIMITS["metrics"]), required=True)),
        _block(
            "chart",
            Key("chart", CHART_TYPE, required=True),
            Key("yLabel", Text(80)),
            Key("series", ListOf(SERIES, LIMITS["series"]), required=True),
        ),
        _block(
            "table",
            Key("columns", ListOf(Text(80), LIMITS["columns"]), required=True),
            Key("rows", ListOf(ListOf(Text(160), LIMITS["columns"]), LIMITS["rows"]), required=True),
        ),
        _block("list", Key("items", ListOf(LIST_ITEM, LIMITS["listItems"]), required=True)),
        _block("callout", Key("text", Text(1000), required=True), Key("tone", TONE)),
        _block("actions", Key("actions", ListOf(ACTION, LIMITS["actions"]), required=True), once=True),
        _block("mediaPreview", Key("fallbackText", Text(500)), Key("media", MEDIA, required=True)),
        _block("details", Key("rows", ListOf(DETAILS_ROW, LIMITS["detailsRows"]), required=True)),
    ),
)
BLOCK_KINDS: Final = tuple(record.name for record in BLOCK.records)

CARD: Final = Record(
    "card",
    (
        Key("schema", OneOf("schema", (SCHEMA,)), required=True),
        Key("title", Text(120), required=True),
        Key("fallbackText", Text(500), required=True),
        Key("template", Text(120)),
        Key("tone", TONE),
        Key("cardId", Identifier()),
        Key("blocks", ListOf(BLOCK, LIMITS["blocks"]), required=True),
    ),
    lead=1,
)
