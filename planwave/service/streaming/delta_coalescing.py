"""Joining the streamed text of a batch of events, so that a subscriber gets few large pieces."""

from __future__ import annotations

from collections.abc import Iterable

from planwave.events import TRANSIENT, Event


def coalesce_text(events: Iterable[Event]) -> list[Event]:
    """Join the streamed text of each node, attempt and kind, as long as nothing else is about it.

    The joined piece takes the place of the first, so that text never comes after its node's end. Only a
    piece that begins where the one before ends is joined: what another process drives may come again
    from its beginning, or with a gap.
    """
    joined: list[Event] = []
    open_at: dict[tuple[str | None, int | None, str], tuple[int, int]] = {}
    pieces: dict[int, list[str]] = {}
    for event in events:
        if event.type not in TRANSIENT:
            if event.path is not None and open_at:
                open_at = {key: at for key, at in open_at.items() if key[0] != event.path}
            joined.append(event)
            continue
        data = event.data
        key = (event.path, event.attempt, data["kind"])
        at, end = open_at.get(key, (len(joined), None))
        if data["offset"] == end:
            pieces.setdefault(at, [joined[at].data["text"]]).append(data["text"])
        else:
            at = len(joined)
            joined.append(event)
        open_at[key] = (at, data["offset"] + len(data["text"]))
    for at, texts in pieces.items():
        joined[at] = joined[at]._replace(data={**joined[at].data, "text": "".join(texts)})
    return joined
