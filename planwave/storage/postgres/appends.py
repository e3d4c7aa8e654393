"""Appending the events of executions on PostgreSQL, where several processes write.

What keeps two processes from driving one execution is a lock of its row, not what one of them remembers: an append locks
the row and compares the epoch, ``claim`` updates it. So an append of the owner before is refused, or it is
seen by the one after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from psycopg import Connection as RawConnection
from sqlalchemy import Connection

from planwave.storage.errors import append_to_unknown
from planwave.storage.event_codec import EncodedBatch
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
from planwave.storage.sql.locks import lock_shared
from planwave.storage.sql.outbox import Outbox
from planwave.storage.sql.schema import plans

_LOCK: Final = (
    "SELECT e.execution_id, e.key, e.epoch, coalesce((SELECT b.last FROM batches b "
    "WHERE b.execution = e.key ORDER BY b.first DESC LIMIT 1), 0) "
    "FROM executions e WHERE e.execution_id = ANY(%s) ORDER BY e.key FOR NO KEY UPDATE OF e"
)
"""Locks rows against ``claim`` and other appends until the commit; in one order, so that two appends do
not wait for each other."""
_STORED: Final = "SELECT events FROM batches WHERE execution = %s AND first = %s"
_NEW_KEYS: Final = (
    "SELECT nextval(pg_get_serial_sequence('executions', 'key')) FROM generate_series(1, %s)"
)
_ADD_BATCHES: Final = (
    "INSERT INTO batches (execution, first, last, events) "
    "SELECT * FROM unnest(%s::bigint[], %s::int[], %s::int[], %b::text[])"
)
"""The events in binary: psycopg would escape each quote of a text in Python, for 0.4 ms a batch."""
_SET_STATUS: Final = (
    "UPDATE executions SET status = coalesce(c.status, executions.status), "
    "started_at = coalesce(executions.started_at, c.started_at), "
    "completed_at = coalesce(c.completed_at, executions.completed_at) "
    "FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[]) "
    "AS c(status, started_at, completed_at, key) WHERE executions.key = c.key"
)
_SET_DOCUMENT_SEQS: Final = (
    "UPDATE executions SET document_seq = greatest(document_seq, c.seq) "
    "FROM unnest(%s::text[], %s::int[]) AS c(id, seq) WHERE execution_id = c.id"
)


def _insertion(table: str, columns: str) -> str:
    values = ", ".join(["%s"] * (columns.count(",") + 1))
    return f"INSERT INTO {table} ({columns}) VALUES ({values})"  # noqa: S608 - of constants


_PLAN_COLUMNS: Final = ", ".join(column.name for column in plans.c)
_ADD_PLANS: Final = f"{_insertion('plans', _PLAN_COLUMNS)} ON CONFLICT DO NOTHING"
_ADD_EXECUTIONS: Final = _insertion("executions", EXECUTION_COLUMNS)
_ADD_TEXTS: Final = _insertion("execution_texts", TEXT_COLUMNS)
_ADD_SUBMISSIONS: Final = "INSERT INTO submissions (execution_id) SELECT unnest(%s::text[])"


class LockedAppends:
    """Appends events to executions whose rows it locks.

    Args:
        is_carried: Whether a carrier outside of this process is to be told of new executions.

    Attributes:
        outbox: Where the notifications of events go, in the same transaction.
    """

    def __init__(self, *, is_carried: bool = False) -> None:
        self._is_carried = is_carried
        self.outbox = Outbox(keeps_targets=False)

    def append(self, connection: Connection, steps: Sequence[AppendOp]) -> None:
        """Insert events in the open transaction; the caller rolls it back if this fails.

        Raises:
            StoreError, StaleEpoch: Events do not follow those of their execution.
            psycopg.Error: The execution id exists, or another error of the database.
        """
        if not steps:
            return
        raw: RawConnection[Any] = _raw(connection)
        positions = self._positions_for(connection, steps)

        def is_stored(position: Position, batch: EncodedBatch) -> bool:
            # By a commit whose answer was lost with the connection.
            row = raw.execute(_STORED, (position.key, batch.first)).fetchone()
            return row is not None and row[0] == batch.text

        rows = collect(steps, positions, is_stored)
        if rows.batches:
            raw.execute(_ADD_BATCHES, [rows.batches[column::4] for column in range(4)])
        for key, answers in rows.answers:
            add_answers(connection, key, answers)
        for each in rows.notices:
            self.outbox.add(connection, *each)
        if rows.changes:
            changed = ((*change, key) for key, change in rows.changes.items())
            raw.execute(_SET_STATUS, [list(column) for column in zip(*changed, strict=True)])

    def _positions_for(self, connection: Connection, steps: Sequence[AppendOp]) -> list[Position]:
        """Return the position of each execution, its row locked; insert new executions."""
        known = self._create(connection, [step for step in steps if step.record is not None])
        asked = sorted({step.execution_id for step in steps} - known.keys())
        if asked:
            for execution_id, *facts in _raw(connection).execute(_LOCK, (asked,)):
                known[execution_id] = Position(*facts)
        positions: list[Position] = []
        for step in steps:
            position = known.get(step.execution_id)
            if position is None:
                raise append_to_unknown(step.execution_id)
            positions.append(position)
        return positions

    def _create(self, connection: Connection, steps: Sequence[AppendOp]) -> dict[str, Position]:
        """Insert new executions, with their plans; return their positions."""
        created: dict[str, Position] = {}
        if not steps:
            return created
        raw: RawConnection[Any] = _raw(connection)
        for plan_id in sorted({s.record.plan_id for s in steps if s.record and s.record.plan_id}):
            lock_shared(connection, "plan", plan_id)  # it is not deleted meanwhile
        keys = [row[0] for row in raw.execute(_NEW_KEYS, (len(steps),))]
        plan_rows = [tuple(step.plan.values()) for step in steps if step.plan is not None]
        rows: list[tuple[Any, ...]] = []
        texts: list[tuple[Any, ...]] = []
        for key, step in zip(keys, steps, strict=True):
            if step.record is not None:
                rows.append(execution_row(key, step, step.record))
                texts.append(text_row(key, step.record))
                created[step.execution_id] = Position(key, step.epoch, 0)
        if plan_rows:
            connection.exec_driver_sql(_ADD_PLANS, plan_rows)
        connection.exec_driver_sql(_ADD_EXECUTIONS, rows)
        connection.exec_driver_sql(_ADD_TEXTS, texts)
        queued = [step.execution_id for step in steps if step.record and step.record.queued]
        if queued and self._is_carried:
            raw.execute(_ADD_SUBMISSIONS, (queued,))
        return created


def set_document_seqs(connection: Connection, seqs: Mapping[str, int]) -> int:
    """Set the last event of documents on disk; return how many executions there are of these."""
    values = ([*seqs], [*seqs.values()])
    return _raw(connection).execute(_SET_DOCUMENT_SEQS, values).rowcount


def _raw(connection: Connection) -> RawConnection[Any]:
    raw: Any = connection.connection.driver_connection
    return raw
