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
from typing import Any, Final, NamedTuple

from planwave.principals import principal_text
from planwave.storage.errors import append_to_unknown, stale_epoch, unexpected_seq
from planwave.storage.event_codec import (
    NO_CHANGE,
    BatchAnswer,
    BatchNotice,
    EncodedBatch,
    StatusChange,
    asks_person,
    search_key,
    storable_text,
)
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.outbox import Outbox
from planwave.storage.sqlite.schema import plans

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


class AppendOp(NamedTuple):
    """Events that take one execution from ``batch.first - 1`` to ``batch.last``.

    With ``record`` the execution is new; ``plan`` is the row of a plan to insert with it.
    """

    execution_id: str
    epoch: int
    batch: EncodedBatch | None
    record: ExecutionRecord | None = None
    plan: Mapping[str, str | int | None] | None = None


_ADD_PLANS: Final = MultiRowStatement.insert(
    "plans",
    ", ".join(column.name for column in plans.c),
    "ON CONFLICT DO NOTHING",
)
_ADD_EXECUTIONS: Final = MultiRowStatement.insert(
    "executions",
    "key, execution_id, plan_id, status, created_at, started_at, completed_at, document_seq, "
    "epoch, queued, revision, flow, created_by, parent_id",
)
_ADD_TEXTS: Final = MultiRowStatement.insert(
    "execution_texts", "execution, title, user_prompt, search"
)
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
_BATCH_OF: Final = (
    "SELECT first, events FROM batches WHERE execution = ? AND first <= ? "
    "ORDER BY first DESC LIMIT 1"
)
_ADD_ANSWER: Final = (
    "INSERT INTO answered_requests (execution, answer, request, at) VALUES (?, ?, ?, ?)"
)
_LAST_KEY: Final = "SELECT coalesce(max(key), 0) FROM executions"


class _Position:
    """The position of an execution: the key of its row, the epoch, and the last ``seq``."""

    __slots__ = ("epoch", "key", "last")

    def __init__(self, key: int, epoch: int, last: int) -> None:
        self.key = key
        self.epoch = epoch
        self.last = last


class ExecutionPositions:
    """The positions of running executions; only the writer of a database may have them.

    Attributes:
        outbox: Where the notifications of events go, in the same transaction.
    """

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw
        self.outbox = Outbox(raw)
        self._positions: dict[str, _Position] = {}
        self._last_key: int | None = None

    def append(self, steps: Sequence[AppendOp]) -> None:
        """Insert events in the open transaction; the caller rolls it back if this fails.

        Raises:
            StoreError, StaleEpoch: Events do not follow those of their execution.
            sqlite3.Error: The execution id exists, or another error of SQLite.
        """
        positions = self._positions_for(steps)
        rows: list[Any] = []
        changes: dict[int, StatusChange] = {}
        answered: list[tuple[int, Sequence[BatchAnswer]]] = []
        noticed: list[tuple[int, str, Sequence[BatchNotice]]] = []
        for position, (execution_id, epoch, batch, record, _) in zip(positions, steps, strict=True):
            if batch is None:
                continue
            first, last, text, change, answers, notices = batch
            if epoch < position.epoch:
                raise stale_epoch(execution_id, epoch, position.epoch)
            if first != position.last + 1:
                raise unexpected_seq(execution_id, first, position.last)
            position.last = last
            rows += (position.key, first, last, text)
            if record is None and change is not NO_CHANGE:
                before = changes.get(position.key, NO_CHANGE)
                changes[position.key] = _merge_changes(before, change)
            if answers:
                answered.append((position.key, answers))
            if notices:
                noticed.append((position.key, execution_id, notices))
            if change.completed_at is not None:
                self.forget(execution_id)
        self._insert(rows, answered, noticed, changes)

    def _insert(
        self,
        rows: Sequence[Any],
        answered: Sequence[tuple[int, Sequence[BatchAnswer]]],
        noticed: Sequence[tuple[int, str, Sequence[BatchNotice]]],
        changes: Mapping[int, StatusChange],
    ) -> None:
        """Insert rows of events, and all that follows from them."""
        _ADD_BATCHES.run(self._raw, rows)
        for key, answers in answered:
            add_answers(self._raw, key, answers)
        for each in noticed:
            self.outbox.add(*each)
        if changes:
            values = [value for key, change in changes.items() for value in (*change, key)]
            _SET_STATUS.run(self._raw, values)

    def forget(self, execution_id: str) -> None:
        """Drop the cached position of an execution."""
        self._positions.pop(execution_id, None)

    def clear(self) -> None:
        """Drop all cached positions, after a rollback."""
        self._positions.clear()
        self._last_key = None
        self.outbox.forget()

    def _positions_for(self, steps: Sequence[AppendOp]) -> list[_Position]:
        """Return the position of each execution; insert new executions."""
        positions: list[_Position] = []
        plans: list[Any] = []
        executions: list[Any] = []
        texts: list[Any] = []
        for execution_id, epoch, batch, record, plan in steps:
            if record is None:
                positions.append(self._positions.get(execution_id) or self._look_up(execution_id))
                continue
            position = self._positions[execution_id] = _Position(self._new_key(), epoch, 0)
            positions.append(position)
            if plan is not None:
                plans += plan.values()
            executions += _execution_row(
                position.key, record, NO_CHANGE if batch is None else batch.status_change
            )
            texts += _text_row(position.key, record)
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

    def _look_up(self, execution_id: str) -> _Position:
        row = self._raw.execute(_LOOK_UP, (execution_id,)).fetchone()
        if row is None:
            raise append_to_unknown(execution_id)
        key, epoch, last = row
        position = self._positions[execution_id] = _Position(key, epoch, last or 0)
        return position


def add_answers(raw: sqlite3.Connection, key: int, answers: Sequence[BatchAnswer]) -> None:
    """Insert the answers to people's requests of an execution whose events are stored."""
    for request, answer, at in answers:
        row = raw.execute(_BATCH_OF, (key, request)).fetchone()
        if row is not None and asks_person(row[1], row[0], request):
            raw.execute(_ADD_ANSWER, (key, answer, request, at))


def _merge_changes(before: StatusChange, after: StatusChange) -> StatusChange:
    """Return the combination of two changes in order; ``_SET_STATUS`` does the same in SQL."""
    return StatusChange(
        after.status or before.status,
        before.started_at or after.started_at,
        after.completed_at or before.completed_at,
    )


def _execution_row(key: int, record: ExecutionRecord, change: StatusChange) -> tuple[Any, ...]:
    """Return the row of an execution after its first events."""
    before = StatusChange(record.status, record.started_at, record.completed_at)
    status, started_at, completed_at = _merge_changes(before, change)
    return (
        key,
        record.execution_id,
        record.plan_id,
        status,
        record.created_at,
        started_at,
        completed_at,
        record.document_seq,
        record.epoch,
        int(record.queued),
        record.revision,
        None if record.flow is None else storable_text(record.flow),
        principal_text(record.created_by),
        record.parent_id,
    )


def _text_row(key: int, record: ExecutionRecord) -> tuple[Any, ...]:
    return (
        key,
        storable_text(record.title),
        storable_text(record.user_prompt),
        search_key(record.title, record.user_prompt),
    )
