"""Many speakers, one text: who speaks is heard to the end, the others wait for their turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Piece(NamedTuple):
    """Something to be told.

    Attributes:
        speaker: Path of the node that says it.
        turn: What belongs together; two turns are two paragraphs.
        kind: ``text`` or ``reasoning``.
        text: The characters.
        about: What else there is to say with it, by name.
    """

    speaker: str
    turn: str
    kind: str
    text: str
    about: Mapping[str, Any]


class Floor:
    """Who may speak: the first to say something, until it leaves; then the one who waited longest."""

    def __init__(self) -> None:
        self._holder: str | None = None
        self._waiting: dict[str, list[Piece]] = {}
        self._left: set[str] = set()

    def holds(self, speaker: str) -> bool:
        """Say whether a speaker is the one who is heard."""
        return speaker == self._holder

    def say(self, piece: Piece) -> list[Piece]:
        """Give what is to be told now: the piece, or nothing while somebody else speaks."""
        speaker = piece.speaker
        if self._holder is None:
            self._holder = speaker
        if speaker == self._holder:
            return [piece]
        self._left.discard(speaker)
        self._waiting.setdefault(speaker, []).append(piece)
        return []

    def leave(self, speaker: str) -> list[Piece]:
        """Give what may be told now that a speaker has no more to say."""
        if speaker != self._holder:
            if speaker in self._waiting:
                self._left.add(speaker)
            return []
        self._holder = None
        told: list[Piece] = []
        while self._holder is None and self._waiting:
            following = next(iter(self._waiting))
            told += self._waiting.pop(following)
            if following not in self._left:
                self._holder = following
            self._left.discard(following)
        return told

    def withdraw(self, speaker: str) -> None:
        """Forget what a speaker waits to say."""
        self._waiting.pop(speaker, None)

    def close(self) -> list[Piece]:
        """Give all that still waits, in the order in which it began to."""
        return [piece for pieces in self._waiting.values() for piece in pieces]
