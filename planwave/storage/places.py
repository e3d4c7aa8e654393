"""Where running executions stand, and the rows that take them further.

The writing thread remembers of each running execution its row's key, its owner's epoch and its last
``seq``, and the next key nobody has. It may: the directory lock makes it the only writer, and all
changes pass through it in order; it forgets what it knows whenever a transaction is undone. So an
append is one row and touches no other, and many steps come to as few statements as one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from planwave.storage.bulk import Bulk
from planwave.storage.jobs import Step
from planwave.storage.records import ExecutionRecord
from planwave.storage.rows import (
    UNCHANGED,
    Progress,
    late_writer,
    search_key,
    storable,
    unknown_execution,
    wrong_seq,
)

_ADD_PLANS: Final = Bulk.insert(
    "plans",
    "plan_id, created_at, title, user_prompt, hash, search, document",
    "ON CONFLICT DO NOTHING",
)
_ADD_EXECUTIONS: Final = Bulk.insert(
    "executions",
    "key, execution_id, plan_id, status, created_at, started_at, completed_at, document_seq, "
    "epoch, queued, flow_id, flow_version",
)
_ADD_TEXTS: Final = Bulk.insert("execution_texts", "execution, title, user_prompt, search")
_ADD_BATCHES: Final = Bulk.insert("batches", "execution, first, last, events")
_SET_STATUS: Final = Bulk(
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


class _Place:
    """Where an execution stands: its row's key, its owner's epoch, its last event."""

    __slots__ = ("epoch", "key", "last")

    def __init__(self, key: int, epoch: int, last: int) -> None:
        self.key = key
        self.epoch = epoch
        self.last = last


class Places:
    """Where running executions stand; only the one writer of a database may have it."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw
        self._places: dict[str, _Place] = {}
        self._last_key: int | None = None

    def append(self, steps: Sequence[Step]) -> None:
        """Keep steps within the transaction that is open, which has to be undone if this fails.

        Raises:
            StoreError, LateWriter: A step does not fit its execution.
            sqlite3.Error: There is an execution of that id; and what else SQLite refuses.
        """
        places = self._found_or_made(steps)
        rows: list[Any] = []
        changes: dict[int, Progress] = {}
        for place, (execution_id, epoch, batch, record, _) in zip(places, steps, strict=True):
            if batch is None:
                continue
            first, last, text, progress = batch
            if epoch < place.epoch:
                raise late_writer(execution_id, epoch, place.epoch)
            if first != place.last + 1:
                raise wrong_seq(execution_id, first, place.last)
            place.last = last
            rows += (place.key, first, last, text)
            if record is None and progress is not UNCHANGED:
                changes[place.key] = _then(changes.get(place.key, UNCHANGED), progress)
            if progress.completed_at is not None:
                self.forget(execution_id)
        _ADD_BATCHES.run(self._raw, rows)
        if changes:
            values = [value for key, change in changes.items() for value in (*change, key)]
            _SET_STATUS.run(self._raw, values)

    def forget(self, execution_id: str) -> None:
        """Look an execution's row up again before its next append."""
        self._places.pop(execution_id, None)

    def clear(self) -> None:
        """Look everything up again; to be called when a transaction was undone."""
        self._places.clear()
        self._last_key = None

    def _found_or_made(self, steps: Sequence[Step]) -> list[_Place]:
        """Give the place of each step's execution, and insert those that are new."""
        places: list[_Place] = []
        plans: list[Any] = []
        executions: list[Any] = []
        texts: list[Any] = []
        for execution_id, epoch, batch, record, plan in steps:
            if record is None:
                places.append(self._places.get(execution_id) or self._look_up(execution_id))
                continue
            place = self._places[execution_id] = _Place(self._new_key(), epoch, 0)
            places.append(place)
            if plan is not None:
                plans += plan.values()
            executions += _row_of(place.key, record, UNCHANGED if batch is None else batch.progress)
            texts += _texts_of(place.key, record)
        if executions:
            _ADD_PLANS.run(self._raw, plans)
            _ADD_EXECUTIONS.run(self._raw, executions)
            _ADD_TEXTS.run(self._raw, texts)
        return places

    def _new_key(self) -> int:
        """Give a key that no execution has, nor one had since it was last looked up."""
        last = self._last_key
        if last is None:
            last = int(self._raw.execute(_LAST_KEY).fetchone()[0])
        self._last_key = last + 1
        return last + 1

    def _look_up(self, execution_id: str) -> _Place:
        row = self._raw.execute(_LOOK_UP, (execution_id,)).fetchone()
        if row is None:
            raise unknown_execution(execution_id)
        key, epoch, last = row
        place = self._places[execution_id] = _Place(key, epoch, last or 0)
        return place


def _then(before: Progress, after: Progress) -> Progress:
    """Give what two changes come to, one after the other; so do ``_SET_STATUS`` and the row."""
    return Progress(
        after.status or before.status,
        before.started_at or after.started_at,
        after.completed_at or before.completed_at,
    )


def _row_of(key: int, record: ExecutionRecord, progress: Progress) -> tuple[Any, ...]:
    """Give the row of an execution as its first events leave it."""
    before = Progress(record.status, record.started_at, record.completed_at)
    status, started_at, completed_at = _then(before, progress)
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
        record.flow_id,
        record.flow_version,
    )


def _texts_of(key: int, record: ExecutionRecord) -> tuple[Any, ...]:
    return (
        key,
        storable(record.title),
        storable(record.user_prompt),
        search_key(record.title, record.user_prompt),
    )
