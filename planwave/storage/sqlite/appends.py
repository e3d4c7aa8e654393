"""Appending the events of running executions with as few statements as possible.

The writer thread caches for each running execution the key of its row, the epoch and the last ``seq``,
and the next unused key. The directory lock makes it the only writer; it clears the cache when a
transaction is rolled back. So an append inserts one row and changes no other, and many appends need as
few statements as one.

One statement inserts many rows: the SQLite driver releases the GIL with every statement, and a busy
event loop returns it only after some milliseconds; ``executemany`` would release it with every row.
There are statements for 1, 2, 4, … rows, and unused rows are nulls without effect. A statement for every
number of rows would not stay in the statement cache.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from planwave.storage.errors import append_to_unknown
from planwave.storage.sql.appends import (
    EXECUTION_COLUMNS,
    TEXT_COLUMNS,
    AppendOp,
    Position,
    add_answers,
    collect,
    execution_row,
    text_row,
)
from planwave.storage.sql.outbox import Outbox
from planwave.storage.sql.schema import plans

_DOUBLINGS: Final = 8
"""The largest statement has ``1 << _DOUBLINGS`` (256) rows."""


class MultiRowStatement:
    """A statement for several rows.

    Args:
        columns: The number of columns.
        one: The statement for one row.
        many: The statement for several rows, with ``{}`` for the rows; it must ignore rows of nulls.
    """

    def __init__(self, columns: int, one: str, many: str) -> None:
        row = _placeholders(columns)
        self._columns = columns
        self._max_values = columns << _DOUBLINGS
        self._texts = [one, *(many.format(",".join([row] * (2 << n))) for n in range(_DOUBLINGS))]

    @classmethod
    def insert(cls, table: str, columns: str, on_conflict: str = "") -> MultiRowStatement:
        """Return a statement that inserts rows; the first of the ``columns`` is never null."""
        count = columns.count(",") + 1
        text = f"INSERT INTO {table} ({columns}) {{}} {on_conflict}"
        return cls(
            count,
            text.format(f"VALUES {_placeholders(count)}"),
            text.format("SELECT * FROM (VALUES {}) WHERE column1 IS NOT NULL"),
        )

    def run(self, raw: sqlite3.Connection, values: Sequence[Any]) -> int:
        """Run the statement for the values of all rows in a flat list; return the changed rows."""
        changed = 0
        for start in range(0, len(values), self._max_values):
            chunk = values[start : start + self._max_values]
            doublings = (len(chunk) // self._columns - 1).bit_length()
            missing = (self._columns << doublings) - len(chunk)
            filled = [*chunk, *[None] * missing] if missing else chunk
            changed += raw.execute(self._texts[doublings], filled).rowcount
        return changed


def _placeholders(count: int) -> str:
    return "(" + ",".join("?" * count) + ")"


_ADD_PLANS: Final = MultiRowStatement.insert(
    "plans",
    ", ".join(column.name for column in plans.c),
    "ON CONFLICT DO NOTHING",
)
_ADD_EXECUTIONS: Final = MultiRowStatement.insert("executions", EXECUTION_COLUMNS)
_ADD_TEXTS: Final = MultiRowStatement.insert("execution_texts", TEXT_COLUMNS)
_ADD_BATCHES: Final = MultiRowStatement.insert("batches", "execution, first, last, events")
_SET_STATUS: Final = MultiRowStatement(
    4,
    "UPDATE executions SET status = coalesce(?, status), started_at = coalesce(started_at, ?), "
    "completed_at = coalesce(?, completed_at) WHERE key = ?",
    "UPDATE executions SET status = coalesce(column1, status), "
    "started_at = coalesce(started_at, column2), completed_at = coalesce(column3, completed_at) "
    "FROM (VALUES {}) WHERE key = column4",
)
_LOOK_UP: Final = (
    "SELECT key, epoch, "
    "(SELECT last FROM batches WHERE execution = key ORDER BY first DESC LIMIT 1) "
    "FROM executions WHERE execution_id = ?"
)
_LAST_KEY: Final = "SELECT coalesce(max(key), 0) FROM executions"


_SET_DOCUMENT_SEQS: Final = MultiRowStatement(
    2,
    "UPDATE executions SET document_seq = max(document_seq, ?) WHERE execution_id = ?",
    "UPDATE executions SET document_seq = max(document_seq, column1) FROM (VALUES {}) "
    "WHERE execution_id = column2",
)


class ExecutionPositions:
    """The positions of running executions; only the writer of a database may have them.

    Attributes:
        outbox: Where the notifications of events go, in the same transaction.
    """

    def __init__(self, connection: Connection) -> None:
        raw: Any = connection.connection.driver_connection
        self._raw: sqlite3.Connection = raw
        self._connection = connection
        self.outbox = Outbox()
        self._positions: dict[str, Position] = {}
        self._last_key: int | None = None

    def append(self, steps: Sequence[AppendOp]) -> None:
        """Insert events in the open transaction; the caller rolls it back if this fails.

        Raises:
            StoreError, StaleEpoch: Events do not follow those of their execution.
            sqlite3.Error: The execution id exists, or another error of SQLite.
        """
        rows = collect(steps, self._positions_for(steps))
        for execution_id, _, batch, *_ in steps:
            if batch is not None and batch.status_change.completed_at is not None:
                self.forget(execution_id)
        _ADD_BATCHES.run(self._raw, rows.batches)
        for key, answers in rows.answers:
            add_answers(self._connection, key, answers)
        for each in rows.notices:
            self.outbox.add(self._connection, *each)
        if rows.changes:
            values = [value for key, change in rows.changes.items() for value in (*change, key)]
            _SET_STATUS.run(self._raw, values)

    def set_document_seqs(self, seqs: Mapping[str, int]) -> int:
        """Set the last event of documents on disk; return how many executions there are of these."""
        rows = [value for execution_id, seq in seqs.items() for value in (seq, execution_id)]
        return _SET_DOCUMENT_SEQS.run(self._raw, rows)

    def forget(self, execution_id: str) -> None:
        """Drop the cached position of an execution."""
        self._positions.pop(execution_id, None)

    def clear(self) -> None:
        """Drop all cached positions, after a rollback."""
        self._positions.clear()
        self._last_key = None
        self.outbox.forget()

    def _positions_for(self, steps: Sequence[AppendOp]) -> list[Position]:
        """Return the position of each execution; insert new executions."""
        positions: list[Position] = []
        plans: list[Any] = []
        executions: list[Any] = []
        texts: list[Any] = []
        for step in steps:
            execution_id, epoch, _, record, plan = step
            if record is None:
                positions.append(self._positions.get(execution_id) or self._look_up(execution_id))
                continue
            position = self._positions[execution_id] = Position(self._new_key(), epoch, 0)
            positions.append(position)
            if plan is not None:
                plans += plan.values()
            executions += execution_row(position.key, step, record)
            texts += text_row(position.key, record)
        if executions:
            _ADD_PLANS.run(self._raw, plans)
            _ADD_EXECUTIONS.run(self._raw, executions)
            _ADD_TEXTS.run(self._raw, texts)
        return positions

    def _new_key(self) -> int:
        """Return an unused key for an execution."""
        last = self._last_key
        if last is None:
            last = int(self._raw.execute(_LAST_KEY).fetchone()[0])
        self._last_key = last + 1
        return last + 1

    def _look_up(self, execution_id: str) -> Position:
        row = self._raw.execute(_LOOK_UP, (execution_id,)).fetchone()
        if row is None:
            raise append_to_unknown(execution_id)
        key, epoch, last = row
        position = self._positions[execution_id] = Position(key, epoch, last or 0)
        return position
