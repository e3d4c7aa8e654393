"""What one node says, round by round: a round is one reply of its model, with its reasoning.

Streamed text of an attempt is one text with offsets, over all its rounds. It is published at once, stored
events only after their commit. So the ``usage`` that ends a round may come after the first text of the
next one: what is too much is moved when the recorded reply says where the round ends. An attempt that is
entered again streams its recorded replies again, from offset 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from planwave.events.chat_events.blocks import BlockText
from planwave.events.streamed_text import Change

TEXT: Final = "text"
REASONING: Final = "reasoning"
KINDS: Final = (REASONING, TEXT)
_BREAK: Final = "\n\n"
"""What an agent streams between the texts of two rounds."""


class Reply(NamedTuple):
    """A reply of a model, as it was recorded."""

    text: str
    reasoning: str = ""


Replies = Mapping[tuple[str, int], Sequence[Reply]]
"""The recorded replies of each attempt, by path and number of the attempt, in order."""


class Round:
    """One reply of the model of a node.

    Attributes:
        number: From 0.
        mark: ``seq`` of the stored event that it follows.
        texts: Its text and its reasoning, by kind.
        is_open: Whether it may still grow.
    """

    __slots__ = ("_lengths", "is_open", "mark", "number", "texts")

    def __init__(self, number: int, mark: int) -> None:
        self.number = number
        self.mark = mark
        self.texts = {kind: BlockText() for kind in KINDS}
        self.is_open = True
        self._lengths: dict[str, int] = {}

    def length(self, kind: str) -> int:
        """Return how much of the streamed text of the attempt a closed round takes up."""
        return self._lengths[kind]

    def close(self, reply: Reply | None) -> dict[str, tuple[Change | None, str]]:
        """End the round; return by kind what changes, and what was streamed beyond its end."""
        self.is_open = False
        ends = {TEXT: None, REASONING: None} if reply is None else reply._asdict()
        return {kind: self._cut(kind, ends[kind]) for kind in KINDS}

    def _cut(self, kind: str, end: str | None) -> tuple[Change | None, str]:
        text = self.texts[kind]
        raw = text.raw
        if end is None:
            self._lengths[kind] = len(raw)
            return None, ""
        apart = _BREAK if kind == TEXT and self.number else ""
        for lead in (apart, ""):
            if raw and raw.startswith(lead + end):
                self._lengths[kind] = len(lead + end)
                return text.replace(lead + end), raw[len(lead + end) :]
        self._lengths[kind] = len(apart + end)
        return text.replace(apart + end), ""


class Speaker:
    """A node that says something.

    Attributes:
        attempt: The number of its present attempt.
        mark: ``seq`` of its last stored event after which a reply of its model may follow.
        rounds: Those of the present attempt.
    """

    __slots__ = ("_closed", "_discarded", "attempt", "mark", "rounds")

    def __init__(self, attempt: int, mark: int) -> None:
        self.attempt = attempt
        self.mark = mark
        self.rounds: list[Round] = []
        self._closed = self._discarded = 0

    def reenter(self) -> None:
        """Begin with the first round again, as its attempt does."""
        self._closed = self._discarded = 0

    def open_round(self) -> Round:
        """Return the round that grows."""
        if not self.rounds or not self.rounds[-1].is_open:
            self.rounds.append(Round(len(self.rounds), self.mark))
        return self.rounds[-1]

    def put(self, kind: str, offset: int, piece: str) -> tuple[Round, Change | None]:
        """Put a streamed piece where it belongs; return the open round, and what changes in it."""
        closed_rounds = (each for each in self.rounds[self._discarded :] if not each.is_open)
        at = offset - sum(each.length(kind) for each in closed_rounds)
        if at < 0:
            piece, at = piece[-at:], 0
        current = self.open_round()
        return current, current.texts[kind].merge(at, piece) if piece else None

    def next_to_close(self) -> Round:
        """Return the round that the next ``usage`` ends; one that is closed was ended before."""
        next_round = (
            self.rounds[self._closed] if self._closed < len(self.rounds) else self.open_round()
        )
        self._closed += 1
        return next_round

    def discard(self) -> Round | None:
        """Return the open round, which is void; the next text begins at offset 0."""
        lost = self.rounds.pop() if self.rounds and self.rounds[-1].is_open else None
        self._discarded = len(self.rounds)
        return lost
