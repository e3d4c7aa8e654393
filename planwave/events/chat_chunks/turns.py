"""Many speakers, one text: who speaks is heard to the end, the others wait for their turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Chunk(NamedTuple):
    """Something to be told.

    Attributes:
        speaker: Path of the node that says it.
        turn: What belongs together; two turns are two paragraphs.
        kind: ``serialize`` or ``reasoning``.
        text: The characters.
        extras: What else there is to say with it, by name.
    """

    speaker: str
    turn: str
    kind: str
    text: str
    extras: Mapping[str, Any]


class TurnQueue:
    """Who may speak: the first to say something, until it leaves; then the one who waited longest."""

    def __init__(self) -> None:
        self._holder: str | None = None
        self._waiting: dict[str, list[Chunk]] = {}
        self._finished: set[str] = set()

    def is_speaking(self, speaker: str) -> bool:
        """Say whether a speaker is the one who is heard."""
        return speaker == self._holder

    def push(self, chunk: Chunk) -> list[Chunk]:
        """Give what is to be told now: the piece, or nothing while somebody else speaks."""
        speaker = chunk.speaker
        if self._holder is None:
            self._holder = speaker
        if speaker == self._holder:
            return [chunk]
        self._finished.discard(speaker)
        self._waiting.setdefault(speaker, []).append(chunk)
        return []

    def finish(self, speaker: str) -> list[Chunk]:
        """Give what may be told now that a speaker has no more to say."""
        if speaker != self._holder:
            if speaker in self._waiting:
                self._finished.add(speaker)
            return []
        self._holder = None
        told: list[Chunk] = []
        while self._holder is None and self._waiting:
            following = next(iter(self._waiting))
            told += self._waiting.pop(following)
            if following not in self._finished:
                self._holder = following
            self._finished.discard(following)
        return told

    def discard(self, speaker: str) -> None:
        """Forget what a speaker waits to say."""
        self._waiting.pop(speaker, None)

    def close(self) -> list[Chunk]:
        """Give all that still waits, in the order in which it began to."""
        return [piece for pieces in self._waiting.values() for piece in pieces]
