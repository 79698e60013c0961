"""What people decide about cards and approvals: at once where one is open, else as soon as one is asked for.

It decides which request somebody means and what its card allows. It refuses to know how a decision travels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast, final

from canon_hermes_plugin.domain.cards.interactive import interactive
from canon_hermes_plugin.infrastructure.memory.interactions import Interaction, InteractionStore
from canon_hermes_plugin.testing.rooms import check_person

Card = Mapping[str, Any] | str | None
"""Which card is meant: the card itself, its id or title, or ``None`` for any."""

Request = Mapping[str, Any] | str | None
"""Which approval is meant: what asked for it or its id, or ``None`` for any."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What somebody will do with the next request that fits.

    Attributes:
        kind: of request.
        card: which one, where it is a card.
        answer: what is decided.
        by: who decides; whoever is asked if ``None``.
        after: seconds they take.
    """

    kind: str
    answer: Mapping[str, Any]
    by: str | None
    card: Card = None
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Settled:
    """A decision as it was made."""

    kind: str
    identifier: str
    made: Interaction
    by: str
    status: str


@final
class Decisions:
    """The decisions of people, those that wait for their request included.

    Args:
        store: what was asked for.
        later: does something on the plugin's loop when so many seconds have passed, 0 for at once; any thread calls it.
        decided: told about each decision that Canon knows; on the plugin's loop.
    """

    def __init__(
        self,
        store: InteractionStore,
        later: Callable[[float, Callable[[], None]], object],
        decided: Callable[[Settled], None],
    ) -> None:
        self._store = store
        self._later = later
        self._decided = decided
        self._plans: list[Plan] = []
        self._claimed: set[tuple[str, str]] = set()
        store.on_created = self._created

    def about_card(self, plan: Plan) -> bool:
        """Let somebody choose an action of a card; tells whether one was open.

        Raises:
            TypeError: the seconds are no number, or the person no text.
            ValueError: the card has no action, not this one, or not these fields; the seconds are not 0 or more.
        """
        _check_plan(plan)
        if isinstance(plan.card, Mapping):
            if not interactive(dict(plan.card)):
                raise ValueError("this card has no action, so nobody can answer it; it is only shown")
            _chosen(plan.card, plan.answer)
        return self._make(plan)

    def about_approval(self, plan: Plan, request: Request) -> bool:
        """Let somebody allow or deny an approval; tells whether one was open.

        Raises:
            ValueError: nobody was ever asked for it, or it is decided or over.
        """
        _check_plan(plan)
        if request is None:
            return self._make(plan)
        wanted = request.get("approvalId") if isinstance(request, Mapping) else request
        asked = {name: made for (kind, name), made in self._store.requests.items() if kind == "approval"}
        if wanted not in asked:
            raise ValueError(f"there is no approval {wanted!r}; asked for: {', '.join(asked) or 'none yet'}")
        made = asked[wanted]
        if not _is_open("approval", made):
            raise ValueError(f"nobody can decide approval {wanted} any more: {_state(made)}")
        self._carry_out(wanted, made, plan)
        return True

    def cards(self, *, open_only: bool) -> list[Mapping[str, Any]]:
        """Return the cards that were shown, in order."""
        return [
            made.body["card"]
            for (kind, _), made in self._store.requests.items()
            if kind == "card" and (_is_open(kind, made) or not open_only)
        ]

    def unused(self) -> list[str]:
        """Say which decisions still wait for their request, one line each."""
        return [self._line(plan) for plan in self._plans]

    def forget(self) -> None:
        """Let nobody do any more what waits for its request."""
        self._plans.clear()

    def _make(self, plan: Plan) -> bool:
        for (kind, identifier), made in self._store.requests.items():
            open_ = _is_open(kind, made) and (kind, identifier) not in self._claimed
            if kind == plan.kind and open_ and _is_card(made, plan.card):
                self._carry_out(identifier, made, plan)
                return True
        self._plans.append(plan)
        return False

    def _created(self, kind: str, identifier: str, made: Interaction) -> None:
        """Carry out the first plan that fits a new request; on the plugin's loop."""
        if not _is_open(kind, made):
            return
        for plan in self._plans:
            if plan.kind == kind and _is_card(made, plan.card):
                self._plans.remove(plan)
                self._carry_out(identifier, made, plan)
                return

    def _carry_out(self, identifier: str, made: Interaction, plan: Plan) -> None:
        answer = dict(plan.answer)
        if plan.kind == "card":
            answer["actionId"] = _chosen(made.body["card"], answer)
        by = plan.by or made.responder
        self._claimed.add((plan.kind, identifier))

        def decide() -> None:
            if _is_open(plan.kind, made):  # it may be over by the time somebody decides
                self._store.answer(plan.kind, identifier, answer, by=by)
                self._decided(Settled(plan.kind, identifier, made, by, str(answer["status"])))

        self._later(plan.after, decide)

    def _line(self, plan: Plan) -> str:
        same = [(name, made) for (kind, name), made in self._store.requests.items() if kind == plan.kind]
        if plan.kind == "approval":
            asked = ", ".join(f"{name} ({_state(made)})" for name, made in same)
            return f"{plan.answer['status']} for the next approval was never used; asked for: {asked or 'none'}"
        shown = ", ".join(f'"{_title(made.body["card"])}"{_why_not(made, plan.card)}' for _, made in same)
        action = plan.answer["actionId"]
        what = f'answer "{action}"' if action else "an answer"
        title = _title(plan.card)
        which = "any card" if title is None else f'card "{title}"'
        return f"{what} for {which} was never used; cards shown: {shown or 'none'}"


