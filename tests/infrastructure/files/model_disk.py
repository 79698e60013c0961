"""A disk that forgets what was not synced: counts calls, stops after any of them, lists every legal disk afterwards.

A file's content is durable after ``sync_file``; a name's creation, renaming or removal after ``sync_directory`` of its
directory. Until then a crash may keep or lose each of them on its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


class Killed(BaseException):
    """The process died."""


@dataclass(eq=False)
class Inode:
    data: bytes
    synced: bool = False


@dataclass(frozen=True, eq=False)
class NameChange:
    """One unsynced change of names inside one directory."""

    directory: Path
    gone: Path | None = None
    made: Path | None = None
    inode: Inode | None = None


@dataclass
class State:
    files: dict[Path, Inode] = field(default_factory=dict)
    directories: set[Path] = field(default_factory=set)


class ModelDisk:
    def __init__(self, root: Path, state: State | None = None) -> None:
        self.durable = state or State(directories={root})
        self.files = dict(self.durable.files)
        self.directories = set(self.durable.directories)
        self.pending: list[NameChange] = []
        self.calls = 0
        self.die_after: int | None = None

    def read(self, path: Path) -> bytes | None:
        return self.files[path].data if path in self.files else None

    def names(self, directory: Path) -> list[str]:
        return sorted(path.name for path in self.files if path.parent == directory)

    def age(self, path: Path) -> float:
        del path
        return 1e9

    def is_directory(self, path: Path) -> bool:
        return path in self.directories

    def make_directory(self, path: Path) -> bool:
        if path in self.directories:
            return False
        assert path.parent in self.directories
        self.directories.add(path)
        self._note(NameChange(path.parent, made=path))
        return True

    def create(self, path: Path, data: bytes) -> None:
        assert path not in self.files
        assert path.parent in self.directories
        inode = Inode(data)
        self.files[path] = inode
        self._note(NameChange(path.parent, made=path, inode=inode))

    def sync_file(self, path: Path) -> None:
        self.files[path].synced = True
        self._count()

    def replace(self, source: Path, target: Path) -> None:
        inode = self.files.pop(source)
        self.files[target] = inode
        self._note(NameChange(target.parent, gone=source, made=target, inode=inode))

    def remove(self, path: Path) -> None:
        if self.files.pop(path, None) is not None:
            self._note(NameChange(path.parent, gone=path))

    def sync_directory(self, path: Path) -> None:
        for change in self.pending:
            if change.directory == path:
                _apply(self.durable, change)
        self.pending = [change for change in self.pending if change.directory != path]
        self._count()

    def legal_states(self) -> Iterator[State]:
        """Every disk a crash may leave now."""
        for kept in itertools.product((True, False), repeat=len(self.pending)):
            state = State(dict(self.durable.files), set(self.durable.directories))
            for change, keep in zip(self.pending, kept, strict=True):
                if keep:
                    _apply(state, change)
            named = {path: inode for path, inode in state.files.items() if path.parent in state.directories}
            loose = [path for path, inode in named.items() if not inode.synced]
            for cut in itertools.product((0.0, 0.5, 1.0), repeat=len(loose)):
                files = {path: Inode(inode.data, synced=True) for path, inode in named.items()}
                for path, part in zip(loose, cut, strict=True):
                    files[path] = Inode(named[path].data[: int(len(named[path].data) * part)], synced=True)
                yield State(files, set(state.directories))

    def _note(self, change: NameChange) -> None:
        self.pending.append(change)
        self._count()

    def _count(self) -> None:
        self.calls += 1
        if self.die_after is not None and self.calls >= self.die_after:
            raise Killed


def _apply(state: State, change: NameChange) -> None:
    if change.gone is not None:
        state.files.pop(change.gone, None)
    if change.made is None:
        return
    if change.inode is None:
        state.directories.add(change.made)
    else:
        state.files[change.made] = change.inode
