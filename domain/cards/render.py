"""Draws a card for a plain terminal. Decides the layout; the text it is given must already be harmless to print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from canon_hermes_plugin.domain.cards.columns import one_line, padded, table, width_of, wrap

Part: TypeAlias = Mapping[str, Any]

MIN_WIDTH: Final = 20
_BAR: Final = 30


@dataclass(frozen=True, slots=True)
class Marks:
    """The signs a drawing uses, all of them ASCII or not."""

    rule: str
    bar: str
    bullet: str
    separator: str
    status: Mapping[str, str]


UNICODE: Final = Marks("─", "█", "•", " · ", {"done": "✔", "pending": "○", "blocked": "✘", "warning": "!"})
ASCII: Final = Marks("-", "#", "*", " - ", {"done": "[x]", "pending": "[ ]", "blocked": "[-]", "warning": "[!]"})


def render(card: Part, width: int, marks: Marks = UNICODE) -> list[str]:
    """Return the lines of a valid card, at most ``width`` columns each (at least `MIN_WIDTH`)."""
    page = _Page(max(width, MIN_WIDTH), marks)
    lines = [*wrap(_toned(one_line(card["title"]), card), page.width), marks.rule * page.width]
    for block in card["blocks"]:
        if "title" in block:
            lines += ["", *wrap(one_line(block["title"]), page.width)]
        else:
            lines.append("")
        lines += page.fitted(_BLOCKS[block["kind"]](page, block))
    return lines


class _Page:
    """Draws the blocks of one card."""

    def __init__(self, width: int, marks: Marks) -> None:
        self.width = width
        self.marks = marks

    def fitted(self, lines: Iterator[str]) -> Iterator[str]:
        """Wrap what is still too wide, under its own indentation."""
        for line in lines:
            if width_of(line) <= self.width:
                yield line
                continue
            indent = " " * min(len(line) - len(line.lstrip()), self.width // 2)
            yield from (indent + piece for piece in wrap(line, self.width - len(indent)))

    def summary(self, block: Part) -> Iterator[str]:
        yield from wrap(block["text"], self.width)

    def callout(self, block: Part) -> Iterator[str]:
        first, *rest = wrap(_toned(block["text"], block), self.width - 2)
        yield f"! {first}"
        yield from (f"  {line}" for line in rest)

    def metrics(self, block: Part) -> Iterator[str]:
        rows = [
            [one_line(metric["label"]), _toned(one_line(metric["value"]), metric), one_line(metric.get("delta", ""))]
            for metric in block["metrics"]
        ]
        yield from table(rows)

    def chart(self, block: Part) -> Iterator[str]:
        if "yLabel" in block:
            yield f"({one_line(block['yLabel'])})"
        for series in block["series"]:
            if "name" in series:
                yield f"{one_line(series['name'])}:"
            yield from self.bars(series["points"])

    def bars(self, points: list[Part]) -> Iterator[str]:
        names = [one_line(point["x"]) for point in points]
        space = min(max(map(width_of, names)), self.width // 3)
        top = max(abs(float(point["y"])) for point in points) or 1.0
        for name, point in zip(names, points, strict=True):
            share = abs(float(point["y"])) / top
            bar = self.marks.bar * round(share * min(_BAR, self.width // 3))
            yield f"  {padded(name, space)}  {bar}{' ' if bar else ''}{point['y']:g}"

    def table(self, block: Part) -> Iterator[str]:
        head = [one_line(column) for column in block["columns"]]
        rows = [[one_line(cell) for cell in row] for row in block["rows"]]
        lines = table([head, *rows])
        if max(map(width_of, lines)) <= self.width:
            yield lines[0]
            yield self.marks.rule * max(map(width_of, lines))
            yield from lines[1:]
            return
        for row in rows:  # too wide for a grid: one line per cell
            for index, cell in enumerate(row):
                yield f"{head[index]}: {cell}" if index < len(head) else cell
            yield self.marks.rule * 3

    def items(self, block: Part) -> Iterator[str]:
        for item in block["items"]:
            mark = self.marks.status.get(item.get("status", ""), self.marks.bullet)
            detail = f"{self.marks.separator}{one_line(item['detail'])}" if "detail" in item else ""
            yield f"{mark} {one_line(item['label'])}{detail}"

    def details(self, block: Part) -> Iterator[str]:
        for row in block["rows"]:
            notes = [f"{row['confidence']:.0%} sure"] if "confidence" in row else []
            notes += [one_line(row["hint"])] if "hint" in row else []
            note = f" ({', '.join(notes)})" if notes else ""
            yield f"{one_line(row['label'])}: {_toned(one_line(row['value']), row)}{note}"

    def media(self, block: Part) -> Iterator[str]:
        media = block["media"]
        page = f", page {media['page']:g}" if "page" in media else ""
        pages = f" of {media['pageCount']:g}" if page and "pageCount" in media else ""
        name = one_line(media.get("fileName") or block.get("fallbackText") or "unnamed")
        yield f"[{media['kind']}] {name} ({one_line(media['mimeType'])}{page}{pages})"
        if "fileName" in media and "fallbackText" in block:
            yield f"  {one_line(block['fallbackText'])}"
        yield f"  {one_line(media['url'])}"

    def actions(self, block: Part) -> Iterator[str]:
        for action in block["actions"]:
            label = f"[ {one_line(action['label'])} ]"
            yield f"{_toned(label, action)}  id {action['id']}"
            for field in action.get("fields", ()):
                yield from self.field(field)

    def field(self, field: Part, indent: str = "  ") -> Iterator[str]:
        """Draw a field of an action, or a column of its line items."""
        yield f"{indent}{self.marks.bullet} {one_line(field['label'])} ({', '.join(_traits(field))})"
        if "placeholder" in field:
            yield f"{indent}    {one_line(field['placeholder'])}"
        for choice in field.get("choices", ()):
            described = f"{self.marks.separator}{one_line(choice['description'])}" if "description" in choice else ""
            yield f"{indent}    ( ) {one_line(choice['label'])}{described}"
        for column in field.get("columns", ()):
            yield from self.field(column, f"{indent}    ")


def _traits(field: Part) -> Iterator[str]:
    yield field["type"]
    for name in ("required", "sensitive", "allowOther"):
        if field.get(name):
            yield "other answers allowed" if name == "allowOther" else name
    names = {"min": "from", "max": "to", "step": "step", "minRows": "rows from", "maxRows": "rows to"}
    for name, word in names.items():
        if name in field:
            yield f"{word} {field[name]}"
    if "currencyCode" in field:
        yield one_line(field["currencyCode"])


def _toned(text: str, part: Part) -> str:
    return f"{text} [{part['tone']}]" if "tone" in part else text


_BLOCKS: Final = {
    "summary": _Page.summary,
    "callout": _Page.callout,
    "metricGrid": _Page.metrics,
    "chart": _Page.chart,
    "table": _Page.table,
    "list": _Page.items,
    "details": _Page.details,
    "mediaPreview": _Page.media,
    "actions": _Page.actions,
}
