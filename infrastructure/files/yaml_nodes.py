"""Reads YAML twice: as data, the way the agent host reads it, and as nodes that know where they stand in the text.

It changes nothing. Positions are indexes into the text, so that an edit can leave every other character alone.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeGuard, cast

from canon_hermes_plugin.ports.errors import ConfigurationError

_SEPARATORS = re.compile(r"(?:[ \t\r\n]+(?:#[^\r\n]*)?|,|-(?=\s))*")


class BrokenYamlError(ConfigurationError):
    """The text is not one YAML document the host can read.

    Attributes:
        line: where, counted from 1; 0 when unknown.
        column: where, counted from 1; 0 when unknown.
    """

    def __init__(self, problem: str, line: int, column: int) -> None:
        where = f"line {line}, column {column}: " if line else ""
        super().__init__(f"{where}{problem}")
        self.line = line
        self.column = column


@dataclass(slots=True)
class Node:
    """One value in the text. ``end`` is where its last visible character ends, trailing comments excluded."""

    kind: Literal["scalar", "mapping", "sequence", "alias"]
    start: int
    end: int
    flow: bool = False
    style: str | None = None
    text: str = ""
    pairs: list[Pair] = field(default_factory=list["Pair"])
    items: list[Node] = field(default_factory=list["Node"])

    @property
    def empty(self) -> bool:
        """Tell whether nothing is written for this value."""
        return self.kind == "scalar" and self.start == self.end

    def last(self, key: str) -> Pair | None:
        """Return the pair that counts for ``key``: of doubles the last one, as the host reads it."""
        return next((pair for pair in reversed(self.pairs) if pair.key.text == key), None)


@dataclass(slots=True)
class Pair:
    """A key, the index of its colon (``None`` for a bare key of a flow mapping) and its value."""

    key: Node
    colon: int | None
    value: Node


def load(text: str) -> Any:  # noqa: ANN401 - decoded YAML
    """Return the data the host would read from ``text``, by YAML 1.1 rules.

    Raises:
        BrokenYamlError: with line and column.
    """
    from ruamel.yaml import YAML  # loaded only when a file is edited
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    reader: Any = YAML(typ="safe", pure=True)
    reader.version = (1, 1)
    reader.allow_duplicate_keys = True
    reader.Constructor = _host_constructor()
    try:
        with warnings.catch_warnings(action="ignore"):
            return _unshared(reader.load(text))
    except MarkedYAMLError as error:
        fault = cast("Any", error)
        mark = fault.problem_mark or fault.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        raise BrokenYamlError(str(fault.problem or "not readable"), line, column) from None
    except (YAMLError, ValueError, TypeError, RecursionError) as error:
        line, column = _position(text, getattr(error, "position", None))
        raise BrokenYamlError(getattr(error, "reason", None) or "not readable as YAML", line, column) from None


@cache
def _host_constructor() -> type:
    """Return a constructor that reads as the host's library does: of doubles the last counts, ``y`` is a word."""
    from ruamel.yaml import constructor

    library: Any = constructor

    class HostConstructor(library.SafeConstructor):  # type: ignore[misc]  # the library has no full types
        def check_mapping_key(
            self,
            node: Any,  # noqa: ANN401
            key_node: Any,  # noqa: ANN401
            mapping: Any,  # noqa: ANN401
            key: Any,  # noqa: ANN401
            value: Any,  # noqa: ANN401
        ) -> bool:
            del node, key_node, mapping, key, value
            return True

        def construct_yaml_bool(self, node: Any) -> Any:  # noqa: ANN401
            switch: Any = library.SafeConstructor.construct_yaml_bool
            return node.value if node.value in {"y", "Y", "n", "N"} else switch(self, node)

    HostConstructor.add_constructor("tag:yaml.org,2002:bool", HostConstructor.construct_yaml_bool)
    return HostConstructor


def compose(text: str) -> Node | None:
    """Return the root node of ``text``, which :func:`load` accepts; ``None`` for a document without content."""
    from ruamel.yaml import YAML

    reader: Any = YAML(typ="rt", pure=True)
    reader.allow_duplicate_keys = True
    root = reader.compose(text)
    return None if root is None else _Converter(text).convert(root, 0)


class _Converter:
    """Turns the library's nodes into ours, with exact ends; an alias is told by its node having been seen before."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._seen: set[int] = set()

    def convert(self, raw: Any, floor: int) -> Node:  # noqa: ANN401 - a ruamel node
        if id(raw) in self._seen:
            return self._alias(floor)
        self._seen.add(id(raw))
        start, end = raw.start_mark.index, raw.end_mark.index
        if raw.id == "scalar":
            if start == end or not self._text[start:end].strip():
                return Node("scalar", floor, floor)
            return Node("scalar", start, end, style=raw.style, text=raw.value)
        node = Node("mapping" if raw.id == "mapping" else "sequence", start, end, flow=bool(raw.flow_style))
        last = self._pairs(node, raw.value) if raw.id == "mapping" else self._items(node, raw.value)
        node.end = end if node.flow else last
        return node

    def _pairs(self, node: Node, raw: Any) -> int:  # noqa: ANN401
        end = node.start
        for raw_key, raw_value in raw:
            key = self.convert(raw_key, self._after_separators(end))
            colon = self._colon(key.end)
            value = self.convert(raw_value, key.end if colon is None else colon + 1)
            node.pairs.append(Pair(key, colon, value))
            end = value.end
        return end

    def _items(self, node: Node, raw: Any) -> int:  # noqa: ANN401
        end = node.start
        for raw_item in raw:
            item = self.convert(raw_item, self._after_dash(raw_item.start_mark.index, node, end))
            node.items.append(item)
            end = item.end
        return end

    def _after_dash(self, start: int, node: Node, floor: int) -> int:
        """Return where an item without text ends: behind its dash; an alias is looked for behind ``floor``."""
        if node.flow or start < floor:
            return floor
        dash = self._text.rfind("-", floor, start + 1)
        return floor if dash < 0 else dash + 1

    def _colon(self, index: int) -> int | None:
        while index < len(self._text) and self._text[index] in " \t":
            index += 1
        return index if index < len(self._text) and self._text[index] == ":" else None

    def _after_separators(self, index: int) -> int:
        match = _SEPARATORS.match(self._text, index)
        return index if match is None else match.end()

    def _alias(self, floor: int) -> Node:
        start = end = self._after_separators(floor)
        while end < len(self._text) and self._text[end] not in " \t\r\n,]}":
            end += 1
        return Node("alias", start, end)


def is_dict(value: object) -> TypeGuard[dict[Any, Any]]:
    """Tell whether decoded YAML is a mapping."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Tell whether decoded YAML is a sequence."""
    return isinstance(value, list)


def same(one: object, other: object) -> bool:
    """Compare decoded YAML; a not-a-number equals itself, ``1`` does not equal ``true``."""
    if is_dict(one) and is_dict(other):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or (one != one and other != other))  # noqa: PLR0124 - not a number


def _unshared(data: Any) -> Any:  # noqa: ANN401 - decoded YAML
    """Copy every alias, so that a change at one place is seen to change no other."""
    if is_dict(data):
        return {key: _unshared(value) for key, value in data.items()}
    if is_list(data):
        return [_unshared(value) for value in data]
    return data


def _position(text: str, index: int | None) -> tuple[int, int]:
    if index is None:
        return 0, 0
    before = text[:index]
    return before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1
