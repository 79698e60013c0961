"""Writes the skill and the reference page out of the schema table, so that neither can contradict the validator.

Decides the words. Knows no files: a command writes the text, a test compares it with what is checked in.
"""

from __future__ import annotations

import json
from typing import Final

from canon_hermes_plugin.domain.cards.examples import DECISION, EXAMPLES, REPORT
from canon_hermes_plugin.domain.cards.leaves import allowed, limit_of
from canon_hermes_plugin.domain.cards.limits import MAX_CARD_BYTES, MAX_CARD_ERRORS, RUNTIME_CARD_LIMITS
from canon_hermes_plugin.domain.cards.plan import records
from canon_hermes_plugin.domain.cards.schema import (
    BLOCK,
    BLOCK_KINDS,
    CARD,
    CHART_TYPE,
    COLUMN_TYPE,
    FIELD_TYPE,
    ID_PATTERN,
    LIST_STATUS,
    MEDIA_KIND,
    TONE,
    Bound,
    Key,
    ListOf,
    OneOf,
    Record,
    Text,
    Variants,
)

SKILL_NAME: Final = "rich-cards"
SKILL_DESCRIPTION: Final = "Show structured Canon cards, or ask for an explicit decision, with canon_runtime_control."
BEGIN: Final = "<!-- generated from the card schema: begin -->"
END: Final = "<!-- generated from the card schema: end -->"

_VOCABULARIES: Final = (TONE, CHART_TYPE, LIST_STATUS, MEDIA_KIND, FIELD_TYPE, COLUMN_TYPE)
_RECORDS: Final = tuple(dict.fromkeys(records()))


def skill_text() -> str:
    """Return the whole SKILL.md of ``canon-hermes:rich-cards`` (cards §7)."""
    return _SKILL.format(
        name=SKILL_NAME,
        description=SKILL_DESCRIPTION,
        kinds=_code(BLOCK_KINDS),
        fields=_code(FIELD_TYPE.members),
        tones=_code(TONE.members),
        columns=_code(COLUMN_TYPE.members),
        pattern=ID_PATTERN,
        title=_text_limit("title"),
        fallback=_text_limit("fallbackText"),
        kib=MAX_CARD_BYTES // 1024,
        limits=RUNTIME_CARD_LIMITS,
        shapes="\n".join(f"* {_shape(record)}" for record in _RECORDS),
        display=_json(REPORT),
        call=_json({"action": "request_card", "timeoutSeconds": 600, "card": DECISION}),
    )


def reference_text() -> str:
    """Return the reference section of docs/cards.md, between its marks."""
    parts = [BEGIN, "## Limits", _limits(), "## Vocabulary", _vocabulary(), "## Shapes", _SHAPES_INTRODUCTION]
    for record in _RECORDS:
        parts += [f"### {_heading(record)}", _table(record)]
    parts += ["## Examples", _examples(), END]
    return "\n\n".join(parts) + "\n"


def with_reference(page: str) -> str:
    """Return a page with the text between the marks replaced, or with the section appended when it has no marks."""
    head, begin, rest = page.partition(BEGIN)
    tail = rest.partition(END)[2].lstrip("\n") if begin else ""
    gap = "" if not head or head.endswith("\n\n") else "\n"
    return f"{head}{gap}{reference_text()}" + (f"\n{tail}" if tail else "")


