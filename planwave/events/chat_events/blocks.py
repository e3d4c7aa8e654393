"""The blocks of a reply, in an order that the stored events decide, and texts that grow in them.

Nodes that work at the same time stream at the same time, and streamed text is not stored. So a block is
not placed where its first piece happened to come: it belongs to the stored event that began it, and a
reply that is computed again from the stored events has its blocks in the same order.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final

from planwave.events.streamed_text import Change, StreamedText

Block = dict[str, Any]
Place = tuple[int, int, int]
"""``seq`` of the event that began a block, then what orders the blocks that it began."""
_PLACE: Final = itemgetter(0)


class BlockText:
    """The streamed text of a block.

    Line breaks at its beginning are left out: they separate it from the text before.
    """

    __slots__ = ("_skipped", "_streamed")

    def __init__(self) -> None:
        self._streamed = StreamedText()
        self._skipped = 0

    @property
    def raw(self) -> str:
        """The text with the line breaks at its beginning."""
        return str(self._streamed)

    def merge(self, offset: int, piece: str) -> Change | None:
        """Put a piece at its offset in the raw text; return what that changes, None for nothing."""
        change = self._streamed.merge(offset, piece)
        if change is None:
            return None
        at, content = change
        if at <= self._skipped:
            content = content.lstrip("\n")
            self._skipped = len(self._streamed) - len(content)
            at = self._skipped
        return Change(at - self._skipped, content) if content else None

    def replace(self, text: str) -> Change | None:
        """Put another text in place of all that is there; return what that changes."""
        known, new = self.raw[self._skipped :], text.lstrip("\n")
        self._streamed.put(0, text)
        self._skipped = len(text) - len(new)
        if known == new:
            return None
        differing = (at for at, (a, b) in enumerate(zip(known, new, strict=False)) if a != b)
        same = next(differing, min(len(known), len(new)))
        return Change(same, new[same:])


class BlockList:
    """Blocks in their order, and by id."""

    def __init__(self) -> None:
        self._placed: list[tuple[Place, Block]] = []
        self._by_id: dict[str, Block] = {}

    def __iter__(self) -> Iterator[Block]:
        return (block for _, block in self._placed)

    def get(self, block_id: str) -> Block | None:
        """Return a block, or None."""
        return self._by_id.get(block_id)

    def add(self, place: Place, block: Block) -> bool:
        """Add a block; return whether it is the last one."""
        insort(self._placed, (place, block), key=_PLACE)
        self._by_id[block["id"]] = block
        return self._placed[-1][1] is block

    def move(self, place: Place, block_id: str) -> bool:
        """Move a block to another place; return whether the order has changed."""
        before = [each["id"] for each in self]
        self._placed = [
            (place if each["id"] == block_id else at, each) for at, each in self._placed
        ]
        self._placed.sort(key=_PLACE)
        return before != [each["id"] for each in self]

    def remove(self, block_id: str) -> bool:
        """Remove a block; return whether there was one of this id."""
        found = self._by_id.pop(block_id, None)
        if found is None:
            return False
        self._placed = [each for each in self._placed if each[1] is not found]
        return True
