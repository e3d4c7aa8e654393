"""Statements that take any number of rows.

The driver gives up the interpreter lock with every statement, and a busy event loop hands it back
only after some milliseconds. So rows go many a statement; ``executemany`` would give the lock up
with every row.

There are few statements, for 1, 2, 4, … rows, and what is left of one is filled with nulls that come
to nothing. With one for every number most would be parsed anew each time, and SQLite would hold on to
the last values of all of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

_DOUBLINGS: Final = 8
"""Of one row, to the 256 that a statement takes at most."""


class MultiRowStatement:
    """A statement for rows of so many columns.

    Args:
        columns: Their number.
        one: The statement for a single row.
        many: That for several, with ``{}`` for the rows; to one of nulls it does nothing.
    """

    def __init__(self, columns: int, one: str, many: str) -> None:
        row = _placeholders(columns)
        self._columns = columns
        self._most = columns << _DOUBLINGS
        self._texts = [one, *(many.format(",".join([row] * (2 << n))) for n in range(_DOUBLINGS))]

    @classmethod
    def insert(cls, table: str, columns: str, on_conflict: str = "") -> MultiRowStatement:
        """Give a statement that inserts rows; the first of the ``columns`` is never null."""
        count = columns.count(",") + 1
        text = f"INSERT INTO {table} ({columns}) {{}} {on_conflict}"
        return cls(
            count,
            text.format(f"VALUES {_placeholders(count)}"),
            text.format("SELECT * FROM (VALUES {}) WHERE column1 IS NOT NULL"),
        )

    def run(self, raw: sqlite3.Connection, values: Sequence[Any]) -> int:
        """Run it for rows, given as the values of one after the other; give how many it changed."""
        changed = 0
        for start in range(0, len(values), self._most):
            chunk = values[start : start + self._most]
            doublings = (len(chunk) // self._columns - 1).bit_length()
            missing = (self._columns << doublings) - len(chunk)
            filled = [*chunk, *[None] * missing] if missing else chunk
            changed += raw.execute(self._texts[doublings], filled).rowcount
        return changed


def _placeholders(count: int) -> str:
    return "(" + ",".join("?" * count) + ")"