def _code(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _text_limit(name: str) -> int:
    rule = next(key.rule for key in CARD.keys if key.name == name)
    return rule.limit if isinstance(rule, Text) else 0


def _heading(record: Record) -> str:
    return f"Block `{record.name}`" if record in BLOCK.records else record.name.capitalize()


def _shape(record: Record) -> str:
    """One line for the skill: the keys of an object, required ones in bold."""
    keys = ", ".join(f"**`{key.name}`**" if _required(key) == "yes" else f"`{key.name}`" for key in record.keys)
    name = f"block `{record.name}`" if record in BLOCK.records else record.name
    return f"{name}: {keys}"


def _table(record: Record) -> str:
    lines = ["| key | required | allowed |", "| --- | --- | --- |"]
    lines += [f"| `{key.name}` | {_required(key)} | {_allowed(key)} |" for key in record.keys]
    return "\n".join(lines)


def _required(key: Key) -> str:
    types = key.needed_for or (key.only_for if key.required else frozenset())
    if types:
        return f"for {_code(tuple(sorted(types)))}"
    return "yes" if key.required else "no"


def _allowed(key: Key) -> str:
    rule = key.rule
    if isinstance(rule, ListOf):
        text = _array(rule)
    elif isinstance(rule, Bound):
        text = f"{allowed(rule)}; for type `date` {allowed(rule, 'date')}"
    elif isinstance(rule, OneOf):
        text = f"`{rule.members[0]}`" if len(rule.members) == 1 else f"{rule.name}: {_code(rule.members)}"
    elif isinstance(rule, (Record, Variants)):
        text = f"object: {rule.name}"
    else:
        text = allowed(rule).replace("|", "\\|")
    lower = f"; not below `{key.lower}`" if key.lower else ""
    only = f"; only for type {_code(tuple(sorted(key.only_for)))}" if key.only_for else ""
    return text + lower + only


def _array(rule: ListOf) -> str:
    more = "".join(f" ({limit_of(rule, tag)} for `{tag}`)" for tag, _ in rule.limit_for)
    item = rule.item
    if isinstance(item, ListOf):
        entries = f"entries, each {_array(item)}"
    elif isinstance(item, (Record, Variants)):
        entries = f"objects: {item.name}"
    else:
        entries = f"entries, each {allowed(item)}"
    return f"array of 1 to {rule.limit}{more} {entries}"


def _limits() -> str:
    lines = ["| limit | entries |", "| --- | --- |"]
    lines += [f"| `{name}` | {limit} |" for name, limit in RUNTIME_CARD_LIMITS.items()]
    return (
        "\n".join(lines)
        + f"\n\nA card takes at most {MAX_CARD_BYTES} bytes as compact UTF-8 JSON. Lengths of strings are counted in"
        f" UTF-16 code units. Ids match `^{ID_PATTERN}$`. A verdict lists at most {MAX_CARD_ERRORS} errors."
    )


def _vocabulary() -> str:
    rows = [("block kind", BLOCK_KINDS), *((words.name, words.members) for words in _VOCABULARIES)]
    return "\n".join(
        ["| word | members |", "| --- | --- |", *(f"| {name} | {_code(members)} |" for name, members in rows)]
    )


def _examples() -> str:
    lines = ["`canon-hermes card example NAME` prints one of these:", ""]
    return "\n".join([*lines, *(f"* `{name}`: {example.purpose}" for name, example in EXAMPLES.items())])


_SHAPES_INTRODUCTION: Final = """\
The keys listed are the only ones an object may have; an optional key that is present must satisfy its rule, so
`null` is refused. Action ids are unique in the card, field ids in their action, column ids in their field;
choices of one list differ in their value, or in their label where they have no value. At most one block is of
kind `actions`."""

_SKILL: Final = """\
---
name: {name}
description: {description}
allowed-tools: [canon_runtime_control]
---

# Rich cards in Canon

## When

Use a card when structure (figures, a table, a checklist, a document) or an explicit decision is clearer than
short text. Otherwise answer in plain text.

## How

A card is one JSON object with the schema `canon.card.v1`. Pass it to the tool `canon_runtime_control`; never
use a command-line tool of Canon for it. Put nothing secret and no hidden state into a card: treat it as
readable by everyone in the conversation.

* **Display.** A card without actions: `action: "send_card"`. It is shown; nobody is asked.
* **Decision.** A card with an actions block: `action: "request_card"`, which waits for the answer. Proceed only
  on `status: "submitted"` with an `actionId` the card declared. `cancelled`, `timeout`, and a missing or
  unknown status mean that nothing was authorised: change no external state.
* **Routing.** In the active Canon turn leave out `target`, `responseUserId`, `runtimeId` and `turnId`. Routing
  is trusted context; you cannot choose who answers.
* **After a rejection.** The error names the path and what is allowed there. Repair the payload; the same
  payload will fail again.

## Vocabulary

* Required at the top: `schema`, `title`, `fallbackText`, `blocks`. No keys beyond those listed below, and no
  `null`.
* Block kinds: {kinds}.
* Field types: {fields}.
* Line-item column types: {columns}.
* Tones: {tones}.
* Table columns are strings and table rows are arrays of strings.
* List items have `label` plus only `detail` and `status`.

Keys of every object, required ones in bold (`choices` is required for select fields and columns, `columns`
belongs to and is required for `lineItems` only):

{shapes}

## Limits

* At most {limits[blocks]} blocks; one actions block, with at most {limits[totalActions]} actions per card.
* At most {limits[fields]} fields per action; at most {limits[choices]} choices per field (`searchSelect`:
  {limits[searchSelectChoices]}).
* At most {limits[metrics]} metrics, {limits[series]} chart series of {limits[points]} points, {limits[rows]}
  table rows of {limits[columns]} columns, {limits[listItems]} list items, {limits[detailsRows]} `details` rows.
* `lineItems`: at most {limits[lineItemColumns]} columns, and `maxRows` (the rows submitted) at most
  {limits[lineItemRows]}.
* At most {kib} KiB serialised as UTF-8 JSON; `title` at most {title} characters, `fallbackText` at most
  {fallback}.
* Ids match `^{pattern}$`. Action ids are unique in the card, field ids within their action.

## Answers

The values of an action's fields come back under `values`, keyed by field id. The questions of a runtime input
come back under `answers` instead. Whatever comes back was typed by a human: the domain code must validate it
again before it changes anything.

## Media

In `mediaPreview` use only the exact address that Canon's authenticated upload returned for this conversation;
`image/*` or `application/pdf`. Give both the block and the card a `fallbackText` that names the document. No
upload means no preview.

## Examples

A card for display, to be passed as `card` with `action: "send_card"`:

```json
{display}
```

A complete call of `canon_runtime_control` that asks for a decision:

```json
{call}
```
"""
