"""The one ephemeral node of a conversation: who writes it, in which order, and when it is cleared (turns §3).

Decides that writes and clears of one conversation never overlap, that a closed turn writes nothing more, and that a
turn clears only a node nobody else has taken over. Refuses to know what is written and how often.
"""

from __future__ import annotations

import asyncio
import logging

from canon_hermes_plugin.domain.turns.turn import Turn
from canon_hermes_plugin.ports.canon import NodePort, NodeWrite
from canon_hermes_plugin.ports.errors import CanonError

_log = logging.getLogger(__name__)


class ConversationNode:
    """The node of one conversation. Used by the gateway loop only.

    Attributes:
        stale: it may show words of a turn of an earlier process: Canon would make a message of them at a clear, and
            nobody knows whether that turn had fallen silent, or whether its answer is still to be said.
    """

    def __init__(self, canon: NodePort, *, stale: bool) -> None:
        self.stale = stale
        self._canon = canon
        self._order = asyncio.Lock()
        self._owner: Turn | None = None
        self._shown: list[Turn] = []
        """The turns whose words the node may show: a write that failed may have landed or not."""

    @property
    def tells_silenced(self) -> bool:
        """Whether the node may show words of a silenced turn: Canon would make a message of them at a clear."""
        return any(turn.silenced for turn in self._shown)

    @property
    def empty(self) -> bool:
        """Whether it is known to show nothing."""
        return not self.stale and not self._shown

    async def write(self, turn: Turn, write: NodeWrite, *, last: bool = False) -> bool:
        """Write for ``turn``, best effort; nothing is written for a closed turn unless it is its ``last`` write.

        Returns:
            ``False`` when the write failed: what the node shows is not known then.
        """
        async with self._order:
            if turn.closed and not last:
                return True
            empty = not write.text and not write.blocks
            taken = self._taken_from(turn)
            if empty and not self.tells_silenced and (taken or (turn.node.blank and self._owner is turn)):
                # Another open turn shows something here, which an empty write would wipe; or the node is empty.
                return True
            if not (empty and taken):
                self._owner = turn
            if not empty and turn not in self._shown:
                self._shown.append(turn)
            # Also of a write that fails: it may have landed all the same.
            turn.node.blank = turn.node.blank and empty
            turn.node.blocks = turn.node.blocks or bool(write.blocks)
            try:
                await self._canon.write_node(write)
            except CanonError as error:
                _log.debug("node write failed turn=%s error=%s", turn.id, type(error).__name__)
                return False
            self.stale = self.stale and write.blocks is None
            self._shown = [] if empty else [turn]
            turn.node.written = True
            turn.node.blank = empty
            return True

    async def clear(self, turn: Turn) -> bool:
        """Delete the node, best effort, unless a younger turn took it over.

        Returns:
            ``False`` when nothing was done because words of a silenced turn, or of an earlier process, may be in it.
        """
        async with self._order:
            if self._owner not in {None, turn}:
                return True
            if self.tells_silenced or not await self._renew(turn.conversation_id, turn.id):
                return False
            self._owner = None
            self._shown = []
            await self._delete(turn.conversation_id)
            return True

    async def clear_leftover(self, conversation_id: str, turn_id: str) -> bool:
        """Blank and delete what an earlier process left, unless a turn of this one has the node.

        Returns:
            ``False`` when that failed.
        """
        async with self._order:
            if self._owner is not None or self._shown:
                return True
            return await self._renew(conversation_id, turn_id) and await self._delete(conversation_id)

    async def _renew(self, conversation_id: str, turn_id: str) -> bool:
        """Blank what an earlier process may have left; ``False`` when that failed."""
        if self.stale:
            try:
                await self._canon.write_node(NodeWrite(conversation_id, turn_id, "", "thinking", ()))
            except CanonError as error:
                _log.debug("stale node not blanked turn=%s error=%s", turn_id, type(error).__name__)
                return False
            self.stale = False
        return True

    async def _delete(self, conversation_id: str) -> bool:
        try:
            await self._canon.clear_node(conversation_id)
        except CanonError as error:
            _log.debug("node clear failed conversation=%s error=%s", conversation_id, type(error).__name__)
            return False
        return True

    def _taken_from(self, turn: Turn) -> bool:
        return self._owner is not None and self._owner is not turn and not self._owner.closed
