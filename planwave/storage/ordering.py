"""Lists of a store without a database: newest first, from any place on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from planwave.storage.records import Place
from planwave.storage.rows import no_page

_Row = TypeVar("_Row")


def newest_first(
    rows: Iterable[_Row], age: Callable[[_Row], tuple[str, str]], before: str | Place | None
) -> list[_Row]:
    """Sort rows, and leave out what comes before the one after ``before``.

    Args:
        rows: In any order.
        age: Gives the time a row was made, and its id.
        before: The last row already seen: its id, or its place.

    Raises:
        NotFound: ``before`` is the id of none of them.
    """
    ordered = sorted(rows, key=age, reverse=True)
    if before is None:
        return ordered
    if isinstance(before, Place):
        return [row for row in ordered if age(row) < before]
    for index, row in enumerate(ordered):
        if age(row)[1] == before:
            return ordered[index + 1 :]
    raise no_page(before)
