"""Merge the texts of several nodes into one: one node has the turn, the others are buffered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Chunk(NamedTuple):
    """A piece of text to be emitted.

    Attributes:
        speaker: Path of the node that the text is from.
        turn: Key of the paragraph; two turns are two paragraphs.
        kind: ``text`` or ``reasoning``.
        text: The characters.
        extras: The ``extras`` of the chunk, by name.
    """

    speaker: str
    turn: str
    kind: str
    text: str
    extras: Mapping[str, Any]


class TurnQueue:
    """Queue of speakers: the first has the turn until it finishes, then the longest-waiting one."""

    def __init__(self) -> None:
        self._holder: str | None = None
        self._waiting: dict[str, list[Chunk]] = {}
        self._finished: set[str] = set()

    def is_speaking(self, speaker: str) -> bool:
        """Return whether a speaker has the turn."""
        return speaker == self._holder

    def push(self, chunk: Chunk) -> list[Chunk]:
        """Return the chunk if its speaker has the turn; else buffer it and return nothing."""
        speaker = chunk.speaker
        if self._holder is None:
            self._holder = speaker
        if speaker == self._holder:
            return [chunk]
        self._finished.discard(speaker)
        self._waiting.setdefault(speaker, []).append(chunk)
        return []

    def finish(self, speaker: str) -> list[Chunk]:
        """End a speaker's turn and return the buffered chunks that may be emitted now."""
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
        """Drop the buffered chunks of a speaker."""
        self._waiting.pop(speaker, None)

    def close(self) -> list[Chunk]:
        """Return all buffered chunks, the longest-waiting speaker first."""
        return [piece for pieces in self._waiting.values() for piece in pieces]