def _check_plan(plan: Plan) -> None:
    if plan.by is not None:
        check_person(plan.by)
    seconds = cast("object", plan.after)
    if not isinstance(seconds, int | float):
        raise TypeError(f"after is a number of seconds, not {seconds!r:.80}")
    if not 0 <= seconds < math.inf:
        raise ValueError(f"after is 0 seconds or more, not {seconds}")


def _is_open(kind: str, made: Interaction) -> bool:
    """Whether somebody can still answer; nobody ever can where there is nothing to choose."""
    if made.answer is not None or made.taken_at is not None:
        return False
    return kind != "card" or interactive(made.body["card"])


def _state(made: Interaction) -> str:
    if made.answer is not None:
        return f"{made.answer['respondedBy']} decided: {made.answer['status']}"
    if made.taken_at is not None:
        return "it was withdrawn" if made.cancelled else "its time is over"
    return "still open"


def _is_card(made: Interaction, card: Card) -> bool:
    if card is None:
        return True
    shown = made.body.get("card")
    if isinstance(card, str):
        return shown is not None and card in {made.body.get("cardId"), _title(shown)}
    return shown == card


def _title(card: Card) -> str | None:
    return card if card is None or isinstance(card, str) else str(card.get("title"))


def _why_not(made: Interaction, card: Card) -> str:
    if not _is_card(made, card):
        return " (differs from the card that was meant)" if _title(card) == _title(made.body["card"]) else ""
    if not interactive(made.body["card"]):
        return " (has no action)"
    return f" ({_state(made)})"


def _chosen(card: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """Return the action that is chosen, the first by default.

    Raises:
        ValueError: the card does not offer it, or it has not all the fields that are filled in (cards §6).
    """
    wanted = str(answer["actionId"])
    offered = {
        str(action.get("id")): [str(entry.get("id")) for entry in action.get("fields", ())]
        for block in card.get("blocks", ())
        if block.get("kind") == "actions"
        for action in block.get("actions", ())
    }
    if wanted and wanted not in offered:
        raise ValueError(f"the card offers {', '.join(offered)}, not {wanted}")
    wanted = wanted or next(iter(offered))
    extra = [str(name) for name in answer["values"] if name not in offered[wanted]]
    if extra:
        fields = ", ".join(offered[wanted]) or "none"
        raise ValueError(f"action {wanted} of the card has no field {', '.join(extra)}; its fields: {fields}")
    return wanted
