"""Lists in memory: sorted newest first, cut into pages, searched for a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from planwave.storage.errors import unknown_cursor
from planwave.storage.event_codec import search_key, storable_text
from planwave.storage.records import PageCursor

_Row = TypeVar("_Row")


def newest_first(
    rows: Iterable[_Row],
    sort_key: Callable[[_Row], tuple[str, str]],
    before: str | PageCursor | None,
) -> list[_Row]:
    """Sort rows, and leave out what comes before the one after ``before``.

    Args:
        rows: In any order.
        sort_key: Gives the time a row was made, and its id.
        before: The last row already seen: its id, or its place.

    Raises:
        NotFound: ``before`` is the id of none of them.
    """
    ordered = sorted(rows, key=sort_key, reverse=True)
    if before is None:
        return ordered
    if isinstance(before, PageCursor):
        return [row for row in ordered if sort_key(row) < before]
    for index, row in enumerate(ordered):
        if sort_key(row)[1] == before:
            return ordered[index + 1 :]
    raise unknown_cursor(before)


def matches_text(text: str | None, title: str, description: str) -> bool:
    """Return whether a title or a description contains a text; no text is in all of them."""
    return not text or storable_text(text).casefold() in search_key(title, description)
