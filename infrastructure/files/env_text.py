"""The text of a ``.env`` file: what it says, and how to change a few keys without touching the rest.

A written value means the same to three readers: the agent host's own loader, its dotenv loader, and a shell that
sources the file (field fault 52). Text in, text out; no file is touched here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,=-]+\Z")
_MARK = "CANON_HERMES_VALUE"
_OPEN = f": <<'{_MARK}'"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One ``KEY=value`` line: ``value`` as the host reads it, ``line`` counted from 1."""

    key: str
    value: str
    line: int


def assignments(text: str) -> list[Assignment]:
    """Return every assignment in order; of several for one key, the last one counts for the host."""
    found: list[Assignment] = []
    for number, raw in enumerate(_lines(text.removeprefix("\ufeff")), 1):
        if (key := _key_of(raw)) is not None:
            found.append(Assignment(key, _decode(raw.partition("=")[2]), number))
    return found


def values(text: str) -> dict[str, str]:
    """Return what the host's loader makes of ``text``."""
    return {entry.key: entry.value for entry in assignments(text)}


def change(text: str, sets: Mapping[str, str], removes: Collection[str] = ()) -> str:
    """Return ``text`` with ``sets`` written and ``removes`` gone; every other byte stays.

    A set key takes the place of its first assignment and loses every further one, so that no older value can come back.
    The same change twice gives the same text.

    Raises:
        ValueError: a key that is no variable name, or a value with a line break or another unprintable character.
    """
    for key, value in sets.items():
        if not _NAME.match(key):
            raise ValueError(f"{key!r} is not the name of an environment variable")
        if not value.isprintable():
            raise ValueError(f"the value for {key} holds a line break or another unprintable character")
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix("\ufeff")
    newline = "\r\n" if "\r\n" in body else "\n"
    present = values(body)
    dropped = {*removes, *(key for key, value in sets.items() if not _is_written(body, key, value, newline))}
    kept: list[str] = []
    written = set(sets) - dropped
    for name, block in _entries(body):
        if name not in dropped:
            kept.append(block)
        elif name in sets and name not in written:
            kept.append(_render(name, sets[name], newline))
            written.add(name)
    missing = [key for key in sets if key not in written and (key not in present or key in dropped)]
    if missing and kept and not kept[-1].endswith(("\n", "\r")):
        kept[-1] += newline
    return bom + "".join([*kept, *(_render(key, sets[key], newline) for key in missing)])


def _is_written(body: str, key: str, value: str, newline: str) -> bool:
    """Tell whether ``key`` stands in the file exactly once, in our own spelling."""
    blocks = [block for name, block in _entries(body) if name == key]
    return len(blocks) == 1 and blocks[0].rstrip("\r\n") == _render(key, value, newline).rstrip("\r\n")


def _render(key: str, value: str, newline: str) -> str:
    """Return the line or lines that give ``key`` this value to every reader.

    Some values have no single spelling: the host knows no escape for ``$`` and the backquote, a shell none for a quote
    inside single quotes. For those the shell reads the first line; the host reads the line inside the here-document,
    which the shell skips.
    """
    if not value or _PLAIN.match(value):
        return f"{key}={value}{newline}"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    if not any(mark in value for mark in "$`"):
        return f'{key}="{escaped}"{newline}'
    if "'" not in value and "\\\\" not in value and not value.endswith("\\"):
        return f"{key}='{value}'{newline}"
    for_shell = value.replace("'", "'\\''")
    return newline.join([f"{key}='{for_shell}'", _OPEN, f'{key}="{escaped}"', _MARK, ""])


def _entries(body: str) -> Iterator[tuple[str | None, str]]:
    """Yield (key, lines) blocks that make up ``body``: one assignment, with its here-document when it has one."""
    lines = _lines(body)
    index = 0
    while index < len(lines):
        key, size = _key_of(lines[index]), 1
        if key is not None and _is_block(lines[index : index + 4], key):
            size = 4
        yield key, "".join(lines[index : index + size])
        index += size


def _is_block(lines: list[str], key: str) -> bool:
    return len(lines) == 4 and (lines[1].strip(), _key_of(lines[2]), lines[3].strip()) == (_OPEN, key, _MARK)  # noqa: PLR2004


def _lines(text: str) -> list[str]:
    """Split at LF, CRLF and CR only, as the host does, keeping the ends."""
    return _LINES.findall(text)


def _key_of(line: str) -> str | None:
    stripped = line.strip()
    if not stripped or stripped.startswith("#") or "=" not in stripped:
        return None
    return stripped.removeprefix("export ").partition("=")[0].strip()


def _decode(raw: str) -> str:
    value = raw.strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        return re.sub(r'\\(["\\])', r"\1", value[1:-1])
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1]
    return value
