"""Joining the streamed text of a batch of events, so that a subscriber gets few large pieces."""

from __future__ import annotations

from collections.abc import Iterable

from planwave.events import TRANSIENT, Event


def coalesce_text(events: Iterable[Event]) -> list[Event]:
    """Join the streamed text of each node, attempt and kind, as long as nothing else is about it.

    The joined piece takes the place of the first, so that text never comes after its node's end.
    """
    joined: list[Event] = []
    open_at: dict[tuple[str | None, int | None, str], int] = {}
    pieces: dict[int, list[str]] = {}
    for event in events:
        if event.type not in TRANSIENT:
            if event.path is not None and open_at:
                open_at = {key: at for key, at in open_at.items() if key[0] != event.path}
            joined.append(event)
            continue
        key = (event.path, event.attempt, event.data["kind"])
        at = open_at.get(key)
        if at is None:
            open_at[key] = len(joined)
            joined.append(event)
        else:
            pieces.setdefault(at, [joined[at].data["text"]]).append(event.data["text"])
    for at, texts in pieces.items():
        joined[at] = joined[at]._replace(data={**joined[at].data, "text": "".join(texts)})
    return joined
