"""The blocks of a reply, in an order that the stored events decide, and texts that grow in them.

Nodes that work at the same time stream at the same time, and streamed text is not stored. So a block is
not placed where its first piece happened to come: it belongs to the stored event that began it, and a
reply that is computed again from the stored events has its blocks in the same order.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final, NamedTuple

Block = dict[str, Any]
Place = tuple[int, int, int]
"""``seq`` of the event that began a block, then what orders the blocks that it began."""
_PLACE: Final = itemgetter(0)


class Change(NamedTuple):
    """A change of a text: from ``offset`` on it is ``content``."""

    offset: int
    content: str


class GrowingText:
    """A text that arrives in pieces with offsets, perhaps more than once.

    Line breaks at its beginning are left out: they separate it from the text before.

    Attributes:
        length: Number of characters that arrived, the line breaks among them.
    """

    __slots__ = ("_pieces", "_skipped", "length")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._skipped = 0
        self.length = 0

    def __str__(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def raw(self) -> str:
        """The text with the line breaks at its beginning."""
        return "\n" * self._skipped + str(self)

    def put(self, offset: int, piece: str) -> Change | None:
        """Put a piece at its offset; return what that changes, None for nothing.

        Text that was there before stays where the piece repeats it. A piece after a gap is dropped.
        """
        if offset > self.length:
            return None
        at = offset - self._skipped
        if offset < self.length:
            known = str(self)[max(at, 0) :]
            repeated = piece[max(-at, 0) :] if at < 0 else piece
            if known.startswith(repeated):
                return None
            if repeated.startswith(known):
                piece, at = repeated[len(known) :], len(known) + max(at, 0)
            else:
                piece, at = repeated, max(at, 0)
                self._pieces = [str(self)[:at]]
        self.length = self._skipped + at
        return self._append(piece)

    def replace(self, text: str) -> Change | None:
        """Put another text in place of all that is there; return what that changes."""
        rest = text.lstrip("\n")
        known = str(self)
        if rest == known:
            self.length = max(self.length, len(text))
            self._skipped = self.length - len(known)
            return None
        differing = (at for at, (a, b) in enumerate(zip(known, rest, strict=False)) if a != b)
        same = next(differing, min(len(known), len(rest)))
        self._pieces = [rest]
        self.length, self._skipped = len(text), len(text) - len(rest)
        return Change(same, rest[same:])

    def _append(self, piece: str) -> Change | None:
        at = self.length - self._skipped
        self.length += len(piece)
        if not at:
            rest = piece.lstrip("\n")
            self._skipped += len(piece) - len(rest)
            piece = rest
        if not piece:
            return None
        self._pieces.append(piece)
        return Change(at, piece)


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
