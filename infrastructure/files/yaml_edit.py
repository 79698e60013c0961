"""Changes one value of a YAML text and leaves every other character as it was (field faults 38 to 43).

The place is found by parsed path, never by looking at lines; the change is spliced into the text; the result is parsed
again and must say exactly what was wanted, or nothing is changed. What is wanted, the caller decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from canon_hermes_plugin.infrastructure.files.yaml_nodes import Node, Pair, compose, is_dict, is_list, load, same
from canon_hermes_plugin.ports.errors import ConfigurationError

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*\Z")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})

Path = Sequence[str]


class CannotEditError(ConfigurationError):
    """The place cannot be changed without changing something else; the file is left alone."""


def set_value(text: str, path: Path, value: bool) -> str:
    """Return ``text`` with ``value`` at ``path``; missing or ill-shaped parents become mappings.

    Raises:
        BrokenYamlError: the text is broken.
        CannotEditError: only a person can make this change.
    """
    return _edit(text, path, lambda _: value)


def add_item(text: str, path: Path, item: str) -> str:
    """Return ``text`` with ``item`` in the list at ``path``, kept sorted when the list is; raises as :func:`set_value`.

    Anything but a list there is replaced by a list.
    """

    def leaf(old: object) -> list[Any]:
        if not is_list(old):
            return [item]
        if item in old:
            return old
        place = _place(old, item)
        return [*old[:place], item, *old[place:]]

    return _edit(text, path, leaf)


def remove_item(text: str, path: Path, item: str) -> str:
    """Return ``text`` without any ``item`` in the list at ``path``; raises as :func:`set_value`.

    Anything but a list there stays.
    """
    while item in _list_at(text, path):
        text = _edit(text, path, lambda old: _without_first(old, item))
    return text


def _list_at(text: str, path: Path) -> list[Any]:
    here: Any = load(text.removeprefix("\ufeff"))
    for key in path:
        here = here.get(key) if is_dict(here) else None
    return here if is_list(here) else []


def _without_first(items: list[Any], item: str) -> list[Any]:
    at = items.index(item)
    return [*items[:at], *items[at + 1 :]]


def _place(items: list[Any], item: str) -> int:
    """Return where ``item`` goes: its sorted place among sorted strings, else the end."""
    if all(isinstance(entry, str) for entry in items) and items == sorted(items):
        return sum(entry < item for entry in items)
    return len(items)


def _edit(text: str, path: Path, leaf: Callable[[Any], Any]) -> str:
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix("\ufeff")
    before = load(body)
    if before is not None and not is_dict(before):
        raise CannotEditError("the file does not hold a mapping at its top")
    wanted = _apply(before, path, leaf)
    if before is not None and same(before, wanted):
        return text
    after = _Splice(body, before, wanted).at(path)
    try:
        good = same(load(after), wanted)
    except ConfigurationError:
        good = False
    if not good:
        raise CannotEditError(f"{'.'.join(path)} cannot be changed without touching other settings; change it by hand")
    return bom + after


def _apply(data: Any, path: Path, leaf: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - decoded YAML
    result: dict[Any, Any] = deepcopy(data) if is_dict(data) else {}
    here = result
    for key in path[:-1]:
        child = here.get(key)
        here[key] = child if is_dict(child) else {}
        here = here[key]
    here[path[-1]] = leaf(here.get(path[-1]))
    return result


class _Splice:
    """One change of one text. Every method returns the whole new text."""

    def __init__(self, text: str, before: Any, wanted: Any) -> None:  # noqa: ANN401 - decoded YAML
        self._text = text
        self._before = before
        self._wanted = wanted
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._root = compose(text)
        root = self._root
        self._json = root is not None and root.flow and bool(root.pairs) and root.pairs[0].key.style == '"'

    def at(self, path: Path) -> str:
        wanted, before = self._wanted, self._before
        node = self._root
        for depth, key in enumerate(path):
            wanted, before = wanted[key], before.get(key) if is_dict(before) else None
            if node is None or node.empty:
                return self._append(key, wanted)
            pair = node.last(key)
            if pair is None:
                return self._insert_pair(node, key, wanted)
            if depth == len(path) - 1:
                return self._change_leaf(node, pair, wanted, before)
            if pair.value.kind != "mapping":
                return self._replace_value(node, pair, wanted)
            node = pair.value
        return self._text

    def _change_leaf(self, parent: Node, pair: Pair, wanted: Any, old: Any) -> str:  # noqa: ANN401
        node = pair.value
        if node.kind != "sequence" or not is_list(wanted) or not is_list(old):
            return self._replace_value(parent, pair, wanted)
        at = _first_difference(wanted, old)
        if len(wanted) < len(old):
            return self._remove_flow_item(node, at) if node.flow else self._remove_block_item(pair, at)
        item = self._flow(wanted[at], like=node.items)
        return self._insert_flow_item(node, at, item) if node.flow else self._insert_block_item(node, at, item)

    # --- whole pairs -------------------------------------------------------------------------------------------

    def _append(self, key: str, wanted: Any) -> str:  # noqa: ANN401
        text = self._text
        joint = "" if not text or text.endswith(("\n", "\r")) else self._newline
        return text + joint + self._block(key, wanted, 0)

    def _insert_pair(self, node: Node, key: str, wanted: Any) -> str:  # noqa: ANN401
        if node.kind != "mapping":
            raise CannotEditError(f"{key} has no place in this file; change it by hand")
        if node.flow:
            entry = f"{self._flow(key)}: {self._flow(wanted)}"
            if not node.pairs:
                return self._put(self._text.index("{", node.start) + 1, entry)
            return self._put(node.pairs[-1].value.end, f", {entry}")
        place = self._after_line(node)
        joint = "" if place == 0 or self._text[place - 1] in "\r\n" else self._newline
        return self._put(place, joint + self._block(key, wanted, self._column(node.pairs[0].key.start)))

    def _replace_value(self, parent: Node, pair: Pair, wanted: Any) -> str:  # noqa: ANN401
        node, new = pair.value, self._flow(wanted)
        if node.empty:
            if pair.colon is None:
                return self._put(pair.key.end, f": {new}")
            if parent.flow or not isinstance(wanted, dict | list):
                return self._put(pair.colon + 1, f" {new}")
            return self._put_lines(pair.colon + 1, self._children(wanted, self._column(pair.key.start) + 2))
        if node.kind in {"mapping", "sequence"} and not node.flow:
            return self._comment_out(pair, wanted)
        old = self._text[node.start : node.end]
        if old.endswith(("\n", "\r")):
            new += self._newline
        elif not parent.flow and isinstance(wanted, dict | list) and node.kind != "alias" and old.isprintable():
            new += "" if old in {"~", "null", "Null", "NULL", "{}", "[]"} else f"  # was: {old}"
        return self._text[: node.start] + new + self._text[node.end :]

    def _comment_out(self, pair: Pair, wanted: Any) -> str:  # noqa: ANN401
        """Put the wanted lines above an ill-shaped block, which stays as comments: nothing a person wrote is lost."""
        assert pair.colon is not None  # noqa: S101 - a block value follows a colon
        first = self._line_end(pair.colon)
        last = self._after_line(pair.value)
        if first >= last:
            raise CannotEditError(f"{pair.key.text} holds something unexpected; change it by hand")
        indent = self._column(pair.key.start) + 2
        if isinstance(wanted, dict | list):
            head, lines = self._text[:first], self._children(wanted, indent)
        else:
            head = f"{self._text[: pair.colon + 1]} {self._flow(wanted)}{self._text[pair.colon + 1 : first]}"
            lines = ""
        old = self._text[first:last].splitlines(keepends=True)
        return head + lines + "".join(f"# {line}" if line.strip() else line for line in old) + self._text[last:]

    # --- list items --------------------------------------------------------------------------------------------

    def _insert_flow_item(self, node: Node, at: int, item: str) -> str:
        if not node.items:
            return self._put(self._text.index("[", node.start) + 1, item)
        if at < len(node.items):
            return self._put(node.items[at].start, f"{item}, ")
        return self._put(node.items[-1].end, f", {item}")

    def _insert_block_item(self, node: Node, at: int, item: str) -> str:
        dash = self._dash(node.items[0])
        gap = self._text[dash + 1 : node.items[0].start]
        line = f"{' ' * self._column(dash)}-{gap if gap.strip(' ') == '' and gap else ' '}{item}{self._newline}"
        place = self._line_start(dash) if at == 0 else self._after_line(node.items[at - 1])
        joint = "" if place == 0 or self._text[place - 1] in "\r\n" else self._newline
        return self._put(place, joint + line)

    def _remove_flow_item(self, node: Node, at: int) -> str:
        item = node.items[at]
        end = node.items[at + 1].start if at + 1 < len(node.items) else node.end - 1
        comma = self._comma(item.end, end)
        if comma is not None:
            stop = comma + 1
            while stop < len(self._text) and self._text[stop] in " \t":
                stop += 1
            return self._cut(item.start, stop)
        if at == 0:
            return self._cut(item.start, item.end)
        before = self._comma(node.items[at - 1].end, item.start)
        if before is None:
            raise CannotEditError("the list cannot be changed safely; change it by hand")
        start = item.start
        while start > before + 1 and self._text[start - 1] in " \t":
            start -= 1
        return self._text[:before] + self._text[before + 1 : start] + self._text[item.end :]

    def _remove_block_item(self, pair: Pair, at: int) -> str:
        node = pair.value
        start = self._line_start(self._dash(node.items[at]))
        rest = self._text[:start] + self._text[self._after_line(node.items[at]) :]
        if len(node.items) > 1 or pair.colon is None:
            return rest
        return f"{rest[: pair.colon + 1]} []{rest[pair.colon + 1 :]}"

    # --- text --------------------------------------------------------------------------------------------------

    def _put(self, index: int, piece: str) -> str:
        return self._text[:index] + piece + self._text[index:]

    def _put_lines(self, index: int, lines: str) -> str:
        place = self._line_end(index)
        joint = "" if place and self._text[place - 1] in "\r\n" else self._newline
        return self._put(place, joint + lines)

    def _cut(self, start: int, end: int) -> str:
        """Remove a span, and its whole line when nothing else stands on it."""
        first, last = self._line_start(start), self._line_end(end)
        if not (self._text[first:start] + self._text[end:last]).strip():
            start, end = first, last
        return self._text[:start] + self._text[end:]

    def _comma(self, start: int, end: int) -> int | None:
        gap = re.sub(r"#[^\r\n]*", lambda comment: " " * len(comment.group()), self._text[start:end])
        return start + gap.index(",") if "," in gap else None

    def _dash(self, item: Node) -> int:
        dash = self._text.rfind("-", 0, item.start)
        if dash < 0 or self._text[dash + 1 : item.start].strip():
            raise CannotEditError("the list cannot be changed safely; change it by hand")
        return dash

    def _line_start(self, index: int) -> int:
        return max(self._text.rfind("\n", 0, index), self._text.rfind("\r", 0, index)) + 1

    def _line_end(self, index: int) -> int:
        match = re.compile(r"\r\n|\n|\r").search(self._text, index)
        return len(self._text) if match is None else match.end()

    def _after_line(self, node: Node) -> int:
        """Return the start of the line after ``node``; the end of a literal text is one already."""
        if node.end and self._text[node.end - 1] in "\r\n":
            return node.end
        return self._line_end(node.end)

    def _column(self, index: int) -> int:
        """Return the column of a key or dash; that of an explicit key is the column of its question mark."""
        start = self._line_start(index)
        explicit = self._text[start:index].strip(" ") == "?"
        return self._text.index("?", start) - start if explicit else index - start

    # --- rendering ---------------------------------------------------------------------------------------------

    def _block(self, key: str, value: Any, indent: int) -> str:  # noqa: ANN401
        head = f"{' ' * indent}{self._flow(key)}:"
        if isinstance(value, dict | list) and value:
            return head + self._newline + self._children(value, indent + 2)
        return f"{head} {self._flow(value)}{self._newline}"

    def _children(self, value: Any, indent: int) -> str:  # noqa: ANN401
        if is_dict(value):
            return "".join(self._block(key, entry, indent) for key, entry in value.items())
        return "".join(f"{' ' * indent}- {self._flow(entry)}{self._newline}" for entry in value)

    def _flow(self, value: Any, like: Sequence[Node] = ()) -> str:  # noqa: ANN401
        """Return ``value`` on one line, quoted as its neighbours ``like`` are."""
        if is_dict(value):
            return "{" + ", ".join(f"{self._flow(key)}: {self._flow(entry)}" for key, entry in value.items()) + "}"
        if is_list(value):
            return "[" + ", ".join(self._flow(entry) for entry in value) + "]"
        if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _WORDS and not self._json:
            styles = {item.style for item in like}
            quote = (styles.pop() or "") if len(styles) == 1 else ""
            return f"{quote}{value}{quote}" if quote in {"'", '"'} else value
        try:
            return json.dumps(value, ensure_ascii=False)
        except TypeError:
            raise CannotEditError("a value in the way has no simple spelling; change it by hand") from None


def _first_difference(one: list[Any], other: list[Any]) -> int:
    size = min(len(one), len(other))
    return next((index for index in range(size) if not same(one[index], other[index])), size)
