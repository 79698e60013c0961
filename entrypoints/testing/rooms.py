"""The conversations of the fake Canon: who is in which, and which names nobody ever gave.

It refuses to know what is written in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, final

DIRECT: Final = "with-"
"""How the name of a direct conversation begins; the name of its person follows."""

NEWCOMER: Final = "dana"
"""Who speaks when nobody else is named."""


@dataclass(frozen=True, slots=True)
class Room:
    """One conversation, the agent aside."""

    kind: Literal["group", "direct"]
    people: tuple[str, ...]


@final
class Rooms:
    """The conversations by name, which is their id.

    Args:
        agent_id: who is in every one of them.
        written_to: returns the conversations that the agent wrote to.
    """

    def __init__(self, agent_id: str, written_to: Callable[[], Iterable[str]]) -> None:
        self._agent_id = agent_id
        self._written_to = written_to
        self._rooms: dict[str, Room] = {}

    def group(self, name: str, people: tuple[str, ...]) -> str:
        """Open a group; returns its name.

        Raises:
            TypeError: a name is no text.
            ValueError: the name is blank, taken or that of a direct conversation; nobody or somebody twice is in it.
        """
        _check_text("a group's name", name)
        if name.startswith(DIRECT):
            raise ValueError(f"{name} is the direct conversation with {name.removeprefix(DIRECT)}, not a group")
        if name in self._rooms:
            raise ValueError(f"there is a group {name} already; its people are: {', '.join(self._rooms[name].people)}")
        if not people:
            raise ValueError(f'a group has people; name them: group("{name}", "dana", "olga")')
        for person in people:
            check_person(person)
        if len(set(people)) < len(people):
            raise ValueError(f"somebody is named twice: {', '.join(people)}")
        self._rooms[name] = Room("group", people)
        return name

    def enter(self, name: str | None, by: str) -> Mapping[str, Any]:
        """Return the conversation in which ``by`` acts, as Canon writes it; ``None`` is their direct one.

        Raises:
            TypeError: a name is no text.
            ValueError: there is no such conversation, or the person is not in it; the text names what there is.
        """
        check_person(by)
        name = DIRECT + by if name is None else name
        self.check(name, by)
        people = self._people(name)
        if by not in people:
            raise ValueError(f"{by} is not in {name}; in it are: {', '.join(people)}")
        return self.wire(name, by)

    def wire(self, name: str, by: str) -> Mapping[str, Any]:
        """Return a conversation as Canon writes it; an unknown one is the direct conversation with ``by``."""
        room = self._rooms.setdefault(name, Room("direct", (by,)))
        return {"id": name, "type": room.kind, "name": name, "memberIds": [*room.people, self._agent_id]}

    def check(self, name: str, *people: str) -> None:
        """Refuse a conversation that cannot be: the direct ones with ``people`` and whoever is known can.

        Raises:
            TypeError: the name is no text.
            ValueError: there is no such conversation; the text names those there are.
        """
        _check_text("a conversation's name", name)
        others = [person for room in self._rooms.values() for person in room.people]
        direct = [DIRECT + person for person in (NEWCOMER, *people, *others)]
        known = dict.fromkeys((*self._rooms, *self._written_to(), *direct))
        if name not in known:
            raise ValueError(
                f"there is no conversation {name!r}; there are: {', '.join(known)}. Open a group with group(…)"
            )

    def _people(self, name: str) -> tuple[str, ...]:
        return self._rooms[name].people if name in self._rooms else (name.removeprefix(DIRECT),)


def check_person(name: object) -> None:
    """Raise TypeError or ValueError unless this names one person."""
    if not isinstance(name, str):
        raise TypeError(f'a person is named by a text such as "dana", each by one of their own, not {name!r:.80}')
    _check_text("a person's name", name)


def _check_text(what: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{what} is a text, not {value!r:.80}")
    if not value.strip():
        raise ValueError(f"{what} is not blank")
