"""Joining the streamed text of a batch of events, so that a subscriber gets few large pieces."""

from __future__ import annotations

from collections.abc import Iterable

from planwave.events import TRANSIENT, Event


class _Joined:
    """A piece of text that grows: its place among the events, where it ends, and its parts."""

    __slots__ = ("at", "end", "texts")

    def __init__(self, at: int, end: int, text: str) -> None:
        self.at, self.end, self.texts = at, end, [text]


def coalesce_text(events: Iterable[Event]) -> list[Event]:
    """Join the streamed text of each node, attempt and kind, as long as nothing else is about it.

    The joined piece takes the place of the first, so that text never comes after its node's end. Only a
    piece that begins where the one before ends is joined: what another process drives may come again
    from its beginning, or with a gap.
    """
    told: list[Event] = []
    growing: dict[tuple[str | None, int | None, str], _Joined] = {}
    pieces: list[_Joined] = []
    for event in events:
        if event.type not in TRANSIENT:
            if event.path is not None and growing:
                growing = {key: each for key, each in growing.items() if key[0] != event.path}
            told.append(event)
            continue
        data = event.data
        offset, text = data["offset"], data["text"]
        key = (event.path, event.attempt, data["kind"])
        piece = growing.get(key)
        if piece is not None and piece.end == offset:
            piece.texts.append(text)
            piece.end = offset + len(text)
        else:
            piece = growing[key] = _Joined(len(told), offset + len(text), text)
            pieces.append(piece)
            told.append(event)
    for piece in pieces:
        if len(piece.texts) > 1:
            data = {**told[piece.at].data, "text": "".join(piece.texts)}
            told[piece.at] = told[piece.at]._replace(data=data)
    return told
