"""Merge the texts of several nodes into one: one node has the turn, the others are buffered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple


class Piece(NamedTuple):
    """A piece of text of one node.

    Attributes:
        speaker: Path of the node that the text is from.
        turn: Key of the paragraph; two turns are two paragraphs.
        kind: ``text`` or ``reasoning``.
        text: The characters.
        about: What the text is about; see ``parts.py``.
        is_message: A message, which stays whatever becomes of its node.
    """

    speaker: str
    turn: str
    kind: Literal["text", "reasoning"]
    text: str
    about: Mapping[str, Any]
    is_message: bool = False


class TurnQueue:
    """Queue of speakers: the first has the turn until it finishes, then the longest-waiting one."""

    def __init__(self) -> None:
        self._holder: str | None = None
        self._waiting: dict[str, list[Piece]] = {}
        self._finished: set[str] = set()

    def is_speaking(self, speaker: str) -> bool:
        """Return whether a speaker has the turn."""
        return speaker == self._holder

    def push(self, piece: Piece) -> list[Piece]:
        """Return the piece if its speaker has the turn; else buffer it and return nothing."""
        speaker = piece.speaker
        if self._holder is None:
            self._holder = speaker
        if speaker == self._holder:
            return [piece]
        self._finished.discard(speaker)
        self._waiting.setdefault(speaker, []).append(piece)
        return []

    def finish(self, speaker: str) -> list[Piece]:
        """End a speaker's turn and return the buffered pieces that may be emitted now."""
        if speaker != self._holder:
            if speaker in self._waiting:
                self._finished.add(speaker)
            return []
        self._holder = None
        released: list[Piece] = []
        while self._holder is None and self._waiting:
            following = next(iter(self._waiting))
            released += self._waiting.pop(following)
            if following not in self._finished:
                self._holder = following
            self._finished.discard(following)
        return released

    def discard(self, speaker: str) -> None:
        """Drop the buffered pieces of a speaker, but for its messages."""
        if messages := [each for each in self._waiting.get(speaker, ()) if each.is_message]:
            self._waiting[speaker] = messages
        else:
            self._waiting.pop(speaker, None)

    def close(self) -> list[Piece]:
        """Return all buffered pieces, the longest-waiting speaker first."""
        return [piece for pieces in self._waiting.values() for piece in pieces]
