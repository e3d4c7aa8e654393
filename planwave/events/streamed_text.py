"""Text that nodes stream in pieces with offsets, perhaps more than once."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from planwave.shapes.common import OutputsDocument

STREAMED_KINDS: Final = ("text", "reasoning")
"""Kinds of streamed text that are kept: in the state, and of an attempt that does not complete."""


class Change(NamedTuple):
    """A change of a text: from ``offset`` on it is ``content``."""

    offset: int
    content: str


def streamed_document(texts: Mapping[str, str]) -> OutputsDocument:
    """Return texts by kind as events have them: in the form of outputs, without the empty ones."""
    return {kind: {"type": "text", "value": text} for kind, text in texts.items() if text}


class KeptText:
    """The begin of a text that arrives in order; what is beyond its bound only counts.

    Args:
        most: Number of characters that are kept; None for all.
    """

    __slots__ = ("_length", "_most", "_text")

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._length = 0
        self._text = io.StringIO(newline="")

    def __len__(self) -> int:
        return self._length

    def __str__(self) -> str:
        return self._text.getvalue()

    @property
    def is_cut(self) -> bool:
        """Whether some of the text is not kept."""
        return self._most is not None and self._length > self._most

    def append(self, piece: str) -> int:
        """Append a piece; return its offset."""
        offset, most = self._length, self._most
        self._length = offset + len(piece)
        if most is None or self._length <= most:
            self._text.write(piece)
        elif offset < most:
            self._text.write(piece[: most - offset])
        return offset


class StreamedText:
    """Text that arrives in pieces with character offsets; cheap to extend, joined when read.

    A piece that begins beyond the end is dropped, so that the text never has a gap.
    """

    __slots__ = ("_length", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __str__(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def put(self, offset: int, piece: str) -> None:
        """Put a piece at its offset, in place of all text from that offset on."""
        if offset != self._length:
            if offset > self._length:
                return
            self._pieces = [str(self)[:offset]]
            self._length = offset
        self._pieces.append(piece)
        self._length += len(piece)

    def merge(self, offset: int, piece: str) -> Change | None:
        """Put a piece at its offset, but leave the text from there on where the piece repeats it.

        An attempt that is entered again streams its text again.

        Returns:
            What that changes, None for nothing; its offset is below the length where other text was there.
        """
        if offset > self._length:
            return None
        if offset < self._length:
            rest = str(self)[offset:]
            if rest.startswith(piece):
                return None
            if piece.startswith(rest):
                offset, piece = self._length, piece[len(rest) :]
        self.put(offset, piece)
        return Change(offset, piece) if piece else None
